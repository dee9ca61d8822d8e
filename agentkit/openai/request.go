package openai

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/internal/wire"
	"wf/agentkit/model"
)

type message struct {
	Role       string `json:"role"`
	Content    any    `json:"content"` // string, list of parts, or null beside tool calls
	ToolCalls  []call `json:"tool_calls,omitempty"`
	ToolCallID string `json:"tool_call_id,omitempty"`

	opaque map[string]json.RawMessage // members to add
}

type call struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function function `json:"function"`

	own map[string]json.RawMessage // members to add
}

// MarshalJSON adds the provider's own members.
func (c call) MarshalJSON() ([]byte, error) {
	type plain call
	out, err := wire.Encode(plain(c))
	if err != nil {
		return nil, err
	}
	return with(out, c.own, slices.Sorted(maps.Keys(c.own))), nil
}

// with adds those of the members that have a name of names to an object.
func with(object []byte, members map[string]json.RawMessage, names []string) []byte {
	for _, name := range names {
		if member, ok := members[name]; ok {
			key, _ := wire.Encode(name) // a string always has a JSON form
			object = append(append(append(append(object[:len(object)-1], ','), key...), ':'), member...)
			object = append(object, '}')
		}
	}
	return object
}

type function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// MarshalJSON adds the provider's own members.
func (m message) MarshalJSON() ([]byte, error) {
	type plain message
	out, err := wire.Encode(plain(m))
	if err != nil {
		return nil, err
	}
	return with(out, m.opaque, reasoningFields), nil
}

// keptAs is the member of a provider's own block that holds what goes back to the same model at the same address alone.
const keptAs = "own"

// kept is what a reply held that is not read here, and goes back as it came.
type kept struct {
	Of      string                       `json:"of"` // the address and the model that said it
	Details json.RawMessage              `json:"reasoning_details,omitempty"`
	Calls   []map[string]json.RawMessage `json:"calls,omitempty"` // members, by the place of the call
}

// giveBack adds what the same model said beside the message.
func (m *message) giveBack(of string) error {
	raw, ok := m.opaque[keptAs]
	if !ok {
		return nil
	}
	var k kept
	if err := json.Unmarshal(raw, &k); err != nil {
		return fmt.Errorf("what the provider said: %w", err)
	}
	if k.Of != of {
		return nil
	}
	if len(k.Details) > 0 {
		m.opaque[detailsField] = k.Details
	}
	for i := range min(len(k.Calls), len(m.ToolCalls)) {
		m.ToolCalls[i].own = k.Calls[i]
	}
	return nil
}

// reasoningFields are the members under which servers tell a thought. DeepSeek, Kimi and GLM
// want it back inside a tool loop.
var reasoningFields = []string{"reasoning_content", "reasoning", detailsField}

const detailsField = "reasoning_details"

// wireMessages turns langchaingo's messages into those of the wire; the first of them are the
// prompt of the visit. of is the address and the model that they go to.
func wireMessages(in []llms.MessageContent, r model.Request, of string) (out []message, prompt int, err error) {
	out = make([]message, 0, len(in))
	last := r.Prompt
	if last <= 0 || last > len(in) {
		last = len(in)
	}
	for i, mc := range in {
		if i == last {
			prompt = len(out)
		}
		own, err := r.Kept(i)
		if err != nil {
			return nil, 0, fmt.Errorf("message %d: %w", i, err)
		}
		m := message{opaque: own}
		switch mc.Role {
		case llms.ChatMessageTypeSystem:
			m.Role = "system"
		case llms.ChatMessageTypeAI:
			m.Role = "assistant"
		case llms.ChatMessageTypeHuman, llms.ChatMessageTypeGeneric:
			m.Role = "user"
		case llms.ChatMessageTypeTool:
			results, err := toolResults(mc)
			if err != nil {
				return nil, 0, fmt.Errorf("message %d: %w", i, err)
			}
			out = append(out, results...)
			continue
		default:
			return nil, 0, fmt.Errorf("message %d has the role %q, which this wire lacks", i, mc.Role)
		}
		err = m.fill(mc.Parts)
		if err == nil {
			err = m.giveBack(of)
		}
		if err != nil {
			return nil, 0, fmt.Errorf("message %d: %w", i, err)
		}
		out = append(out, m)
	}
	if last == len(in) {
		prompt = len(out)
	}
	return out, prompt, nil
}

// toolResults gives each result of a message its own, as the wire wants it.
func toolResults(mc llms.MessageContent) ([]message, error) {
	var out []message
	for _, p := range mc.Parts {
		r, ok := p.(llms.ToolCallResponse)
		if !ok {
			return nil, fmt.Errorf("a tool message holds a %T", p)
		}
		out = append(out, message{Role: "tool", Content: r.Content, ToolCallID: r.ToolCallID})
	}
	return out, nil
}

type part struct {
	Type     string    `json:"type"`
	Text     string    `json:"text,omitempty"`
	ImageURL *imageURL `json:"image_url,omitempty"`

	Mark *breakpoint `json:"prompt_cache_breakpoint,omitempty"`
}

// breakpoint marks the end of a prefix that can be read again.
type breakpoint struct {
	Mode string `json:"mode"`
}

type imageURL struct {
	URL    string `json:"url"`
	Detail string `json:"detail,omitempty"`
}

// fill sets content and calls. Text alone is sent as a string: one shape, live and rebuilt.
func (m *message) fill(parts []llms.ContentPart) error {
	var text string
	var list []part
	media := false
	for _, p := range parts {
		switch p := p.(type) {
		case llms.TextContent:
			text += p.Text
			list = append(list, part{Type: "text", Text: p.Text})
		case llms.ImageURLContent:
			media = true
			list = append(list, part{Type: "image_url", ImageURL: &imageURL{p.URL, p.Detail}})
		case llms.BinaryContent:
			media = true
			url := "data:" + p.MIMEType + ";base64," + base64.StdEncoding.EncodeToString(p.Data)
			list = append(list, part{Type: "image_url", ImageURL: &imageURL{URL: url}})
		case llms.ToolCall:
			if p.FunctionCall == nil {
				return fmt.Errorf("the tool call %s has no function", p.ID)
			}
			m.ToolCalls = append(m.ToolCalls, call{ID: p.ID, Type: "function", Function: function{wire.Name(p.FunctionCall.Name), string(wire.Arguments(p.FunctionCall.Arguments))}})
		default:
			return fmt.Errorf("a %T cannot be sent", p)
		}
	}
	switch {
	case media:
		m.Content = list
	case text != "" || len(m.ToolCalls) == 0:
		m.Content = text
	}
	return nil
}

// foreignParams adds what langchaingo has further options for, outside of the agent loop.
func foreignParams(p wire.Params, opts *llms.CallOptions, r model.Request) {
	if len(r.Params) > 0 {
		return
	}
	wire.Add(p, "seed", opts.Seed)
	wire.Add(p, "frequency_penalty", opts.FrequencyPenalty)
	wire.Add(p, "presence_penalty", opts.PresencePenalty)
	if len(opts.StopWords) > 0 {
		p["stop"] = opts.StopWords
	}
	if opts.JSONMode {
		p["response_format"] = json.RawMessage(`{"type":"json_object"}`)
	}
}

// toolChoice is the choice in the words of this wire, nil for none.
func toolChoice(c wire.ToolChoice) any {
	switch c.Mode {
	case "":
		return nil
	case "auto", "none":
		return c.Mode
	case "any":
		return "required"
	case "tool", "function":
		return map[string]any{"type": "function", "function": map[string]string{"name": c.Name}}
	}
	return c.Raw
}
