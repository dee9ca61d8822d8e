package anthropic

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/internal/wire"
	"wf/agentkit/model"
)

// turn is a message of the wire.
type turn struct {
	Role    string   `json:"role"`
	Content []*block `json:"content"`
}

// block is one content block. Raw is sent as it stands; it takes no mark.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   string          `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
	Source    *source         `json:"source,omitempty"`
	Mark      *mark           `json:"cache_control,omitempty"`

	raw     json.RawMessage            // all of it
	own     map[string]json.RawMessage // members to add
	written string                     // the arguments of a call, as the model wrote them
}

// source is where an image comes from.
type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type,omitempty"`
	Data      string `json:"data,omitempty"`
	URL       string `json:"url,omitempty"`
}

// conversation is the messages of a request, with the places that marks go to.
type conversation struct {
	system []*block
	turns  []*turn

	blocks []*block // of all turns, in order
	prompt int      // of these: up to the end of U_k
	ends   []int    // of these: after each turn of results or corrections since
}

// noText stands where a message would be empty, which the API refuses.
const noText = "(no text)"

// convert makes the wire's messages. System messages come first; neighbours of the same side
// become one message, so that all results of a turn are together. self is the model that they go to; binding is that its thoughts
// are bound to what stands before them.
func convert(in []llms.MessageContent, r model.Request, self string, binding bool) (*conversation, error) {
	c := &conversation{}
	last := r.Prompt - 1
	if last < 0 || last >= len(in) {
		last = newestHuman(in)
	}
	for i, mc := range in {
		blocks, err := blocksOf(mc, r, i, self, binding)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		switch mc.Role {
		case llms.ChatMessageTypeSystem:
			if len(c.turns) > 0 {
				return nil, fmt.Errorf("message %d: a system message must come first", i)
			}
			c.system = append(c.system, blocks...)
		case llms.ChatMessageTypeAI:
			c.add("assistant", blocks, i > last)
		case llms.ChatMessageTypeHuman, llms.ChatMessageTypeGeneric, llms.ChatMessageTypeTool:
			c.add("user", blocks, i > last)
		default:
			return nil, fmt.Errorf("message %d has the role %q, which this wire lacks", i, mc.Role)
		}
		if i == last {
			c.prompt = len(c.blocks)
		}
	}
	return c, nil
}

func newestHuman(in []llms.MessageContent) int {
	for i := len(in) - 1; i >= 0; i-- {
		if in[i].Role == llms.ChatMessageTypeHuman || in[i].Role == llms.ChatMessageTypeGeneric {
			return i
		}
	}
	return len(in) - 1
}

// add appends blocks to the newest turn, if it is of that side, or begins another.
func (c *conversation) add(role string, blocks []*block, since bool) {
	n := len(c.turns)
	if n == 0 || c.turns[n-1].Role != role {
		c.turns = append(c.turns, &turn{Role: role})
		n++
		if since && role == "user" {
			c.ends = append(c.ends, 0)
		}
	}
	c.turns[n-1].Content = append(c.turns[n-1].Content, blocks...)
	c.blocks = append(c.blocks, blocks...)
	if since && role == "user" && len(c.ends) > 0 {
		c.ends[len(c.ends)-1] = len(c.blocks)
	}
}

// blocksOf are the content blocks of a message.
func blocksOf(mc llms.MessageContent, r model.Request, i int, self string, binding bool) ([]*block, error) {
	var text strings.Builder
	var m said
	var others []*block
	for _, p := range mc.Parts {
		switch p := p.(type) {
		case llms.TextContent:
			text.WriteString(p.Text)
		case llms.ToolCall:
			if p.FunctionCall == nil {
				return nil, fmt.Errorf("the tool call %s has no function", p.ID)
			}
			m.calls = append(m.calls, callBlock(p.ID, p.FunctionCall.Name, p.FunctionCall.Arguments))
		case llms.ToolCallResponse:
			others = append(others, &block{Type: "tool_result", ToolUseID: callID(p.ToolCallID), Content: p.Content, IsError: r.Failed[i]})
		case llms.ImageURLContent:
			others = append(others, &block{Type: "image", Source: &source{Type: "url", URL: p.URL}})
		case llms.BinaryContent:
			others = append(others, &block{Type: "image", Source: &source{Type: "base64", MediaType: p.MIMEType, Data: base64.StdEncoding.EncodeToString(p.Data)}})
		default:
			return nil, fmt.Errorf("a %T cannot be sent", p)
		}
	}
	m.text = text.String()
	own, err := r.Kept(i)
	if err != nil {
		return nil, err
	}
	k, err := keptOf(own, self)
	if err != nil {
		return nil, err
	}
	blocks := append(k.arrange(m, i < r.Moved, binding), others...)
	if len(blocks) == 0 {
		blocks = []*block{{Type: "text", Text: noText}}
	}
	return blocks, nil
}

// callBlock is a call of an assistant message.
func callBlock(id, name, arguments string) *block {
	return &block{Type: "tool_use", ID: callID(id), Name: wire.Name(name), Input: wire.Arguments(arguments), written: arguments}
}

const idLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

// callID is an id as this API takes it, ^[a-zA-Z0-9_-]{1,64}$; those of other providers may hold
// anything.
func callID(id string) string {
	if id != "" && len(id) <= 64 && strings.Trim(id, idLetters) == "" {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:12])
}
