package openai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/internal/wire"
	"wf/agentkit/model"
	"wf/protocol"
)

// stream puts a response together from its events.
type stream struct {
	name  string // of the model
	opts  *llms.CallOptions
	clock model.Clock

	text, reasoning strings.Builder
	field           string // under which the reasoning came, and goes back
	calls           []*building
	at              map[int]*building // newest call of an index
	finish          string
	refused         bool // what it said is why it does not answer
	usage           usage
	timings         timings
}

type chunk struct {
	Choices []struct {
		Index        int    `json:"index"`
		Delta        *delta `json:"delta"`
		Message      *delta `json:"message"` // of a response that is no stream
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage   *usage          `json:"usage"`
	Timings *timings        `json:"timings"`
	Error   json.RawMessage `json:"error"`
}

type delta struct {
	Content          string      `json:"content"`
	ReasoningContent string      `json:"reasoning_content"`
	Reasoning        string      `json:"reasoning"`
	Refusal          string      `json:"refusal"`
	ToolCalls        []callDelta `json:"tool_calls"`
}

type callDelta struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"` // a string; some servers send an object
	} `json:"function"`
}

type usage struct {
	Prompt     *int64 `json:"prompt_tokens"`
	Completion *int64 `json:"completion_tokens"`
	Details    struct {
		Cached  *int64 `json:"cached_tokens"`
		Written *int64 `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning *int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	CacheHit *int64 `json:"prompt_cache_hit_tokens"` // DeepSeek
}

// timings are llama-server's own counts.
type timings struct {
	Cached *int64 `json:"cache_n"`
	Prompt *int64 `json:"prompt_n"`
	Output *int64 `json:"predicted_n"`
}

// read takes the whole response.
func (s *stream) read(ctx context.Context, h http.Header, body io.Reader) error {
	s.at = map[int]*building{}
	if strings.Contains(h.Get("Content-Type"), "application/json") {
		text, err := io.ReadAll(body)
		if err != nil {
			return fmt.Errorf("read the response: %w", err)
		}
		return s.event(ctx, text)
	}
	err := wire.Events(body, func(name string, data []byte) (bool, error) {
		switch {
		case name == "error":
			return false, s.failed(data)
		case string(bytes.TrimSpace(data)) == "[DONE]":
			return true, nil
		}
		return false, s.event(ctx, data)
	})
	return wire.Ended(err, s.finish != "", "finish_reason", "[DONE]")
}

// event adds one chunk.
func (s *stream) event(ctx context.Context, data []byte) error {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("an event is not JSON: %w: %.200s", err, data)
	}
	s.clock.Heard()
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return s.failed(data)
	}
	if c.Usage != nil {
		s.usage = *c.Usage
	}
	if c.Timings != nil {
		s.timings = *c.Timings
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue // one answer was asked for
		}
		if choice.FinishReason != "" {
			s.finish = choice.FinishReason
		}
		d := choice.Delta
		if d == nil {
			d = choice.Message
		}
		if d != nil {
			if err := s.delta(ctx, d); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *stream) delta(ctx context.Context, d *delta) error {
	for _, named := range []struct{ field, thought string }{{"reasoning_content", d.ReasoningContent}, {"reasoning", d.Reasoning}} {
		thought := named.thought
		if thought == "" || s.field != "" && s.field != named.field {
			continue // the same thought under two names
		}
		s.field = named.field
		s.clock.Thought()
		s.reasoning.WriteString(thought)
		if err := model.Think(ctx, s.opts, thought); err != nil {
			return err
		}
	}
	s.refused = s.refused || d.Refusal != ""
	text := d.Content + d.Refusal
	s.text.WriteString(text)
	if err := model.Say(ctx, s.opts, text); err != nil {
		return err
	}
	for i := range d.ToolCalls {
		if err := s.call(&d.ToolCalls[i]); err != nil {
			return err
		}
	}
	return nil
}

// building is a tool call that comes in pieces.
type building struct {
	id, name string
	args     strings.Builder
}

// call adds a piece of a tool call to the call of its index. Another id under the same index
// is another call; without an index the newest call goes on, unless the piece has a new id.
func (s *stream) call(d *callDelta) error {
	index := len(s.calls) - 1
	if d.Index != nil {
		index = *d.Index
	}
	c := s.at[index]
	if c == nil || d.ID != "" && c.id != "" && d.ID != c.id {
		if d.Index == nil {
			index++
		}
		if len(s.calls) == model.MostCalls {
			return model.TooManyCalls(s.name)
		}
		c = &building{}
		s.calls = append(s.calls, c)
		s.at[index] = c
	}
	c.id = cmp.Or(c.id, d.ID)
	if name := d.Function.Name; name != c.name { // some servers repeat it
		if len(c.name)+len(name) > model.MostName {
			return &model.Error{Class: model.Invalid, Message: fmt.Sprintf("model %s: its answer calls a tool with a name of more than %d bytes", s.name, model.MostName)}
		}
		c.name += name
	}
	var piece string
	if args := d.Function.Arguments; len(args) > 0 && json.Unmarshal(args, &piece) != nil {
		piece = string(args) // an object, as raw as it came
	}
	c.args.WriteString(piece)
	return nil
}

func (s *stream) response() *llms.ContentResponse {
	r := model.Reply{Text: s.text.String(), Thinking: s.reasoning.String(), Stop: s.finish, Counts: s.counts()}
	if s.refused {
		r.Stop = "refusal"
	}
	for _, c := range s.calls {
		r.Calls = append(r.Calls, protocol.CallMessage{ID: c.id, Name: c.name, Arguments: c.args.String()})
	}
	if s.field != "" {
		if b, err := wire.Encode(map[string]string{s.field: r.Thinking}); err == nil { // a string always has a JSON form
			r.Opaque = string(b)
		}
	}
	return r.Response()
}

// counts normalises the usage: prompt_tokens holds the cached ones already.
func (s *stream) counts() model.Counts {
	u, t, c := s.usage, s.timings, model.Counts{}
	c[model.KeyTTFE], c[model.KeyThinkingMS] = s.clock.Times()
	c.Set(model.KeyInput, u.Prompt)
	if !model.Told(u.Prompt) && model.Told(t.Cached) && model.Told(t.Prompt) {
		c[model.KeyInput] = *t.Cached + *t.Prompt
	}
	c.Set(model.KeyOutput, u.Completion, t.Output)
	c.Set(model.KeyCached, u.Details.Cached, u.CacheHit, t.Cached)
	c.Set(model.KeyWrite5m, u.Details.Written)
	c.Set(model.KeyReasoning, u.CompletionDetails.Reasoning)
	return c
}

// failed is an error inside a stream; its code may be an HTTP status.
func (s *stream) failed(data []byte) error {
	var shape struct {
		Error struct {
			Code json.RawMessage `json:"code"`
		} `json:"error"`
	}
	status := 0
	if json.Unmarshal(data, &shape) == nil {
		if n, err := strconv.Atoi(strings.Trim(string(shape.Error.Code), `"`)); err == nil && n >= 400 && n < 600 {
			status = n
		}
	}
	return wire.Failed(s.name, status, data)
}
