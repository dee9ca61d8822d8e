package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/hub/client"
	"wf/hub/replay"
	"wf/protocol"
	"wf/service"
)

// Follow shows a run, whatever process drives it: by the socket of that process while there is one, else by the
// store.
func (d *Daemon) Follow(ctx context.Context, run protocol.RunID, w api.Following, show func(api.Update) error) error {
	return newTrail(d.Service, run, w, show).follow(ctx)
}

// Follow drives a run that this process moved, and follows any other: by the socket of the process that drives it
// while there is one, else by the store.
func (f *Foreground) Follow(ctx context.Context, run protocol.RunID, w api.Following, show func(api.Update) error) error {
	t := newTrail(f.Local, run, w, show)
	if w.Until == api.Parked {
		if m, moved := f.moves.take(run); moved {
			err := t.drive(ctx, m.DriveOptions)
			if !m.shared || !errors.Is(err, protocol.ErrRunLive) {
				return err
			}
			if err := t.remark("another process goes on with the run"); err != nil {
				return err
			}
		}
	}
	return t.follow(ctx)
}

// A trail is a run that is followed.
type trail struct {
	of    *service.Local
	run   protocol.RunID
	to    protocol.Seq
	until api.Until
	at    client.Cursor // the last event that was shown
	show  func(api.Update) error

	over bool // the last event that was shown ends the run
	idle bool // it was said that no process drives the run
}

func newTrail(l *service.Local, run protocol.RunID, w api.Following, show func(api.Update) error) *trail {
	return &trail{of: l, run: run, to: w.To, until: w.Until, at: client.Cursor{Seq: w.From}, show: show}
}

// follow shows what other processes, and other parts of this one, do to the run. A store that is away meanwhile is waited for.
func (t *trail) follow(ctx context.Context) error {
	if t.until != api.Recorded {
		ctx = cas.Patient(ctx, ctx)
	}
	if t.until == api.Parked || t.until == api.Never {
		return t.watch(ctx)
	}
	return t.stored(ctx)
}

// errThere ends a stream: the run is where following it ends.
var errThere = errors.New("the run is where following it ends")

// errDriven ends following the store: a process drives the run now.
var errDriven = errors.New("a process drives the run")

// lookEvery is how often a socket is looked for while the store is followed.
const lookEvery = 100 * time.Millisecond

// quietAfter is when a user is told that no process drives a run that does not move.
const quietAfter = 2 * time.Second

func (t *trail) remark(text string) error { return t.show(api.Update{Run: t.run, Remark: text}) }

