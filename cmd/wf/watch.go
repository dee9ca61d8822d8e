package main

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/cas"
	"wf/daemon"
	"wf/engine"
	"wf/hub/client"
	"wf/hub/replay"
	"wf/protocol"
)

func newWatch(a *app) *cobra.Command {
	var from int64
	cmd := &cobra.Command{
		Use:   "watch [RUN]",
		Short: "Watch a run that another process drives",
		Long: `Watch a run as it happens, with what models and commands say before it is recorded. It ends when the
run ends or parks, with the exit status of the run. Ctrl-C leaves; the run goes on.`,
		Example: `  wf run workflow.yaml --detach && wf watch -1
  wf watch 7K3Q -o jsonl | jq 'select(.type == "tool_call")'`,
		Args: takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if from < 0 {
				return fail(protocol.ErrBadCursor, "", "--from %d: want the seq of the last event held, 0 for all", from)
			}
			ctx := cmd.Context()
			return a.withRun(ctx, latestUnless(args), func(s *cas.Store, run protocol.RunID) error {
				return a.watch(ctx, s, run, protocol.Seq(from), a.newWatchReporter)
			})
		},
	}
	a.everyFlag(cmd.Flags())
	cmd.Flags().Int64Var(&from, "from", 0, "only the events after this seq")
	return cmd
}

// watch shows a run until it is over or nobody goes on with it, and ends as it did.
func (a *app) watch(ctx context.Context, s *cas.Store, run protocol.RunID, from protocol.Seq, rep func(backdrop) reporter) error {
	if err := a.attend(ctx, s, run, from, rep); err != nil {
		return err
	}
	v, err := a.shown(ctx, a.Engine(s, nil), run)
	if err != nil {
		return err
	}
	if err := a.showOutcome(v); err != nil {
		return err
	}
	return outcome(v)
}

// attend shows what happens in a run until it is over or nobody goes on with it.
func (a *app) attend(ctx context.Context, s *cas.Store, run protocol.RunID, from protocol.Seq, rep func(backdrop) reporter) error {
	e := a.Engine(s, nil)
	st, err := e.State(ctx, run)
	if err != nil {
		return err
	}
	b := backdrop{ctx: context.WithoutCancel(ctx), blocks: s, edges: st.Program().Workflow.Edges, steers: map[string]bool{}, guest: true}
	w := &watcher{a: a, s: s, e: e, run: run, at: client.Cursor{Seq: from}, rep: rep(b)}
	defer w.rep.close()
	return w.watch(ctx)
}

// newWatchReporter picks how a stream is shown; it is the answer, and goes to stdout.
func (a *app) newWatchReporter(b backdrop) reporter {
	switch {
	case a.format == "json", a.quiet && a.format != "jsonl":
		return silence{}
	case a.format == "jsonl":
		return &jsonLines{a: a}
	case a.out.tty:
		return &spokenScreen{backdrop: b, w: a.out, paint: paint{a.out.color}}
	}
	return &plainLines{w: a.out, backdrop: b, fold: a.newFolder()}
}

// watcher follows a run: by the socket of the process that drives it while there is one, else
// by the store.
type watcher struct {
	a   *app
	s   *cas.Store
	e   *engine.Engine
	run protocol.RunID
	at  client.Cursor
	rep reporter

	told bool // that nobody drives the run
}

// errWatched ends a stream: the last event of the run was shown.
var errWatched = errors.New("the run is over")

// errDriven ends following the store: a process drives the run now.
var errDriven = errors.New("a process drives the run")

// lookEvery is how often a socket is looked for while the store is followed.
const lookEvery = 100 * time.Millisecond

// quietAfter is when a run that nobody drives and that does not move is told to be such.
const quietAfter = 2 * time.Second

func (w *watcher) watch(ctx context.Context) error {
	for {
		err := w.live(ctx)
		if err == nil {
			err = w.stored(ctx)
		}
		switch {
		case errors.Is(err, errWatched):
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !errors.Is(err, errDriven):
			return err
		}
	}
}

