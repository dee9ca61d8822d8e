package engine

import (
	"context"

	"wf/cas"
	"wf/protocol"
)

// Notice makes what Watch is told of a stored event, long texts in place.
func (e *Engine) Notice(ctx context.Context, run protocol.RunID, x protocol.Entry) (Notice, error) {
	return ReadNotice(e.reader(ctx), run, x)
}

// ReadNotice is Notice for an event of a run that lies elsewhere, whose long texts read finds.
func ReadNotice(read Reader, run protocol.RunID, x protocol.Entry) (Notice, error) {
	whole := x.Event
	if err := inline(read, &whole); err != nil {
		return Notice{}, err
	}
	d, err := cas.AnyData(&whole)
	return Notice{Run: run, Entry: &x, Data: d, Step: x.StepName()}, err
}

// tellStored tells the watcher of events that another process wrote.
func (e *Engine) tellStored(ctx context.Context, run protocol.RunID, entries []protocol.Entry) error {
	if e.Watch == nil {
		return nil
	}
	for _, x := range entries {
		n, err := e.Notice(ctx, run, x)
		if err != nil {
			return err
		}
		e.Watch(n)
	}
	return nil
}
