package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/model"
	"wf/protocol"
	"wf/protocol/lazy"
)

// Params are members of a request by name, ready to be written.
type Params map[string]any

// whole is a number in a definition of an earlier version, which holds a temperature of 1.0 as the text "1".
var whole = lazy.Regexp(`^-?[0-9]+$`)

// ParamsOf are the params of the role, decimals as numbers, or, outside of the agent loop,
// those that langchaingo has options for under the names they have on every wire. The names of
// owned are the adapter's own.
func ParamsOf(opts *llms.CallOptions, r model.Request, owned ...string) (Params, error) {
	p := Params{}
	if len(r.Params) > 0 {
		var given map[string]json.RawMessage
		if err := json.Unmarshal(r.Params, &given); err != nil {
			return nil, fmt.Errorf("params: %w", err)
		}
		for _, name := range owned {
			if _, ok := given[name]; ok {
				return nil, fmt.Errorf("params: %s is set by wf itself", name)
			}
		}
		for name, raw := range given {
			if text := strings.Trim(string(raw), `"`); slices.Contains(protocol.MeasureParams, name) && whole().MatchString(text) {
				raw = json.RawMessage(text)
			}
			dec := json.NewDecoder(bytes.NewReader(raw))
			dec.UseNumber()
			var value any
			if err := dec.Decode(&value); err != nil {
				return nil, fmt.Errorf("params: %s: %w", name, err)
			}
			p[name] = value
		}
		protocol.MapParams(map[string]any(p), func(at string, v any) any {
			if text, ok := v.(string); ok && protocol.DecimalParam(text, at, r.ParamsTexts) {
				return json.Number(text) // its digits untouched
			}
			return v
		})
		return p, nil
	}
	Add(p, "temperature", opts.Temperature)
	Add(p, "top_p", opts.TopP)
	Add(p, "max_tokens", opts.MaxTokens)
	return p, nil
}

// Add adds a number that is not zero.
func Add[T int | float64](p Params, name string, v T) {
	if v != 0 {
		p[name] = v
	}
}

// Take removes a param and decodes it into v; ok is false where there is none.
func (p Params) Take(name string, v any) (ok bool, err error) {
	value, ok := p[name]
	if !ok {
		return false, nil
	}
	delete(p, name)
	raw, err := Encode(value)
	if err == nil {
		err = json.Unmarshal(raw, v)
	}
	if err != nil {
		return true, fmt.Errorf("params: %s cannot be %s", name, cut(raw))
	}
	return true, nil
}

// cut is a value for messages.
func cut(raw []byte) string {
	if r := []rune(string(raw)); len(r) > 80 {
		return string(r[:80]) + "…"
	}
	return string(raw)
}

// engineOnly are the params that a llama-server alone knows.
var engineOnly = []string{"id_slot", "cache_prompt", "speculative"}

// TakeEngine removes the params that a local engine alone knows. The options of speculative:
// are then named as the server names them, speculative.n_max. An adapter of another server
// sends none of them.
func (p Params) TakeEngine() (Params, error) {
	own := Params{}
	for _, name := range engineOnly {
		if v, ok := p[name]; ok {
			own[name] = v
			delete(p, name)
		}
	}
	options := map[string]any{}
	if _, err := own.Take("speculative", &options); err != nil {
		return nil, err
	}
	for name, v := range options {
		own["speculative."+name] = v
	}
	return own, nil
}

// AddTo writes the params, sorted by name.
func (p Params) AddTo(o *Object) {
	for _, name := range slices.Sorted(maps.Keys(p)) {
		o.Add(name, p[name])
	}
}

// ToolChoice is what a model may or must call, in the words of no wire.
type ToolChoice struct {
	Mode string          // auto, none, any (OpenAI calls it required), tool; "" is not set
	Name string          // of the tool
	Raw  json.RawMessage // an object of a shape that is not known here, sent as it is
}

// TakeToolChoice reads tool_choice from the params or the options: a mode, the name of a tool,
// or an object as either wire writes it.
func (p Params) TakeToolChoice(opts *llms.CallOptions) (ToolChoice, error) {
	if _, ok := p["tool_choice"]; !ok && opts.ToolChoice != nil {
		p["tool_choice"] = opts.ToolChoice
	}
	var raw json.RawMessage
	if ok, err := p.Take("tool_choice", &raw); !ok || err != nil {
		return ToolChoice{}, err
	}
	var word string
	if json.Unmarshal(raw, &word) == nil {
		switch word {
		case "auto", "none", "any":
			return ToolChoice{Mode: word}, nil
		case "required":
			return ToolChoice{Mode: "any"}, nil
		case "":
			return ToolChoice{}, nil
		}
		return ToolChoice{Mode: "tool", Name: word}, nil
	}
	var shape struct {
		Type     string `json:"type"`
		Name     string `json:"name"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if err := json.Unmarshal(raw, &shape); err != nil {
		return ToolChoice{}, fmt.Errorf("params: tool_choice is neither a word nor an object: %s", cut(raw))
	}
	return ToolChoice{Mode: shape.Type, Name: shape.Name + shape.Function.Name, Raw: raw}, nil
}
