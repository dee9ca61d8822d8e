package engine

import (
	"fmt"

	"wf/protocol"
	"wf/protocol/dagcbor"
)

// inline puts the long texts of an event back in place of their links. The result is for
// reading: it is not what was hashed.
func inline(read Reader, e *protocol.Event) error {
	spec := e.Type.Spec()
	w := dagcbor.Walk{B: e.Data}
	if !spec.HasTexts() || !w.Is(dagcbor.Map) {
		return nil
	}
	_, _, n := w.Head()
	data := dagcbor.AppendHead(make([]byte, 0, len(e.Data)), dagcbor.Map, n)
	for ; n > 0 && !w.Failed(); n-- {
		from := w.At
		key := w.Text()
		if !spec.TextKey(key) || !w.Is(dagcbor.Tag) {
			w.Item()
			data = append(data, e.Data[from:w.At]...)
			continue
		}
		data = append(data, e.Data[from:w.At]...)
		text, err := protocol.PayloadBytes(read, protocol.ReadLink(&w))
		if err != nil {
			return fmt.Errorf("event %d, %s: %w", e.Seq, key, err)
		}
		data = dagcbor.AppendText(data, string(text))
	}
	if !w.Ended() {
		return fmt.Errorf("event %d: %w: %w", e.Seq, protocol.ErrCorrupt, w.Err())
	}
	e.Data = data
	return nil
}
