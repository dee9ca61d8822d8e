package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"wf/api"
	"wf/protocol"
)

// Follow shows a run of a server. It outlives restarts of the server, of the hub and of the worker: it goes on
// behind the last event that was shown.
func (s Service) Follow(ctx context.Context, run protocol.RunID, w api.Following, show func(api.Update) error) error {
	t := &trail{s: s, blocks: &Blocks{API: s.API}, run: run, until: w.Until, at: Cursor{Seq: w.From}, show: show}
	ctx, t.leave = context.WithCancelCause(ctx)
	defer t.leave(nil)
	r := s.API.Replay(run)
	r.Codec, r.Cursor, r.To, r.Live = protocol.CBORFrames, t.at, w.To, w.Until != api.Recorded
	r.Once = w.Until == api.Recorded
	err := r.Follow(ctx, Consumer{
		Event: func(e Event) error { return t.event(ctx, e) },
		Delta: func(d protocol.LiveDelta) {
			t.failed = errors.Join(t.failed, show(api.Update{Run: run, Data: d.Delta, Step: d.Step, After: d.After, N: d.N}))
		},
		Reset: t.reset,
		Complete: func(Cursor) error {
			if err := t.back(); err != nil || w.Until == api.Recorded {
				return err
			}
			if w.Until == api.Never {
				return t.whole(ctx)
			}
			return t.there(ctx)
		},
		Lost: t.lost,
	})
	if errors.Is(err, errThere) {
		return nil
	}
	if said, ok := errors.AsType[*protocol.Error](err); ok && errors.Is(err, protocol.ErrFutureCursor) {
		return said // it names the run and the event
	}
	return err
}

// Replay asks for the events of a run.
func (a *API) Replay(run protocol.RunID) Replay {
	head := http.Header{}
	a.Authorize(head)
	return Replay{URL: a.Base() + "/v1/replay", HTTP: a.HTTP(), Header: head, Run: run}
}

// A trail is a run that is followed.
type trail struct {
	s      Service
	blocks *Blocks // with the long texts of events
	run    protocol.RunID
	until  api.Until
	at     Cursor // the last event that was shown
	show   func(api.Update) error

	failed error        // of show, for live output
	still  bool         // by the last event the run does not move
	end    protocol.Seq // the newest event of a run that is over, when the reader was behind it; 0 before
	gone   string       // why the connection is gone, as it was said; "" while there is one

	moved bool // the run was seen to go on, at a server that answered
	leave context.CancelCauseFunc
	stops *time.Timer // leaves a run that was suspended because a daemon stopped; nil where none was
}

// stopTime is how long a daemon that stops still answers, and one that has started leaves the runs alone that
// another one left behind.
const stopTime = 5 * time.Second

// goesOn has a run be followed further: the daemon that stops, or the connection to it, is on its way.
func (t *trail) goesOn() {
	if t.stops != nil {
		t.stops.Stop()
	}
	t.stops = nil
}

// errThere ends a stream: the run is where following it ends.
var errThere = errors.New("the run is where following it ends")

// event shows an event.
func (t *trail) event(ctx context.Context, e Event) error {
	t.goesOn()
	t.moved = t.moved || e.Live
	if err := errors.Join(t.failed, t.back()); err != nil {
		return err
	}
	u := api.Update{Run: t.run, Entry: &e.Entry, Step: e.StepName()}
	if t.s.Decode != nil {
		var err error
		if u, err = t.s.Decode(func(l protocol.Link) ([]byte, error) { return t.block(ctx, l) }, t.run, e.Entry); err != nil {
			return fmt.Errorf("run %s, event %d: %w", t.run, e.Seq, err)
		}
	}
	if err := errors.Join(t.failed, t.show(u)); err != nil {
		return err
	}
	t.at = Cursor{Seq: e.Seq, CID: e.CID}
	switch e.Type {
	case protocol.EvDone, protocol.EvCancelled, protocol.EvWaiting, protocol.EvSuspended:
		t.still = true
	case protocol.EvStepStarted, protocol.EvResumed, protocol.EvAnswered:
		t.still = false
	}
	if (t.until == api.Parked || t.until == api.Ended) && (e.Live && t.still || t.end > 0 && t.at.Seq >= t.end) {
		return t.there(ctx)
	}
	return nil
}

// reset goes back to the last event that two histories share: a head was put on another one.
func (t *trail) reset(c Cursor) error {
	t.at, t.still, t.end = c, false, 0
	return t.show(api.Update{Run: t.run, Remark: api.HeadMoved(t.run, c.Seq), Reset: &c.Seq})
}

// block reads a long text of an event. Where following the run outlives the connection, so does this.
func (t *trail) block(ctx context.Context, l protocol.Link) ([]byte, error) {
	for try := 0; ; try++ {
		data, err := t.blocks.Block(ctx, l)
		if err == nil || t.until == api.Recorded || !away(err) {
			return data, err
		}
		t.lost(err)
		select {
		case <-time.After(backoff(try)):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// away reports whether an error is over once the server, and the worker behind a hub, are back.
func away(err error) bool {
	return errors.Is(err, ErrUnreachable) || errors.Is(err, protocol.ErrWorkerAway) || errors.Is(err, protocol.ErrShuttingDown)
}

// whole says that all that is recorded was shown, and whether a process drives the run.
func (t *trail) whole(ctx context.Context) error {
	if err := t.show(api.Update{Run: t.run, Whole: true}); err != nil {
		return err
	}
	v, err := t.now(ctx)
	if err != nil || v == nil || v.Driven == nil {
		return err
	}
	return t.show(api.Update{Run: t.run, Driven: v.Driven})
}

// now is the run as it is. It is nil where the connection is as good as gone: it is asked again when that is back.
func (t *trail) now(ctx context.Context) (*api.Run, error) {
	v, err := t.s.Run(ctx, t.run, api.Window{Limit: 1})
	if err != nil && away(err) {
		return nil, nil
	}
	return v, err
}

// there is errThere where following the run ends, and all of it was shown: it may have ended after the last
// event that came.
func (t *trail) there(ctx context.Context) error {
	v, err := t.now(ctx)
	if err != nil || v == nil {
		return err
	}
	over := v.Status.Final() || t.until == api.Parked && v.Status != protocol.Running && v.Status != protocol.Queued
	switch {
	case over && t.moved && t.at.Seq >= v.Seq && v.Code == protocol.ErrServeStopped.Code && v.Status == protocol.Suspended:
		// The daemon goes on with it when it starts again: the connection breaks off now, or an event comes.
		t.goesOn()
		t.stops = time.AfterFunc(stopTime, func() { t.leave(errThere) })
	case over && t.at.Seq >= v.Seq:
		return errThere
	case over:
		t.end = v.Seq
	default:
		t.end, t.moved = 0, true
	}
	return nil
}

// lost says why the connection is gone, each reason once.
func (t *trail) lost(err error) {
	t.goesOn()
	why := err.Error()
	if said, ok := errors.AsType[*protocol.Error](err); ok { // what wraps it says which run, and after which event
		why = said.Message
	}
	if why = strings.Join(strings.Fields(why), " "); why != t.gone {
		t.failed = errors.Join(t.failed, t.show(api.Update{Run: t.run, Away: why, Remark: "not connected: " + why + "; it is tried again, Ctrl-C leaves"}))
	}
	t.gone = why
}

// back says that there is a connection again.
func (t *trail) back() error {
	if t.gone == "" {
		return nil
	}
	t.gone = ""
	return t.show(api.Update{Run: t.run, Remark: "connected again"})
}
