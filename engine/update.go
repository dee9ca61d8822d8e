package engine

import (
	"context"

	"wf/api"
	"wf/cas"
	"wf/protocol"
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
	d, err := cas.AnyData(&whole)
	return api.Update{Run: run, Entry: &x, Data: d, Step: x.StepName()}, err
}

// tellStored tells the watcher of events that another process wrote.
func (e *Engine) tellStored(ctx context.Context, run protocol.RunID, entries []protocol.Entry) error {
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
