package client

import (
	"context"
	"fmt"

	"wf/protocol"
)

// Overhear makes one connection for what is said of a run, for a caller that has its journal from elsewhere: c.Delta
// is called for it, and c.Event for each event behind the cursor, or behind the head where that is zero; c.Complete
// says where the head was. Events are not checked, and one that is too long for a frame has nothing but its seq. The
// error says why the connection ended.
func (r *Replay) Overhear(ctx context.Context, c Consumer) error {
	f := &follower{r: r, c: c}
	w, hangUp, err := f.dial(ctx)
	if err != nil {
		return err
	}
	defer hangUp()
	q := protocol.Request{Type: protocol.FrameReplayRequest, SessionID: r.Run, Live: true, Batch: true}
	if r.Cursor.Seq > 0 {
		q.FromSeq = &r.Cursor.Seq
	}
	if err := w.send(q); err != nil {
		return err
	}
	for {
		frame, err := w.next()
		if err == nil {
			err = f.overhear(&frame)
		}
		if err != nil {
			return err
		}
	}
}

func (f *follower) overhear(frame *protocol.Frame) error {
	switch frame.Type {
	case protocol.FrameDelta:
		f.c.Delta(f.said(frame))
	case protocol.FrameReplayEvent, protocol.FrameEvent:
		return f.passing([]protocol.WireEvent{frame.Event})
	case protocol.FrameReplayBatch:
		return f.passing(frame.Events)
	case protocol.FrameReplayComplete:
		return f.c.Complete(Cursor{frame.LastSeq, frame.LastCID})
	case protocol.FrameReplayError:
		return f.told(frame)
	}
	return nil
}

func (f *follower) passing(all []protocol.WireEvent) error {
	for _, e := range all {
		out := Event{Entry: protocol.Entry{CID: e.CID, Event: protocol.Event{Seq: e.Seq, Type: e.Type, Step: e.Step}}}
		if e.Raw != nil {
			if err := protocol.DecodeEvent(e.Raw, &out.Event); err != nil {
				return fmt.Errorf("event %d: %w", e.Seq, err)
			}
		}
		if err := f.c.Event(out); err != nil {
			return err
		}
	}
	return nil
}
