package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"wf/agentkit/internal/wire"
)

// MarshalJSON adds the provider's own members.
func (m message) MarshalJSON() ([]byte, error) {
	type plain message
	out, err := wire.Encode(plain(m))
	if err != nil {
		return nil, err
	}
	for _, name := range reasoningFields {
		if member, ok := m.opaque[name]; ok {
			out = wire.With(out, map[string]json.RawMessage{name: member})
		}
	}
	return out, nil
}

// keptAs is the member of a provider's own block that holds what goes back to the same model at the same address alone. What
// earlier versions kept of a thought stands beside it, and goes back to any.
const keptAs = "own"

// kept is what a reply held that is not read here, and goes back as it came.
type kept struct {
	Of      string                       `json:"of"`              // the address and the model that said it
	Field   string                       `json:"field,omitempty"` // the member that holds a thought
	Thought string                       `json:"thought,omitempty"`
	Details json.RawMessage              `json:"reasoning_details,omitempty"` // signed, or encrypted: bound to what stands before them
	Calls   []map[string]json.RawMessage `json:"calls,omitempty"`             // members, by the place of the call
}

// keep is what is kept of a reply, nil for nothing.
func (s *stream) keep() *kept {
	k, any := &kept{Of: s.self}, false
	if s.field != "" && s.field != inContent {
		k.Field, k.Thought, any = s.field, s.reasoning.String(), true
	}
	if len(s.details) > 0 {
		k.Details, _ = wire.Encode(s.details) // it came as JSON
		any = true
	}
	for _, c := range s.calls {
		any = any || len(c.id) > mostID
	}
	if slices.ContainsFunc(s.calls, func(c *building) bool { return c.own != nil }) {
		for _, c := range s.calls {
			k.Calls = append(k.Calls, c.own)
		}
		any = true
	}
	if !any {
		return nil
	}
	return k
}

// giveBack adds what the same model said beside the message. moved is that something before it is another than when it was
// said: what is bound to that does not go back. A thought in words and what came with a call are not.
func (m *message) giveBack(self string, moved bool) error {
	raw, ok := m.opaque[keptAs]
	if !ok {
		return nil
	}
	var k kept
	if err := json.Unmarshal(raw, &k); err != nil {
		return fmt.Errorf("what the provider said: %w", err)
	}
	if m.other = k.Of != self; m.other {
		return nil
	}
	if k.Field != "" {
		m.opaque[k.Field], _ = wire.Encode(k.Thought) // a string always has a JSON form
	}
	if len(k.Details) > 0 && !moved {
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

// server is where messages go.
type server struct {
	self string // its address, and the model there
	nine bool   // it takes ids of nine letters and digits alone
}

// mostID is how long an id of a call may be for a server that did not make it.
const mostID = 64

// rename gives the calls, and their results, ids that the server takes: those of other servers may hold anything.
func (to server) rename(messages []message) {
	names := map[string]string{}
	for i := range messages {
		m := &messages[i]
		for j := range m.ToolCalls {
			id := m.ToolCalls[j].ID
			sum := sha256.Sum256([]byte(id))
			switch name := hex.EncodeToString(sum[:12]); {
			case to.nine && (len(id) != 9 || strings.Trim(id, letters) != ""):
				names[id] = name[:9]
			case m.other && len(id) > mostID:
				names[id] = "call_" + name
			default:
				continue
			}
			m.ToolCalls[j].ID = names[id]
		}
		if name, ok := names[m.ToolCallID]; ok && m.ToolCallID != "" {
			m.ToolCallID = name
		}
	}
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
