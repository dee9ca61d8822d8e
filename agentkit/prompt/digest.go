package prompt

import (
	"bytes"
	"cmp"
	"encoding/json"

	"wf/protocol"
)

// Bytes is the form in which a prompt is hashed and compared: JSON Lines, the tool list
// first ("[]" for none), then one message per line with its fields in fixed order and nothing
// escaped for HTML. Cache marks are no part of it.
func Bytes(tools string, messages []protocol.Message) []byte {
	tools = cmp.Or(tools, "[]")
	var buf bytes.Buffer
	buf.WriteString(tools)
	buf.WriteByte('\n')
	encodeLines(&buf, messages)
	return buf.Bytes()
}

// encodeLines writes messages, each on a line.
func encodeLines(buf *bytes.Buffer, messages []protocol.Message) {
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	for i := range messages {
		// A Message holds strings and bools alone, which encoding/json never refuses.
		_ = enc.Encode(&messages[i])
	}
}

// Digest names a prompt: the CID (raw, sha2-256) of its Bytes.
func Digest(tools string, messages []protocol.Message) protocol.Link {
	return protocol.RawLink(Bytes(tools, messages))
}

// Prefix compares two prompts of one conversation, in bytes of Bytes.
type Prefix struct {
	Shared int    // length of what both begin with
	Of     int    // length of the earlier prompt
	Part   string // where the first difference lies: tools, system, history; "" where there is none
}

// Whole reports whether all of the earlier prompt is shared.
func (p Prefix) Whole() bool { return p.Shared == p.Of }

// Ratio is Shared of Of, 1 for an empty earlier prompt.
func (p Prefix) Ratio() float64 {
	if p.Of == 0 {
		return 1
	}
	return float64(p.Shared) / float64(p.Of)
}

// Compare tells how much of the earlier prompt the later one begins with.
func Compare(earlier, later []byte) Prefix {
	n, short := 0, min(len(earlier), len(later))
	if bytes.Equal(earlier[:short], later[:short]) {
		n = short
	}
	for n < short && earlier[n] == later[n] {
		n++
	}
	p := Prefix{Shared: n, Of: len(earlier)}
	if p.Whole() {
		return p
	}
	switch line := bytes.Count(earlier[:n], []byte{'\n'}); {
	case line == 0:
		p.Part = "tools"
	case line == 1 && bytes.HasPrefix(lineAt(earlier, 1), []byte(`{"role":"system"`)):
		p.Part = "system"
	default:
		p.Part = "history"
	}
	return p
}

// Lasting is what all tasks of a role begin with: the tools and the system message, of the
// Bytes of one.
func Lasting(prompt []byte) []byte {
	end := 0
	for range 2 {
		end += bytes.IndexByte(prompt[end:], '\n') + 1
	}
	return prompt[:end]
}

// lineAt is line n of b, from 0.
func lineAt(b []byte, n int) []byte {
	for ; n > 0; n-- {
		_, b, _ = bytes.Cut(b, []byte{'\n'})
	}
	line, _, _ := bytes.Cut(b, []byte{'\n'})
	return line
}
