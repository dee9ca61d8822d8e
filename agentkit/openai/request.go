package openai

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

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
	other  bool                       // another model, or one elsewhere, said it
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
	return wire.With(out, c.own), nil
}

type function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// wireMessages turns langchaingo's messages into those of the wire; the first of them are the prompt of the visit.
func wireMessages(in []llms.MessageContent, r model.Request, to server) (out []message, prompt int, err error) {
	out = make([]message, 0, len(in))
	last := r.Prompt
	if last <= 0 || last > len(in) {
		last = len(in)
	}
	for i, mc := range in {
		if i == last {
			prompt = len(out)
		}
		if mc.Role == llms.ChatMessageTypeTool {
			results, err := toolResults(mc)
			if err != nil {
				return nil, 0, fmt.Errorf("message %d: %w", i, err)
			}
			out = append(out, results...)
			continue
		}
		m, err := wireMessage(mc, r, i, to)
		if err != nil {
			return nil, 0, fmt.Errorf("message %d: %w", i, err)
		}
		out = append(out, m)
	}
	if last == len(in) {
		prompt = len(out)
	}
	to.rename(out)
	return out, prompt, nil
}

var roleNames = map[llms.ChatMessageType]string{
	llms.ChatMessageTypeSystem: "system", llms.ChatMessageTypeAI: "assistant",
	llms.ChatMessageTypeHuman: "user", llms.ChatMessageTypeGeneric: "user",
}

// wireMessage is message i, which is none with results.
func wireMessage(mc llms.MessageContent, r model.Request, i int, to server) (m message, err error) {
	m.Role = roleNames[mc.Role]
	if m.opaque, err = r.Kept(i); err == nil && m.Role == "" {
		err = fmt.Errorf("it has the role %q, which this wire lacks", mc.Role)
	}
	if err == nil {
		err = m.fill(mc.Parts)
	}
	if err == nil {
		err = m.giveBack(to.self, i < r.Moved)
	}
	return m, err
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
