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
	var places []json.RawMessage
	var text, thinking strings.Builder
	own := false
	for _, i := range slices.Sorted(maps.Keys(s.parts)) {
		p := s.parts[i]
		switch p.Type {
		case "text":
			text.WriteString(p.text.String())
			places = append(places, json.RawMessage(placeText))
		case "tool_use":
			r.Calls = append(r.Calls, protocol.CallMessage{ID: p.ID, Name: p.Name, Arguments: p.arguments()})
			places = append(places, json.RawMessage(placeCall))
		default:
			if p.Type == "thinking" {
				thinking.WriteString(p.text.String())
			}
			block, err := p.block()
			if err != nil {
				return nil, &model.Error{Class: model.ServerError, Message: fmt.Sprintf("model %s: block %d (%s): %v", s.name, i, p.Type, err), Err: err}
			}
			places, own = append(places, block), true
		}
	}
	r.Text, r.Thinking = text.String(), thinking.String()
	if own {
		b, err := wire.Encode(map[string]any{opaqueKey: places})
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

// block is a block that goes back verbatim: as it came where it came whole.
func (p *part) block() (json.RawMessage, error) {
	if !p.streamed {
		return p.raw, nil
	}
	if p.Type == "thinking" {
		var o wire.Object
		o.Add("type", p.Type)
		o.Add("thinking", p.text.String())
		o.Add("signature", p.sign.String())
		return o.Bytes()
	}
	// A block of a tool that runs at the provider: its input came in pieces.
	var members map[string]json.RawMessage
	if err := json.Unmarshal(p.raw, &members); err != nil {
		return nil, err
	}
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
