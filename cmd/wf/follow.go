package main

import (
	"context"
	"errors"
	"fmt"

	"wf/cas"
	"wf/engine"
	"wf/hub/replay"
	"wf/protocol"
)

// each calls f for every event with seq > from. With follow it waits for more until the run is
// over. Where a head is put back under the reader, it goes on from the last event that both
// histories share.
func (a *app) each(ctx context.Context, s *cas.Store, r protocol.Request, f func(*protocol.Entry, protocol.Data) error) error {
	local := replay.Server{Feed: s}
	defer local.Close() // nothing is open any more
	sink := &eachSink{a: a, e: a.Engine(s, nil), run: r.SessionID, f: f}
	err := local.Follow(ctx, r, sink)
	if errors.Is(err, errWatched) {
		return nil
	}
	return err
}

// eachSink passes the events of a cursor to a function, with their data decoded.
type eachSink struct {
	a    *app
	e    *engine.Engine
	run  protocol.RunID
	f    func(*protocol.Entry, protocol.Data) error
	over bool // the last event that was read ends the run
}

func (s *eachSink) Events(ctx context.Context, batch []protocol.Entry, live bool) error {
	for i := range batch {
		e := &batch[i]
		n, err := s.e.Update(ctx, s.run, *e)
		if err != nil {
			return fmt.Errorf("run %s, event %d: %w", s.run, e.Seq, err)
		}
		if err := s.f(e, n.Data); err != nil {
			return err
		}
		s.over = e.Type == protocol.EvDone || e.Type == protocol.EvCancelled
	}
	if live && s.over {
		return errWatched
	}
	return nil
}

func (s *eachSink) Frame(_ context.Context, f *protocol.Frame) error {
	switch {
	case f.Type == protocol.FrameReset:
		s.over = false
		s.a.progress("the head of run %s was put on another history; event %d is the last of both", s.run, f.CommonSeq)
	case f.Type == protocol.FrameReplayComplete && s.over:
		return errWatched
	}
	return nil
}
