package openai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
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
	self  string // its address, and what the server calls it
	opts  *llms.CallOptions
	clock model.Clock

	text, reasoning strings.Builder
	field           string    // under which the reasoning came, and goes back
	details         []*detail // of it, in a server's own form
	calls           []*building
	at              map[int]*building // newest call of an index
	finish          string
	chosen          bool // a choice came
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
	Content          content         `json:"content"`
	ReasoningContent string          `json:"reasoning_content"`
	Reasoning        string          `json:"reasoning"`
	Details          json.RawMessage `json:"reasoning_details"`
	Refusal          string          `json:"refusal"`
	ToolCalls        []callDelta     `json:"tool_calls"`
}

// content is a text, or a list of parts of which some are thoughts.
type content struct{ text, thought string }

// UnmarshalJSON passes over parts that are neither.
func (c *content) UnmarshalJSON(b []byte) error { return c.read(b, true) }

// read takes the thoughts too where it is told so: within a thought there are texts alone.
func (c *content) read(b []byte, thoughts bool) error {
	if len(b) == 0 || b[0] != '[' {
		return json.Unmarshal(b, &c.text)
	}
	var parts []struct {
		Type     string          `json:"type"`
		Text     json.RawMessage `json:"text"`
		Thinking json.RawMessage `json:"thinking"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	var text, thought strings.Builder
	for _, p := range parts {
		var within content
		switch {
		case (p.Type == "text" || p.Type == "output_text") && len(p.Text) > 0:
			if err := json.Unmarshal(p.Text, &within.text); err != nil {
				return err
			}
			text.WriteString(within.text)
		case p.Type == "thinking" && len(p.Thinking) > 0 && thoughts:
			if err := within.read(p.Thinking, false); err != nil { // a text, or parts of text
				return err
			}
			thought.WriteString(within.text)
		}
	}
	c.text, c.thought = text.String(), thought.String()
	return nil
}

type callDelta struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"` // a string; some servers send an object
	} `json:"function"`

	own map[string]json.RawMessage // the other members
}

// UnmarshalJSON keeps the members that are not known.
func (c *callDelta) UnmarshalJSON(b []byte) error {
	type plain callDelta
	if err := json.Unmarshal(b, (*plain)(c)); err != nil {
		return err
	}
	if err := json.Unmarshal(b, &c.own); err != nil {
		return err
	}
	maps.DeleteFunc(c.own, func(name string, v json.RawMessage) bool {
		return string(v) == "null" || slices.Contains([]string{"index", "id", "type", "function"}, strings.ToLower(name))
	})
	return nil
}

// number is a count as servers write it: whole, as a decimal or as a text. What is none counts as not told.
type number int64

// UnmarshalJSON never fails.
func (n *number) UnmarshalJSON(b []byte) error {
	*n = -1
	if f, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64); err == nil && f >= 0 && f < 1<<53 {
		*n = number(f)
	}
	return nil
}

func told(n *number) *int64 { return (*int64)(n) }

