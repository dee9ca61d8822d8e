package anthropic

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/internal/wire"
	"wf/agentkit/model"
)

// response is what was said, as one choice.
func (s *stream) response() (*llms.ContentResponse, error) {
	choice := &llms.ContentChoice{StopReason: s.stop, GenerationInfo: map[string]any{model.KeyTTFE: s.ttfe.Milliseconds()}}
	var places []json.RawMessage
	own := false
	for _, i := range slices.Sorted(maps.Keys(s.parts)) {
		p := s.parts[i]
		switch p.Type {
		case "text":
			choice.Content += p.text.String()
			places = append(places, json.RawMessage(placeText))
		case "tool_use":
			choice.ToolCalls = append(choice.ToolCalls, llms.ToolCall{ID: p.ID, Type: "function",
				FunctionCall: &llms.FunctionCall{Name: p.Name, Arguments: p.arguments()}})
			places = append(places, json.RawMessage(placeCall))
		default:
			if p.Type == "thinking" {
				choice.ReasoningContent += p.text.String()
			}
			block, err := p.block()
			if err != nil {
				return nil, &model.Error{Class: model.ServerError, Message: fmt.Sprintf("model %s: block %d (%s): %v", s.name, i, p.Type, err), Err: err}
			}
			places, own = append(places, block), true
		}
	}
	if own {
		var o wire.Object
		o.Add(opaqueKey, places)
		b, err := o.Bytes()
		if err != nil {
			return nil, &model.Error{Class: model.ServerError, Message: fmt.Sprintf("model %s: %v", s.name, err), Err: err}
		}
		choice.GenerationInfo[model.KeyOpaque] = string(b)
	}
	if !s.thinkingFrom.IsZero() {
		choice.GenerationInfo[model.KeyThinkingMS] = s.thinkingTo.Sub(s.thinkingFrom).Milliseconds()
	}
	s.usage.tell(choice.GenerationInfo, s.ttl)
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{choice}}, nil
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
	newer := func(to **int64, from *int64) {
		if from != nil {
			*to = from
		}
	}
	newer(&u.Input, n.Input)
	newer(&u.Read, n.Read)
	newer(&u.Written, n.Written)
	newer(&u.Output, n.Output)
	if n.Lifetime != nil {
		u.Lifetime = n.Lifetime
	}
	if n.Details != nil {
		u.Details = n.Details
	}
}

// tell normalises: input is all prompt tokens. Written ones live for ttl where the API does
// not say it.
func (u *usage) tell(info map[string]any, ttl string) {
	value := func(n *int64) int64 {
		if n == nil {
			return 0
		}
		return *n
	}
	set := func(key string, n *int64) {
		if n != nil {
			info[key] = *n
		}
	}
	if u.Input != nil {
		info[model.KeyInput] = value(u.Input) + value(u.Read) + value(u.Written)
	}
	set(model.KeyCached, u.Read)
	switch {
	case u.Lifetime != nil:
		set(model.KeyWrite5m, u.Lifetime.M5)
		set(model.KeyWrite1h, u.Lifetime.H1)
	case ttl == "1h":
		set(model.KeyWrite1h, u.Written)
	default:
		set(model.KeyWrite5m, u.Written)
	}
	set(model.KeyOutput, u.Output)
	if u.Details != nil {
		set(model.KeyReasoning, u.Details.Thinking)
	}
}
