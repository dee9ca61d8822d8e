package tape

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/aymanbagabas/go-udiff"

	"wf/agentkit/model"
	"wf/protocol"
)

// diffMax bounds the diff of a miss, in bytes.
const diffMax = 2_000

// miss says how a request differs from the nearest one that was recorded: that of the same
// place, else the one with which it shares the most messages.
func (m *Model) miss(lines []json.RawMessage, r model.Request) string {
	where := fmt.Sprintf("no answer is recorded for call %d of %s#%d", r.Call+1, r.Role, r.Visit)
	if r.Role == "" {
		where = "no answer is recorded for this request"
	}
	if len(m.lines) == 0 {
		return where + ": the recording is empty"
	}
	best, most := -1, -1
	for i := range m.lines {
		l := &m.lines[i]
		n := 2 * shared(l.Request, lines)
		if l.at(r) {
			n += 1 + 2*len(lines)
		}
		if n > most {
			best, most = i, n
		}
	}
	near := &m.lines[best]
	at := shared(near.Request, lines)
	part := fmt.Sprintf("message %d", at-1)
	if at == 0 {
		part = "the list of tools, or the params"
	}
	name := fmt.Sprintf("line %d (call %d of %s#%d)", best+1, near.Call+1, near.Role, near.Visit)
	diff := udiff.Unified("recorded", "sent", textAt(near.Request, at), textAt(lines, at))
	if len(diff) > diffMax {
		diff = string(bytes.ToValidUTF8([]byte(diff[:diffMax]), nil)) + "…"
	}
	return fmt.Sprintf("%s; it differs from %s in %s:\n%s\nFix: put it back, or record again with wf run --record", where, name, part, diff)
}

// shared is how many lines two requests begin with.
func shared(a, b []json.RawMessage) int {
	n := 0
	for n < len(a) && n < len(b) && bytes.Equal(a[n], b[n]) {
		n++
	}
	return n
}

// textAt is a line of a request for people; "" beyond its end.
func textAt(lines []json.RawMessage, at int) string {
	if at >= len(lines) {
		return ""
	}
	var m protocol.Message
	if at == 0 || json.Unmarshal(lines[at], &m) != nil {
		var b bytes.Buffer
		if json.Indent(&b, lines[at], "", "  ") != nil {
			return string(lines[at]) + "\n"
		}
		return b.String() + "\n"
	}
	text := m.Role + ":\n" + m.Content + "\n"
	for _, c := range m.ToolCalls {
		text += fmt.Sprintf("call %s %s %s\n", c.ID, c.Name, c.Arguments)
	}
	if m.ToolCallID != "" {
		text = "result of " + m.ToolCallID + ", error " + fmt.Sprint(m.IsError) + ":\n" + m.Content + "\n"
	}
	return text
}
