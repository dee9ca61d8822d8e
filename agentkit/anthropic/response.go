package anthropic

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/internal/wire"
	"wf/agentkit/model"
	"wf/protocol"
)

// response is what was said, as one choice.
func (s *stream) response() (*llms.ContentResponse, error) {
	r := model.Reply{Stop: s.stop, Counts: s.usage.counts(s.ttl)}
	r.Counts[model.KeyTTFE], r.Counts[model.KeyThinkingMS] = s.clock.Times()
	k := kept{Of: s.self}
	var m said
	var text, thinking strings.Builder
	for _, i := range slices.Sorted(maps.Keys(s.parts)) {
		p := s.parts[i]
		switch p.Type {
		case "text":
			text.WriteString(p.text.String())
		case "tool_use":
			r.Calls = append(r.Calls, protocol.CallMessage{ID: p.ID, Name: p.Name, Arguments: p.arguments()})
			m.calls = append(m.calls, &block{ID: callID(p.ID), Name: p.Name, written: p.arguments()})
		case "thinking":
			thinking.WriteString(p.text.String())
		}
		x, err := p.kept(s.strict)
		if err != nil {
			return nil, &model.Error{Class: model.ServerError, Message: fmt.Sprintf("model %s: block %d (%s): %v", s.name, i, p.Type, err), Err: err}
		}
		k.Blocks = append(k.Blocks, x...)
	}
	r.Text, r.Thinking = text.String(), thinking.String()
	if m.text = r.Text; !plain(k.Blocks) {
		k.Sum = m.sum()
		b, err := wire.Encode(map[string]any{keptAs: k})
		if err != nil {
			return nil, &model.Error{Class: model.ServerError, Message: fmt.Sprintf("model %s: %v", s.name, err), Err: err}
		}
		r.Opaque = string(b)
	}
	return r.Response(), nil
}

// arguments is the JSON of a call, as raw as the model wrote it.
func (p *part) arguments() string {
	if p.args.Len() > 0 {
		return p.args.String()
	}
	if string(p.Input) == "null" {
		return ""
	}
	return string(p.Input)
}

// kept is the block as it is kept. Behind one of which not all is known there is a place without anything.
func (p *part) kept(strict bool) (out []piece, err error) {
	var x piece
	switch {
	case p.Type == "text":
		n := p.text.Len()
		x.Text = &n
		x.Own, err = p.members("type", "text")
	case p.Type == "tool_use":
		x.Call = true
		x.Own, err = p.members("type", "id", "name", "input")
	case p.Type == "thinking" && strict && p.sign.Len() == 0, p.Type == "", p.unread:
		return []piece{{}}, nil
	default:
		x.Raw, err = p.whole()
		x.Bound = p.Type == "thinking" || p.Type == "redacted_thinking"
	}
	if out = []piece{x}; p.unread {
		out = append(out, piece{})
	}
	return out, err
}

// members are those of a block besides those that are read, nil for none.
func (p *part) members(read ...string) (own map[string]json.RawMessage, err error) {
	if err := json.Unmarshal(p.raw, &own); err != nil {
		return nil, err
	}
	maps.DeleteFunc(own, func(name string, v json.RawMessage) bool { return slices.Contains(read, name) || string(v) == "null" })
	if len(p.cited) > 0 {
		var all []json.RawMessage
		if cited := own["citations"]; len(cited) > 0 {
			if err := json.Unmarshal(cited, &all); err != nil {
				return nil, fmt.Errorf("citations: %w", err)
			}
		}
		own["citations"], err = wire.Encode(append(all, p.cited...))
	}
	if len(own) == 0 {
		return nil, err
	}
	return own, err
}

// whole is a block that goes back verbatim: as it came where it came whole.
func (p *part) whole() (json.RawMessage, error) {
	if !p.streamed {
		return p.raw, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(p.raw, &members); err != nil {
		return nil, err
	}
	if p.Type == "thinking" {
		signed := members["signature"] != nil || p.sign.Len() > 0
		for _, name := range []string{"type", "thinking", "signature"} {
			delete(members, name)
		}
		var o wire.Object
		o.Add("type", p.Type)
		o.Add("thinking", p.text.String())
		if signed {
			o.Add("signature", p.sign.String())
		}
		b, err := o.Bytes()
		return wire.With(b, members), err
	}
	// A block of a tool that runs at the provider: its input came in pieces.
	if p.args.Len() > 0 {
		members["input"] = json.RawMessage(p.args.String())
	}
	if p.text.Len() > 0 {
		text, err := wire.Encode(p.text.String())
		if err != nil {
			return nil, err
		}
		members["text"] = text
	}
	return wire.Encode(members)
}

// usage is what the API counts; every event tells totals.
type usage struct {
	Input    *int64 `json:"input_tokens"` // neither read from the cache nor written
	Read     *int64 `json:"cache_read_input_tokens"`
	Written  *int64 `json:"cache_creation_input_tokens"`
	Lifetime *struct {
		M5 *int64 `json:"ephemeral_5m_input_tokens"`
		H1 *int64 `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	Output  *int64 `json:"output_tokens"`
	Details *struct {
		Thinking *int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// update takes over what a newer count tells.
func (u *usage) update(n *usage) {
	if n == nil {
		return
	}
	u.Input, u.Output = cmp.Or(n.Input, u.Input), cmp.Or(n.Output, u.Output)
	u.Read, u.Written = cmp.Or(n.Read, u.Read), cmp.Or(n.Written, u.Written)
	u.Lifetime, u.Details = cmp.Or(n.Lifetime, u.Lifetime), cmp.Or(n.Details, u.Details)
}

// counts normalises: input is all prompt tokens. Written ones live for ttl where the API does
// not say it.
func (u *usage) counts(ttl string) model.Counts {
	c := model.Counts{}
	c.Set(model.KeyOutput, u.Output)
	c.Set(model.KeyCached, u.Read)
	if model.Told(u.Input) {
		for _, n := range []*int64{u.Input, u.Read, u.Written} {
			if model.Told(n) {
				c[model.KeyInput] += *n
			}
		}
	}
	switch {
	case u.Lifetime != nil:
		c.Set(model.KeyWrite5m, u.Lifetime.M5)
		c.Set(model.KeyWrite1h, u.Lifetime.H1)
	case ttl == "1h":
		c.Set(model.KeyWrite1h, u.Written)
	default:
		c.Set(model.KeyWrite5m, u.Written)
	}
	if u.Details != nil {
		c.Set(model.KeyReasoning, u.Details.Thinking)
	}
	return c
}
