package tape

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/internal/wire"
	"wf/agentkit/model"
	"wf/protocol"
	"wf/roles"
)

// version of the file format.
const version = 1

// clean replaces what has the shape of a key. All else that a request holds was cleaned by the
// agent; a provider's own block goes back to it as it came.
var clean = roles.NewRedactor(nil).String

// line is one recorded call.
type line struct {
	V       int               `json:"v"`
	Key     string            `json:"key"` // digest of Request
	Model   string            `json:"model"`
	Role    string            `json:"role"`
	Visit   int               `json:"visit"`
	Item    *int              `json:"item,omitempty"`
	Call    int               `json:"call"`
	Kind    string            `json:"kind,omitempty"` // summary, goal or reflection; "" is a turn of the agent
	Request []json.RawMessage `json:"request"`        // tools and params, then one message each
	Reply   *model.Reply      `json:"reply,omitempty"`
	Failure *failure          `json:"failure,omitempty"`
}

// at reports whether the call was made at the place of a request.
func (l *line) at(r model.Request) bool {
	sameItem := l.Item == nil && r.Item == nil || l.Item != nil && r.Item != nil && *l.Item == *r.Item
	return sameItem && l.Role == r.Role && l.Visit == r.Visit && l.Call == r.Call
}

// failure is a call that did not work.
type failure struct {
	Class        model.Class `json:"class"`
	Status       int         `json:"status,omitempty"`
	RetryAfterMS int64       `json:"retry_after_ms,omitempty"`
	Message      string      `json:"message"`
}

// head is the part of a request beside its messages.
type head struct {
	Tools   []protocol.Tool `json:"tools"`
	Params  json.RawMessage `json:"params"`
	Summary bool            `json:"summary,omitempty"`
}

// requestLines is a request in the form in which it is hashed and compared.
func requestLines(messages []llms.MessageContent, opts *llms.CallOptions, r model.Request) ([]json.RawMessage, error) {
	h := head{Params: json.RawMessage(r.Params), Summary: r.Summary}
	if len(r.Params) == 0 {
		h.Params = json.RawMessage("null")
	}
	for _, t := range opts.Tools {
		if t.Function == nil {
			return nil, fmt.Errorf("a tool of type %q cannot be recorded", t.Type)
		}
		schema, err := protocol.CanonicalJSON(t.Function.Parameters)
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", t.Function.Name, err)
		}
		h.Tools = append(h.Tools, protocol.Tool{Name: t.Function.Name, Description: t.Function.Description, Parameters: schema})
	}
	first, err := wire.Encode(h)
	if err != nil {
		return nil, err
	}
	lines := []json.RawMessage{first}
	for i, mc := range messages {
		for _, m := range flatten(mc) {
			m.Opaque, m.IsError = clean(r.Opaque[i]), r.Failed[i]
			b, err := wire.Encode(m)
			if err != nil {
				return nil, fmt.Errorf("message %d: %w", i, err)
			}
			lines = append(lines, b)
		}
	}
	return lines, nil
}

// flatten gives a message in the words of protocol; each tool result is one of its own.
func flatten(mc llms.MessageContent) []protocol.Message {
	m := protocol.Message{Role: string(mc.Role)}
	var results []protocol.Message
	for _, p := range mc.Parts {
		switch p := p.(type) {
		case llms.TextContent:
			m.Content += p.Text
		case llms.ImageURLContent:
			m.Content += "![](" + p.URL + ")"
		case llms.BinaryContent:
			m.Content += "![](data:" + p.MIMEType + ";base64," + base64.StdEncoding.EncodeToString(p.Data) + ")"
		case llms.ToolCall:
			call := protocol.CallMessage{ID: p.ID}
			if p.FunctionCall != nil {
				call.Name, call.Arguments = p.FunctionCall.Name, p.FunctionCall.Arguments
			}
			m.ToolCalls = append(m.ToolCalls, call)
		case llms.ToolCallResponse:
			results = append(results, protocol.Message{Role: string(mc.Role), ToolCallID: p.ToolCallID, Content: p.Content})
		}
	}
	if results != nil {
		return results
	}
	return []protocol.Message{m}
}

// keyOf is the digest of a request.
func keyOf(lines []json.RawMessage) string {
	h := sha256.New()
	for _, l := range lines {
		h.Write(l)
		h.Write([]byte{'\n'})
	}
	return hex.EncodeToString(h.Sum(nil))
}
