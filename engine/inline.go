package engine

import (
	"fmt"

	"github.com/fxamacker/cbor/v2"

	"wf/cas"
	"wf/protocol"
)

// inline puts the long texts of an event back in place of their links. The result is for
// reading: it is not what was hashed.
func inline(read Reader, e *protocol.Event) error {
	var m map[string]cbor.RawMessage
	if err := cas.Decode(e.Data, &m); err != nil {
		return fmt.Errorf("event %d: %w", e.Seq, err)
	}
	spec, changed := e.Type.Spec(), false
	for key, raw := range m {
		if !spec.TextKey([]byte(key)) || len(raw) < 2 || raw[0] != 0xd8 || raw[1] != 0x2a {
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