// live shows what the driving process says, until its socket is gone.
func (w *watcher) live(ctx context.Context) error {
	r := client.Replay{URL: "http://wf/v1/replay", Codec: protocol.CBORFrames, Run: w.run, Cursor: w.at, Live: true, Patience: -1,
		HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return daemon.DialRun(ctx, w.s.Dir(), w.run)
		}}}}
	var stop error
	err := r.Follow(ctx, client.Consumer{
		Event: func(e client.Event) error {
			stop = w.show(ctx, e.Entry)
			return stop
		},
		Delta: func(d protocol.LiveDelta, _ int64) { w.delta(d) },
		Reset: func(c client.Cursor) error { w.at = c; return nil },
	})
	switch {
	case stop != nil:
		return stop
	case errors.Is(err, protocol.ErrCorrupt), errors.Is(err, protocol.ErrGap), errors.Is(err, protocol.ErrFutureCursor):
		return err
	}
	return nil // nobody there, or no longer: the store has the rest
}

// stored shows what the store has, and goes on until the run is over, parked or driven.
func (w *watcher) stored(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	local := replay.Server{Feed: w.s, Heartbeat: quietAfter}
	defer local.Close()
	request := protocol.Request{SessionID: w.run, FromSeq: &w.at.Seq, LastCID: w.at.CID, Live: true}
	go w.look(ctx, stop)
	return local.Follow(ctx, request, storedSink{w, ctx})
}

// look ends following the store when there is a socket to follow.
func (w *watcher) look(ctx context.Context, stop context.CancelCauseFunc) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if c, err := daemon.DialRun(ctx, w.s.Dir(), w.run); err == nil {
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

// storedSink shows what a cursor reads from the store.
type storedSink struct {
	w   *watcher
	ctx context.Context
}

func (s storedSink) Events(_ context.Context, batch []protocol.Entry, live bool) error {
	for _, e := range batch {
		if err := s.w.show(s.ctx, e); err != nil {
			return err
		}
	}
	if live {
		return s.w.parked(s.ctx, false)
	}
	return nil
}

func (s storedSink) Frame(_ context.Context, f *protocol.Frame) error {
	switch f.Type {
	case protocol.FrameReset:
		s.w.at = client.Cursor{Seq: f.CommonSeq, CID: f.CommonCID}
	case protocol.FrameReplayComplete, protocol.FrameHeartbeat:
		return s.w.parked(s.ctx, f.Type == protocol.FrameHeartbeat)
	}
	return nil
}

// show passes an event to the screen.
func (w *watcher) show(ctx context.Context, e protocol.Entry) error {
	n, err := w.e.Update(ctx, w.run, e)
	if err != nil {
		return err
	}
	w.rep.notice(n)
	w.at = client.Cursor{Seq: e.Seq, CID: e.CID}
	if e.Type == protocol.EvDone || e.Type == protocol.EvCancelled {
		return errWatched
	}
	return nil
}

// delta passes live output to the screen; it is no event, and has a line of its own in JSON.
func (w *watcher) delta(d protocol.LiveDelta) {
	if j, ok := w.rep.(*jsonLines); ok {
		f := protocol.Frame{Type: protocol.FrameDelta, AfterSeq: d.After, Step: d.Step, N: d.N, Kind: d.Delta.Kind, Text: d.Delta.Text}
		if b, err := f.Encode(protocol.JSONFrames); err == nil {
			if err := line(j.a.out, json.RawMessage(b)); err != nil {
				w.a.progress("error: live output was not shown: %v", err)
			}
		}
		return
	}
	w.rep.notice(api.Update{Run: w.run, Step: d.Step, Data: d.Delta})
}

// parked ends the watch of a run that waits or is suspended, unless someone drives it. One that
// was cut off stays: its process was killed, and it may be gone on with. quiet is that nothing
// happened for a while: then the user is told.
func (w *watcher) parked(ctx context.Context, quiet bool) error {
	if driven, err := w.s.Driven(w.run); err != nil || driven {
		return err
	}
	st, err := w.e.State(ctx, w.run)
	if err != nil {
		return err
	}
	switch status := st.Status(); {
	case status.Final(), status == protocol.Waiting, status == protocol.Suspended:
		return errWatched
	case quiet && !w.told:
		if stands := (standing{status, w.e.Driving(ctx, w.run, st).Idle}); stands.idle != "" {
			w.told = true
			w.a.progress("%s: %s; %s goes on with it", stands.word(), stands.why(), resumes(w.run, st.Info.Parent, st.Info.Forked.Defined()))
		}
	}
	return nil
}
