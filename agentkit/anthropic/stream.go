package anthropic

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/internal/wire"
	"wf/agentkit/model"
)

// stream puts a response together from its events.
type stream struct {
	name   string // of the model
	self   string // its address, and what the server calls it
	strict bool   // a thought without a signature does not go back
	ttl    string // of the marks that were sent
	opts   *llms.CallOptions
	clock  model.Clock

	parts map[int]*part
	calls int // of parts
	stop  string
	usage usage
}

// part is a content block under construction.
type part struct {
	Type string `json:"type"`
	ID   string `json:"id"`
	Name string `json:"name"`

	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	Input     json.RawMessage `json:"input"`

	raw      json.RawMessage // as it began
	text     strings.Builder // text or thinking
	args     strings.Builder // pieces of JSON
	sign     strings.Builder
	cited    []json.RawMessage // citations that came by themselves
	streamed bool              // something was added to raw
	unread   bool              // and not all of it is known
}

// event is any event of the stream; message is also the whole of a response that is none.
type event struct {
	Type    string          `json:"type"`
	Index   int             `json:"index"`
	Message *message        `json:"message"`
	Block   json.RawMessage `json:"content_block"`
	Delta   struct {
		Type       string          `json:"type"`
		Text       string          `json:"text"`
		Thinking   string          `json:"thinking"`
		Signature  string          `json:"signature"`
		JSON       string          `json:"partial_json"`
		Citation   json.RawMessage `json:"citation"`
		StopReason string          `json:"stop_reason"`
	} `json:"delta"`
	Usage *usage `json:"usage"`
}

type message struct {
	Type    string            `json:"type"`
	Content []json.RawMessage `json:"content"`
	Stop    string            `json:"stop_reason"`
	Usage   *usage            `json:"usage"`
}

// read takes the whole response.
func (s *stream) read(ctx context.Context, h http.Header, body io.Reader) error {
	s.parts = map[int]*part{}
	if strings.Contains(h.Get("Content-Type"), "application/json") {
		return s.whole(ctx, body)
	}
	err := wire.Events(body, func(_ string, data []byte) (bool, error) {
		var e event
		if err := json.Unmarshal(data, &e); err != nil {
			return false, fmt.Errorf("an event is not JSON: %w: %.200s", err, data)
		}
		s.clock.Heard()
		if e.Type == "error" {
			return false, s.failed(data)
		}
		return e.Type == "message_stop", s.event(ctx, &e)
	})
	return wire.Ended(err, s.stop != "", "stop_reason", "message_stop")
}

// whole reads a response that is no stream.
func (s *stream) whole(ctx context.Context, body io.Reader) error {
	text, err := io.ReadAll(body)
	if err != nil {
		return fmt.Errorf("read the response: %w", err)
	}
	var m message
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("the response is not JSON: %w: %.200s", err, text)
	}
	if m.Type == "error" {
		return s.failed(text)
	}
	if m.Stop == "" && len(m.Content) == 0 {
		return fmt.Errorf("the response holds no message: %.200s", text)
	}
	s.clock.Heard()
	s.stop = m.Stop
	s.usage.update(m.Usage)
	for i, raw := range m.Content {
		if err := s.begin(ctx, i, raw); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) event(ctx context.Context, e *event) error {
	switch e.Type {
	case "message_start":
		if e.Message != nil {
			s.usage.update(e.Message.Usage)
		}
	case "content_block_start":
		return s.begin(ctx, e.Index, slices.Clone(e.Block))
	case "content_block_delta":
		p := s.parts[e.Index]
		if p == nil {
			return fmt.Errorf("a piece of block %d came before its start", e.Index)
		}
		return s.delta(ctx, p, e)
	case "message_delta":
		if e.Delta.StopReason != "" {
			s.stop = e.Delta.StopReason
		}
		s.usage.update(e.Usage)
	}
	return nil // ping, content_block_stop, and events of later versions
}

// begin starts a block, which may hold something already.
func (s *stream) begin(ctx context.Context, index int, raw json.RawMessage) error {
	p := &part{raw: raw}
	if err := json.Unmarshal(raw, p); err != nil {
		return fmt.Errorf("block %d: %w", index, err)
	}
	if s.parts[index] != nil {
		return fmt.Errorf("block %d starts twice", index)
	}
	s.parts[index] = p
	if p.Type == "tool_use" {
		if s.calls++; s.calls > model.MostCalls {
			return model.TooManyCalls(s.name)
		}
	}
	p.sign.WriteString(p.Signature)
	switch p.Type {
	case "text":
		return s.say(ctx, p, p.Text)
	case "thinking":
		return s.think(ctx, p, p.Thinking)
	}
	return nil
}

func (s *stream) delta(ctx context.Context, p *part, e *event) error {
	p.streamed = true
	switch e.Delta.Type {
	case "text_delta":
		return s.say(ctx, p, e.Delta.Text)
	case "thinking_delta":
		return s.think(ctx, p, e.Delta.Thinking)
	case "signature_delta":
		p.sign.WriteString(e.Delta.Signature)
	case "input_json_delta":
		p.args.WriteString(e.Delta.JSON)
	case "citations_delta":
		p.cited = append(p.cited, e.Delta.Citation)
	default:
		p.unread = true
	}
	return nil
}

func (s *stream) say(ctx context.Context, p *part, text string) error {
	p.text.WriteString(text)
	return model.Say(ctx, s.opts, text)
}

func (s *stream) think(ctx context.Context, p *part, thought string) error {
	if thought == "" {
		return nil
	}
	s.clock.Thought()
	p.text.WriteString(thought)
	return model.Think(ctx, s.opts, thought)
}

// statuses are the HTTP statuses of the API's error types: an error in a stream has none.
var statuses = map[string]int{
	"invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
	"not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429, "api_error": 500,
	"timeout_error": 504, "overloaded_error": 529,
}

// failed is an error inside a stream.
func (s *stream) failed(data []byte) error {
	var shape struct {
		Error struct {
			Type string `json:"type"`
		} `json:"error"`
	}
	_ = json.Unmarshal(data, &shape) // without a type it has no status
	return wire.Failed(s.name, statuses[shape.Error.Type], data)
}
