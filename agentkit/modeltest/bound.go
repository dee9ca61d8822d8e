package modeltest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
)

// A thought is bound to what stands before it: the tools, the system text, the messages, and the blocks of its own
// reply. So do the newest models sign it, and a thought behind anything else is refused. Leaving thoughts of finished
// turns out is allowed: what is signed later is signed without them.

// signature is that of a thought behind a prefix.
func signature(prefix []byte, thought string) string {
	return fmt.Sprintf("bound:%x", sha256.Sum256(append(append(bytes.Clone(prefix), 0), thought...)))[:40]
}

// prefix is what stands before a reply that goes behind the first n messages.
func (r *anthropicRequest) prefix(n int) []byte {
	var b bytes.Buffer
	for _, t := range r.Tools {
		b.Write(plain("tool", t))
	}
	for _, s := range r.System {
		b.Write(plain("system", s))
	}
	for _, m := range r.Messages[:n] {
		for _, block := range m.Content {
			b.Write(plain(m.Role, block))
		}
	}
	return b.Bytes()
}

// plain is a block in the one form that its content has: members sorted, without a mark, which is no content.
func plain(where string, raw json.RawMessage) []byte {
	var members map[string]any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&members) != nil {
		return append([]byte(where), raw...)
	}
	delete(members, "cache_control")
	return append([]byte(where), compact(members)...)
}

// boundProblem is which thought of a request stands where its model did not think it, "" for none.
func boundProblem(body []byte) string {
	var req anthropicRequest
	if json.Unmarshal(body, &req) != nil {
		return ""
	}
	for i, m := range req.Messages {
		before := req.prefix(i)
		for k, raw := range m.Content {
			var b struct{ Type, Thinking, Signature string }
			if json.Unmarshal(raw, &b) == nil && b.Type == "thinking" && b.Signature != signature(before, b.Thinking) {
				return fmt.Sprintf("messages.%d.content.%d: Invalid `signature` in `thinking` block. The block is bound to a different conversation.", i, k)
			}
			before = append(before, plain(m.Role, raw)...)
		}
	}
	return ""
}

// bound is an answer to a request with its thoughts signed; those that have a signature keep it.
func (a Answer) bound(body []byte) Answer {
	var req anthropicRequest
	if json.Unmarshal(body, &req) != nil {
		return a
	}
	before := req.prefix(len(req.Messages))
	var say []Piece
	for rest := a.Say; len(rest) > 0; {
		n, block := nextBlock(rest)
		say = append(say, rest[:n]...)
		if block["type"] == "thinking" && block["signature"] == "" {
			signed := signature(before, block["thinking"].(string))
			say = append(say, Piece{Signature: signed})
			block["signature"] = signed
		}
		if block != nil {
			before = append(before, plain("assistant", []byte(compact(block)))...)
		}
		rest = rest[n:]
	}
	a.Say = say
	return a
}

// nextBlock is the block that the first n pieces make, nil for none. The pieces of a call follow each other.
func nextBlock(pieces []Piece) (n int, block map[string]any) {
	var text, args strings.Builder
	more := func(same func(Piece) bool) {
		for n < len(pieces) && same(pieces[n]) {
			text.WriteString(pieces[n].Text + pieces[n].Thinking)
			n++
		}
	}
	switch p := pieces[0]; {
	case p.Text != "":
		more(func(p Piece) bool { return p.Text != "" })
		return n, map[string]any{"type": "text", "text": text.String()}
	case p.Thinking != "":
		more(func(p Piece) bool { return p.Thinking != "" })
		signed := ""
		if n < len(pieces) && pieces[n].Signature != "" {
			signed = pieces[n].Signature
			n++
		}
		return n, map[string]any{"type": "thinking", "thinking": text.String(), "signature": signed}
	case p.Redacted != "":
		return 1, map[string]any{"type": "redacted_thinking", "data": p.Redacted}
	case p.Block != nil:
		return 1, map[string]any(p.Block)
	case p.Call != nil:
		for ; n < len(pieces) && pieces[n].Call != nil && pieces[n].Call.Index == p.Call.Index; n++ {
			args.WriteString(pieces[n].Call.Args)
		}
		return n, map[string]any{"type": "tool_use", "id": p.Call.ID, "name": p.Call.Name, "input": json.RawMessage(args.String())}
	}
	return 1, nil
}
