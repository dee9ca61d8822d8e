package anthropic

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"wf/agentkit/internal/wire"
)

// The members of an opaque block that this package knows. Earlier versions made the older one, which tells not whose it is, and has one
// text at most.
const (
	keptAs  = "reply"
	olderAs = "anthropic"
)

// kept is a reply block by block, as the model of an address said it. Its texts and calls stand in the message.
type kept struct {
	Of     string  `json:"of"`  // the address and the model that said it
	Sum    string  `json:"sum"` // of its text and calls, which something may be hidden in since
	Blocks []piece `json:"blocks"`
}

// piece is a block of a reply. One without any member stands where a block was that cannot go back.
type piece struct {
	Text  *int                       `json:"text,omitempty"`  // a text of so many bytes
	Call  bool                       `json:"call,omitempty"`  // the next call
	Own   map[string]json.RawMessage `json:"own,omitempty"`   // members of a text or call that are not read here
	Raw   json.RawMessage            `json:"raw,omitempty"`   // any other block, whole
	Bound bool                       `json:"bound,omitempty"` // it is worth nothing where anything before it is another
}

// said is the text and the calls of a message.
type said struct {
	text  string
	calls []*block
}

// plain reports whether text and calls alone give these blocks again.
func plain(blocks []piece) bool {
	for i, p := range blocks {
		if p.Own != nil || !p.Call && (p.Text == nil || i > 0) {
			return false
		}
	}
	return true
}

// keptOf reads the provider's own block of a message, nil for none that the model of that name may get back.
func keptOf(own map[string]json.RawMessage, self string) (*kept, error) {
	if raw, ok := own[keptAs]; ok {
		var k kept
		if err := json.Unmarshal(raw, &k); err != nil {
			return nil, fmt.Errorf("the provider's own block: %w", err)
		}
		if k.Of != self {
			return nil, nil
		}
		return &k, nil
	}
	raw, ok := own[olderAs]
	if !ok {
		return nil, nil
	}
	var places []json.RawMessage
	if err := json.Unmarshal(raw, &places); err != nil {
		return nil, fmt.Errorf("the provider's own block is no list: %w", err)
	}
	k := &kept{Of: self}
	for _, place := range places {
		switch string(place) {
		case `"text"`:
			k.Blocks = append(k.Blocks, piece{Text: new(int)})
		case `"call"`:
			k.Blocks = append(k.Blocks, piece{Call: true})
		default:
			k.Blocks = append(k.Blocks, piece{Raw: place, Bound: isBound(place)})
		}
	}
	return k, nil
}

// isBound reports whether a block is worth nothing where anything before it is another.
// https://platform.claude.com/docs/en/build-with-claude/preserved-thinking/prefix-checks
func isBound(raw json.RawMessage) bool {
	var b struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(raw, &b) == nil && (b.Type == "thinking" || b.Type == "redacted_thinking")
}

// arrange puts a reply together. loose is that something before it is another than when it was said; with binding
// false nothing is bound: models that think by a budget want their thoughts back, and look at nothing before them.
func (k *kept) arrange(m said, loose, binding bool) (blocks []*block) {
	if k == nil {
		k = &kept{}
	}
	text := func(t string, own map[string]json.RawMessage) {
		if strings.TrimSpace(t) == "" { // the API refuses it
			loose = loose || k.Sum != ""
			return
		}
		blocks = append(blocks, &block{Type: "text", Text: t, own: own})
	}
	as := k.Sum == "" || k.Sum == m.sum() // text and calls are as they were said
	for _, p := range k.Blocks {
		switch {
		case p.Text != nil && k.Sum != "" && as && uint(*p.Text) <= uint(len(m.text)):
			text(m.text[:*p.Text], p.Own)
			m.text = m.text[*p.Text:]
		case p.Text != nil:
			text(m.text, nil)
			m.text, loose = "", loose || !as
		case p.Call && len(m.calls) > 0:
			m.calls[0].own = p.Own
			blocks, m.calls, loose = append(blocks, m.calls[0]), m.calls[1:], loose || !as
		case p.Raw == nil:
			loose = true
		case !p.Bound || !loose || !binding:
			blocks = append(blocks, &block{raw: p.Raw})
		}
	}
	text(m.text, nil)
	return append(blocks, m.calls...)
}

// sum tells a text with its calls from others.
func (m said) sum() string {
	h := sha256.New() // its Write never fails
	add := func(text string) { fmt.Fprintf(h, "%d %s", len(text), text) }
	add(m.text)
	for _, c := range m.calls {
		add(c.ID)
		add(c.Name)
		add(c.written)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// MarshalJSON writes raw blocks untouched, and adds the members of others that are not read here.
func (b *block) MarshalJSON() ([]byte, error) {
	if b.raw != nil {
		return b.raw, nil
	}
	type plain block
	out, err := wire.Encode((*plain)(b))
	if err != nil {
		return nil, err
	}
	return wire.With(out, b.own), nil
}
