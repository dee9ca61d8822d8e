package protocol

import (
	"encoding/json"
	"fmt"

	"wf/protocol/dagcbor"
)

// InlineMax is the longest string, in bytes, that an event holds itself; a longer one is a
// link to a raw block.
const InlineMax = 1024

// Text is a string of an event: held inline, or, above InlineMax bytes, by a link to a raw
// block. The zero Text is null.
//
// A program fills S alone; the writer of the event moves long strings into blocks and sets
// Link. After reading, S is empty where Link is set until the block was fetched.
type Text struct {
	S    string
	Link Link
}

// NewText is an inline text of any length; the writer spills it.
func NewText(s string) Text { return Text{S: s} }

// Empty reports whether nothing was said.
func (t Text) Empty() bool { return t.S == "" && !t.Link.Defined() }

// Read gives the text; payload fetches it where it was moved to a block. Errors are those of payload.
func (t Text) Read(payload func(Link) ([]byte, error)) (string, error) {
	if t.S != "" || !t.Link.Defined() {
		return t.S, nil
	}
	b, err := payload(t.Link)
	return string(b), err
}

// MarshalCBOR writes the link where there is one, else the string, else null.
func (t Text) MarshalCBOR() ([]byte, error) {
	if t.Link.Defined() || t.S == "" {
		return t.Link.MarshalCBOR()
	}
	if len(t.S) > InlineMax {
		return nil, fmt.Errorf("text of %d bytes was not spilled to a block", len(t.S))
	}
	return dagcbor.AppendText(make([]byte, 0, len(t.S)+3), t.S), nil
}

// UnmarshalCBOR reads a string, a link or null.
func (t *Text) UnmarshalCBOR(b []byte) error {
	*t = Text{}
	w := dagcbor.Walk{B: b, Strict: true}
	if !w.Is(dagcbor.Text) {
		return t.Link.UnmarshalCBOR(b)
	}
	t.S = string(w.Text())
	return w.Err()
}

// MarshalJSON inlines the string where it is known, else writes the link, else null.
func (t Text) MarshalJSON() ([]byte, error) {
	if t.S == "" {
		return t.Link.MarshalJSON()
	}
	return json.Marshal(t.S)
}

// UnmarshalJSON reads a string, a link or null.
func (t *Text) UnmarshalJSON(b []byte) error {
	*t = Text{}
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &t.S)
	}
	return t.Link.UnmarshalJSON(b)
}