// drive shows what is recorded behind the cursor and then drives the run. Events of its sub-workflows belong to runs
// of their own, whose steps have the same names.
func (t *trail) drive(ctx context.Context, o engine.DriveOptions) error {
	for x, err := range t.of.Store.After(ctx, t.run, t.at.Seq) {
		if err == nil {
			err = t.event(ctx, x)
		}
		if err != nil {
			return err
		}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	live := NewLiveSockets(t.of.Store)
	defer live.Close()
	var failed error // to show an update
	_, err := t.of.Setup.Engine(t.of.Store, func(u api.Update) {
		live.Notice(u)
		if u.Run != t.run || failed != nil || u.Entry != nil && u.Entry.Seq <= t.at.Seq {
			return
		}
		if u.Entry != nil {
			t.at = client.Cursor{Seq: u.Entry.Seq, CID: u.Entry.CID}
		}
		if failed = t.show(u); failed != nil {
			stop(failed)
		}
	}).Drive(ctx, t.run, o)
	live.End(t.run)
	t.of.Note(ctx, t.of.Store, t.run)
	if failed != nil {
		return failed
	}
	return err
}

// watch shows a run with what is said before it is recorded.
func (t *trail) watch(ctx context.Context) error {
	for {
		err := t.live(ctx)
		if err == nil {
			look, stop := context.WithCancelCause(ctx)
			go t.look(look, stop)
			err = t.stored(look)
			stop(nil)
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !errors.Is(err, errDriven):
			return err
		}
	}
}

// live shows what the driving process says, until its socket is gone.
func (t *trail) live(ctx context.Context) error {
	r := replayAt(t.run, func(ctx context.Context) (net.Conn, error) { return DialRun(ctx, t.of.Store.Beside(), t.run) })
	r.Cursor = t.at
	var failed error // to show an update
	shown := func(err error) error {
		failed = errors.Join(failed, err)
		return failed
	}
	err := r.Follow(ctx, client.Consumer{
		Event: func(e client.Event) error { return shown(t.event(ctx, e.Entry)) },
		Delta: func(d protocol.LiveDelta) {
			_ = shown(t.show(api.Update{Run: t.run, Data: d.Delta, Step: d.Step, After: d.After, N: d.N})) // told with the next event
		},
		Reset:    func(c client.Cursor) error { return shown(t.reset(c)) },
		Complete: func(client.Cursor) error { return shown(errors.Join(t.driven(true), t.whole())) },
	})
	switch {
	case failed != nil:
		return failed
	case errors.Is(err, protocol.ErrCorrupt), errors.Is(err, protocol.ErrGap), errors.Is(err, protocol.ErrFutureCursor):
		return err
	}
	return nil // there is no such process, or no longer: the store has the rest
}

// look ends following the store when there is a socket to follow.
func (t *trail) look(ctx context.Context, stop context.CancelCauseFunc) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if c, err := DialRun(ctx, t.of.Store.Beside(), t.run); err == nil {
			c.Close()
			stop(errDriven)
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// stored shows what the store has, and what comes, until the run is where following it ends.
func (t *trail) stored(ctx context.Context) error {
	from := replay.Server{Feed: t.of.Store, Heartbeat: quietAfter}
	defer from.Close() // nothing is open any more
	err := from.Follow(ctx, protocol.Request{SessionID: t.run, FromSeq: &t.at.Seq, LastCID: t.at.CID, ToSeq: t.to, Live: t.until != api.Recorded}, recorded{t, ctx})
	if errors.Is(err, errThere) {
		return nil
	}
	return err
}

// recorded takes what a cursor reads from the store.
type recorded struct {
	*trail
	ctx context.Context
}

func (r recorded) Events(_ context.Context, batch []protocol.Entry, live bool) error {
	for _, e := range batch {
		if err := r.event(r.ctx, e); err != nil {
			return err
		}
	}
	if live {
		return r.there(r.ctx, false)
	}
	return nil
}

func (r recorded) Frame(_ context.Context, f *protocol.Frame) error {
	switch f.Type {
	case protocol.FrameReset:
		return r.reset(client.Cursor{Seq: f.CommonSeq, CID: f.CommonCID})
	case protocol.FrameReplayComplete:
		if err := r.whole(); err != nil {
			return err
		}
		return r.there(r.ctx, false)
	case protocol.FrameHeartbeat:
		return r.there(r.ctx, true)
	}
	return nil
}

// reset goes back to the last event that two histories share: a head was put on another one.
func (t *trail) reset(c client.Cursor) error {
	t.at, t.over = c, false
	return t.show(api.Update{Run: t.run, Remark: api.HeadMoved(t.run, c.Seq), Reset: &c.Seq})
}

// whole says that all that is recorded was shown, where following the run never ends.
func (t *trail) whole() error {
	if t.until != api.Never {
		return nil
	}
	return t.show(api.Update{Run: t.run, Whole: true})
}

// driven says whether a process drives the run, likewise.
func (t *trail) driven(is bool) error {
	if t.until != api.Never {
		return nil
	}
	return t.show(api.Update{Run: t.run, Driven: &is})
}

// event shows a stored event.
func (t *trail) event(ctx context.Context, e protocol.Entry) error {
	u, err := t.of.Engine.Update(ctx, t.run, e)
	if err != nil {
		return fmt.Errorf("run %s, event %d: %w", t.run, e.Seq, err)
	}
	if err := t.show(u); err != nil {
		return err
	}
	t.at = client.Cursor{Seq: e.Seq, CID: e.CID}
	t.over = e.Type == protocol.EvDone || e.Type == protocol.EvCancelled
	return nil
}

// there is errThere where following the run ends. A run that was cut off goes on being followed: its process was
// killed, and another may go on with it. quiet is that nothing happened for a while.
func (t *trail) there(ctx context.Context, quiet bool) error {
	switch {
	case t.until == api.Never && quiet:
		driven, err := t.isDriven(ctx)
		if err != nil {
			return err
		}
		return t.driven(driven)
	case t.until == api.Never:
		return nil
	case t.over && t.until != api.Recorded:
		return errThere
	case t.until != api.Parked:
		return nil
	}
	if driven, err := t.isDriven(ctx); err != nil || driven {
		return err
	}
	st, err := t.of.Engine.State(ctx, t.run)
	if err != nil {
		return err
	}
	switch status := st.Status(); {
	case status.Final(), status == protocol.Waiting, status == protocol.Suspended:
		return errThere
	case quiet && !t.idle:
		if d := t.of.Engine.Driving(ctx, t.run, st); d.Idle != "" {
			t.idle = true
			return t.show(api.Update{Run: t.run, Idle: d.Idle})
		}
	}
	return nil
}

// isDriven reports whether a process drives the run, or this one is about to.
func (t *trail) isDriven(ctx context.Context) (bool, error) {
	if t.of.Keeper.Drives(t.run) {
		return true, nil
	}
	return t.of.Store.Driven(ctx, t.run)
}
