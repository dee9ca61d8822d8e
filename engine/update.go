package engine

import (
	"context"
	"fmt"

	"wf/api"
	"wf/protocol"
	"wf/protocol/dagcbor"
)

// Update is the message to Watch for a stored event, long texts in place.
func (e *Engine) Update(ctx context.Context, run protocol.RunID, x protocol.Entry) (api.Update, error) {
	return ReadUpdate(e.reader(ctx), run, x)
}

// ReadUpdate is Update for an event of a run that lies elsewhere; read finds its long texts.
func ReadUpdate(read Reader, run protocol.RunID, x protocol.Entry) (api.Update, error) {
	whole := x.Event
	if err := inline(read, &whole); err != nil {
		return api.Update{}, err
	}
	d, err := whole.AnyData()
	return api.Update{Run: run, Entry: &x, Data: d, Step: x.StepName()}, err
}

// notifyStored passes the watcher events that another process wrote.
func (e *Engine) notifyStored(ctx context.Context, run protocol.RunID, entries []protocol.Entry) error {
	if e.Watch == nil {
		return nil
	}
	for _, x := range entries {
		n, err := e.Update(ctx, run, x)
		if err != nil {
			return err
		}
		e.Watch(n)
	}
	return nil
}

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
