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
	"time"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/internal/wire"
	"wf/agentkit/model"
)

// stream puts a response together from its events.
type stream struct {
	name  string // of the model
	opts  *llms.CallOptions
	start time.Time

	text, reasoning strings.Builder
	field           string // under which the reasoning came, and goes back
	calls           []*call
	at              map[int]*call // newest call of an index
	finish          string
	refused         bool // what it said is why it does not answer
	usage           *usage
	timings         *timings
	ttfe            time.Duration
	thinkingFrom    time.Time
	thinkingTo      time.Time
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
	Details    *struct {
		Cached  *int64 `json:"cached_tokens"`
		Written *int64 `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails *struct {
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
	s.at = map[int]*call{}
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
	if s.ttfe == 0 {
		s.ttfe = time.Since(s.start)
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return s.failed(data)
	}
	if c.Usage != nil {
		s.usage = c.Usage
	}
	if c.Timings != nil {
		s.timings = c.Timings
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
		now := time.Now()
		if s.thinkingFrom.IsZero() {
			s.thinkingFrom = now
		}
		s.thinkingTo = now
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
		s.call(&d.ToolCalls[i])
	}
	return nil
}

// call adds a piece of a tool call to the call of its index. Another id under the same index
// is another call; without an index the newest call goes on, unless the piece has a new id.
func (s *stream) call(d *callDelta) {
	index := len(s.calls) - 1
	if d.Index != nil {
		index = *d.Index
	}
	c := s.at[index]
	if c == nil || d.ID != "" && c.ID != "" && d.ID != c.ID {
		if d.Index == nil {
			index++
		}
		c = &call{Type: "function"}
		s.calls = append(s.calls, c)
		s.at[index] = c
	}
	c.ID = cmp.Or(c.ID, d.ID)
	if name := d.Function.Name; name != c.Function.Name { // some servers repeat it
		c.Function.Name += name
	}
	var piece string
	if args := d.Function.Arguments; len(args) > 0 && json.Unmarshal(args, &piece) != nil {
		piece = string(args) // an object, as raw as it came
	}
	c.Function.Arguments += piece
}

func (s *stream) response() *llms.ContentResponse {
	choice := &llms.ContentChoice{
		Content: s.text.String(), StopReason: s.finish, ReasoningContent: s.reasoning.String(),
		GenerationInfo: map[string]any{model.KeyTTFE: s.ttfe.Milliseconds()},
	}
	if s.refused {
		choice.StopReason = "refusal"
	}
	for _, c := range s.calls {
		choice.ToolCalls = append(choice.ToolCalls, llms.ToolCall{
			ID: c.ID, Type: c.Type, FunctionCall: &llms.FunctionCall{Name: c.Function.Name, Arguments: c.Function.Arguments},
		})
	}
	if s.field != "" {
		choice.GenerationInfo[model.KeyThinkingMS] = s.thinkingTo.Sub(s.thinkingFrom).Milliseconds()
		if b, err := wire.Encode(map[string]string{s.field: s.reasoning.String()}); err == nil { // a string always has a JSON form
			choice.GenerationInfo[model.KeyOpaque] = string(b)
		}
	}
	s.count(choice.GenerationInfo)
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{choice}}
}

// count normalises the usage: prompt_tokens holds the cached ones already.
func (s *stream) count(info map[string]any) {
	set := func(key string, from ...*int64) {
		for _, n := range from {
			if n != nil {
				info[key] = *n
				return
			}
		}
	}
	u, t := s.usage, s.timings
	if t == nil {
		t = &timings{}
	}
	if u == nil {
		u = &usage{}
	}
	set(model.KeyInput, u.Prompt, sum(t.Cached, t.Prompt))
	set(model.KeyOutput, u.Completion, t.Output)
	if d := u.Details; d != nil {
		set(model.KeyCached, d.Cached, u.CacheHit, t.Cached)
		set(model.KeyWrite5m, d.Written)
	} else {
		set(model.KeyCached, u.CacheHit, t.Cached)
	}
	if d := u.CompletionDetails; d != nil {
		set(model.KeyReasoning, d.Reasoning)
	}
}

func sum(a, b *int64) *int64 {
	if a == nil || b == nil {
		return nil
	}
	n := *a + *b
	return &n
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
