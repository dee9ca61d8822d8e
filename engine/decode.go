package engine

import (
	"context"

	"wf/cas"
	"wf/protocol"
)

// moves are the event types that move a State; the others are not decoded when folding.
var moves = map[protocol.EventType]bool{protocol.EvRunStarted: true, protocol.EvStepStarted: true, protocol.EvStepCompleted: true,
	protocol.EvAttemptFailed: true, protocol.EvWaiting: true, protocol.EvAnswered: true, protocol.EvApproval: true, protocol.EvMessage: true, protocol.EvUsage: true, protocol.EvSuspended: true,
	protocol.EvCompacted: true, protocol.EvCompactionAsked: true, protocol.EvCancelled: true, protocol.EvLimitChanged: true, protocol.EvForked: true, protocol.EvDone: true}

func decodeFolded(e *protocol.Event) (protocol.Data, error) {
	if !moves[e.Type] {
		return nil, nil
	}
	return cas.AnyData(e)
}

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
