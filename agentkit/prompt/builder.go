package prompt

import (
	"bytes"

	"wf/protocol"
)

// A Builder writes the prompts of many visits of a run, and of each only what the one before it in
// its conversation does not begin with. The zero Builder is ready; it is for one goroutine.
type Builder struct {
	newest map[speaker]*written
}

// speaker is a role, or one item of a fan-out of it: they have conversations of their own.
type speaker struct {
	role string
	item int // −1 for none
}

// written is the prompt that was written last.
type written struct {
	tools    string
	messages []protocol.Message
	ends     []int // where the line of each message ends in bytes
	bytes    []byte
}

// Prompt is the Bytes of BuildMessages. Prompts of one conversation share memory: no caller
// alters them.
func (b *Builder) Prompt(h protocol.History) ([]byte, error) {
	messages, err := BuildMessages(h)
	if err != nil {
		return nil, err
	}
	by := speaker{h.Visit.Role, -1}
	if h.Visit.Item != nil {
		by.item = *h.Visit.Item
	}
	if b.newest == nil {
		b.newest = map[speaker]*written{}
	}
	w := b.newest[by]
	if w == nil || w.tools != h.Tools {
		w = &written{tools: h.Tools, bytes: Bytes(h.Tools, nil)}
		b.newest[by] = w
	}
	w.write(messages)
	return w.bytes, nil
}

// write goes over to other messages. Bytes that were given out stay: what differs is appended
// behind them, or to a copy.
func (w *written) write(messages []protocol.Message) {
	same := 0
	for same < min(len(messages), len(w.messages)) && alike(&messages[same], &w.messages[same]) {
		same++
	}
	if same < len(w.ends) {
		start := bytes.IndexByte(w.bytes, '\n') + 1 // behind the tools
		if same > 0 {
			start = w.ends[same-1]
		}
		w.bytes = w.bytes[:start:start]
	}
	w.ends = w.ends[:same]
	buf := bytes.NewBuffer(w.bytes)
	for i := same; i < len(messages); i++ {
		encodeLines(buf, messages[i:i+1])
		w.ends = append(w.ends, buf.Len())
	}
	w.bytes, w.messages = buf.Bytes(), messages
}

// alike reports whether two messages of a prompt are the same: words alone.
func alike(a, b *protocol.Message) bool {
	return a.Role == b.Role && a.Content == b.Content && len(a.ToolCalls)+len(b.ToolCalls) == 0 &&
		a.ToolCallID == b.ToolCallID && a.Opaque == b.Opaque && a.IsError == b.IsError
}
