package engine

import (
	"fmt"

	"github.com/fxamacker/cbor/v2"

	"wf/cas"
	"wf/protocol"
)

// textKeys are the keys under which an event holds a Text: a string, or a link to a long one.
var textKeys = map[string]bool{"description": true, "edgePrompt": true, "params": true, "content": true, "block": true,
	"args": true, "question": true, "form": true, "text": true, "fields": true, "detail": true, "summary": true, "error": true,
	"original": true, "state": true, "shared": true, "final_response": true}

// inline puts the long texts of an event back in place of their links. The result is for
// reading: it is not what was hashed.
func inline(read Reader, e *protocol.Event) error {
	var m map[string]cbor.RawMessage
	if err := cas.Decode(e.Data, &m); err != nil {
		return fmt.Errorf("event %d: %w", e.Seq, err)
	}
	changed := false
	for key, raw := range m {
		if !textKeys[key] || len(raw) < 2 || raw[0] != 0xd8 || raw[1] != 0x2a {
			continue
		}
		var l protocol.Link
		if err := l.UnmarshalCBOR(raw); err != nil {
			return fmt.Errorf("event %d, %s: %w", e.Seq, key, err)
		}
		text, err := protocol.PayloadBytes(read, l)
		if err != nil {
			return fmt.Errorf("event %d, %s: %w", e.Seq, key, err)
		}
		if m[key], err = cbor.Marshal(string(text)); err != nil {
			return err
		}
		changed = true
	}
	if !changed {
		return nil
	}
	data, err := cbor.Marshal(m)
	e.Data = data
	return err
}