type usage struct {
	Prompt     *number `json:"prompt_tokens"`
	Completion *number `json:"completion_tokens"`
	Details    struct {
		Cached  *number `json:"cached_tokens"`
		Written *number `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning *number `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	CacheHit *number `json:"prompt_cache_hit_tokens"` // DeepSeek
}

// timings are llama-server's own counts.
type timings struct {
	Cached *number `json:"cache_n"`
	Prompt *number `json:"prompt_n"`
	Output *number `json:"predicted_n"`
}

// read takes the whole response.
func (s *stream) read(ctx context.Context, h http.Header, body io.Reader) error {
	s.at = map[int]*building{}
	if strings.Contains(h.Get("Content-Type"), "application/json") {
		text, err := io.ReadAll(body)
		if err != nil {
			return fmt.Errorf("read the response: %w", err)
		}
		if err := s.event(ctx, text); err != nil {
			return err
		}
		if !s.chosen {
			return fmt.Errorf("the response holds no choice: %.200s", text)
		}
		return nil
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
		s.chosen = s.chosen || d != nil || choice.FinishReason != ""
		if d != nil {
			if err := s.delta(ctx, d); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *stream) delta(ctx context.Context, d *delta) error {
	for _, named := range []struct{ field, thought string }{{"reasoning_content", d.ReasoningContent}, {"reasoning", d.Reasoning}, {inContent, d.Content.thought}} {
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
	s.addDetails(d.Details)
	s.refused = s.refused || d.Refusal != ""
	text := d.Content.text + d.Refusal
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

// inContent is where the thoughts of servers come whose content has parts. They do not go back.
const inContent = "content"

// detail is a part of the reasoning that comes in pieces: its texts grow, of all else the newest counts.
type detail struct {
	members map[string]json.RawMessage
	texts   map[string]*strings.Builder // of those members that grew
}

// text is the member of a name, to grow; nil where it is no text.
func (d *detail) text(name string) *strings.Builder {
	b := d.texts[name]
	var before string
	if b == nil && (name == "text" || name == "summary" || name == "data") && json.Unmarshal(d.members[name], &before) == nil {
		b = &strings.Builder{}
		b.WriteString(before)
		d.texts[name] = b
	}
	return b
}

// MarshalJSON writes its members.
func (d *detail) MarshalJSON() ([]byte, error) {
	for name, b := range d.texts {
		d.members[name], _ = wire.Encode(b.String()) // a string always has a JSON form
	}
	return wire.Encode(d.members)
}

// addDetails joins the pieces of a detail. What is no list of them is passed over.
func (s *stream) addDetails(raw json.RawMessage) {
	var pieces []map[string]json.RawMessage
	if json.Unmarshal(raw, &pieces) != nil {
		return
	}
	for _, piece := range pieces {
		last := len(s.details) - 1
		same := func(name string) bool { return string(s.details[last].members[name]) == string(piece[name]) }
		if last < 0 || piece["index"] == nil || !same("index") || !same("type") {
			s.details = append(s.details, &detail{piece, map[string]*strings.Builder{}})
			continue
		}
		for name, v := range piece {
			d := s.details[last]
			var more string
			if b := d.text(name); b != nil && json.Unmarshal(v, &more) == nil {
				b.WriteString(more)
			} else if string(v) != "null" || d.members[name] == nil {
				delete(d.texts, name)
				d.members[name] = v
			}
		}
	}
}

// building is a tool call that comes in pieces.
type building struct {
	id, name string
	args     strings.Builder
	own      map[string]json.RawMessage

	depth           int  // of the arguments: objects and lists that are open
	quoted, escaped bool // their end is within a text, and behind a backslash
	ended, whole    bool // they came to an end once, and were JSON then
}

// add adds a piece of the arguments. Whether they are whole is looked at once, where they end first: they may be long, and each
// byte come alone.
func (c *building) add(piece string) {
	for i := 0; i < len(piece) && !c.ended; i++ {
		ends := false
		switch b := piece[i]; {
		case c.escaped:
			c.escaped = false
		case c.quoted:
			c.escaped, c.quoted = b == '\\', b != '"'
			ends = !c.quoted
		case b == '"':
			c.quoted = true
		case b == '{' || b == '[':
			c.depth++
		case b == '}' || b == ']':
			c.depth--
			ends = true
		}
		if ends && c.depth <= 0 {
			c.ended, c.whole = true, json.Valid([]byte(c.args.String()+piece))
		}
	}
	c.args.WriteString(piece)
}

// call adds a piece of a tool call to the call of its index. Another id under the same index
// is another call, and so is a name with arguments, or another name, where the call has all of its arguments; without an index
// the newest call goes on, unless the piece has a new id.
func (s *stream) call(d *callDelta) error {
	index := len(s.calls) - 1
	if d.Index != nil {
		index = *d.Index
	}
	c := s.at[index]
	var piece string
	if args := d.Function.Arguments; len(args) > 0 && json.Unmarshal(args, &piece) != nil {
		piece = string(args) // an object, as raw as it came
	}
	whole := func() bool {
		return d.ID == "" && d.Function.Name != "" && (piece != "" || d.Function.Name != c.name) && (c.whole || c.args.String() == "null")
	}
	if c == nil || d.ID != "" && c.id != "" && d.ID != c.id || whole() {
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
	c.add(piece)
	if len(d.own) > 0 && c.own == nil {
		c.own = map[string]json.RawMessage{}
	}
	maps.Copy(c.own, d.own)
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
	if k := s.keep(); k != nil {
		if b, err := wire.Encode(map[string]any{keptAs: k}); err == nil { // all of it came as JSON
			r.Opaque = string(b)
		}
	}
	return r.Response()
}

// counts normalises the usage: prompt_tokens holds the cached ones already.
func (s *stream) counts() model.Counts {
	u, t, c := s.usage, s.timings, model.Counts{}
	c[model.KeyTTFE], c[model.KeyThinkingMS] = s.clock.Times()
	c.Set(model.KeyInput, told(u.Prompt))
	if !model.Told(told(u.Prompt)) && model.Told(told(t.Cached)) && model.Told(told(t.Prompt)) {
		c[model.KeyInput] = int64(*t.Cached + *t.Prompt)
	}
	c.Set(model.KeyOutput, told(u.Completion), told(t.Output))
	c.Set(model.KeyCached, told(u.Details.Cached), told(u.CacheHit), told(t.Cached))
	c.Set(model.KeyWrite5m, told(u.Details.Written))
	c.Set(model.KeyReasoning, told(u.CompletionDetails.Reasoning))
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
