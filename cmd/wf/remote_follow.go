package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/pflag"

	"wf/api"
	"wf/engine"
	"wf/hub/client"
	"wf/protocol"
)

// A remoteFollower shows a run of a server as it happens. It outlives restarts of the server, of
// the hub and of the agent: it goes on behind the last event that it has shown.
type remoteFollower struct {
	*remote
	run    protocol.RunID
	blocks *remoteBlocks
	rep    reporter
	step   string       // only this one, "" is all
	to     protocol.Seq // the last event that is wanted; 0 is all
	// until reports whether the run is over for the reader, and which event is its newest; nil is when it
	// is complete.
	until func(context.Context) (over bool, newest protocol.Seq, err error)

	seen protocol.Seq // the last event that was received
	end  protocol.Seq // the newest event of a run that is over, when the reader was behind it; 0 before
	gone string       // why the connection is gone, as it was told; "" while there is one
}

// lost tells why the connection is gone, each reason once.
func (f *remoteFollower) lost(err error) {
	why := err.Error()
	var said *protocol.Error
	if errors.As(err, &said) { // what wraps it says which run, and after which event
		why = said.Message
	}
	if why = oneLine(why, 200); why != f.gone {
		f.progress("not connected: %s; it is tried again, Ctrl-C leaves", why)
	}
	f.gone = why
}

// back tells that there is a connection again.
func (f *remoteFollower) back() {
	if f.gone != "" {
		f.progress("connected again")
	}
	f.gone = ""
}

// errOver ends following a run.
var errOver = errors.New("the run is over")

func (f *remoteFollower) follow(ctx context.Context, from protocol.Seq) error {
	f.seen = from
	head := http.Header{}
	f.api.Authorize(head)
	r := client.Replay{URL: f.api.Base() + "/v1/replay", HTTP: f.api.HTTP(), Header: head, Codec: protocol.CBORFrames,
		Run: f.run, Cursor: client.Cursor{Seq: from}, To: f.to, Live: f.until != nil}
	if f.until == nil {
		r.Patience = -1
	}
	parked := false
	err := r.Follow(ctx, client.Consumer{
		Event: func(e client.Event) error {
			f.back()
			if err := f.show(ctx, e.Entry); err != nil {
				return err
			}
			f.seen = e.Seq
			switch e.Type {
			case protocol.EvDone, protocol.EvCancelled, protocol.EvWaiting, protocol.EvSuspended:
				parked = true
			case protocol.EvStepStarted, protocol.EvResumed, protocol.EvAnswered:
				parked = false
			}
			if f.until != nil && (e.Live && parked || f.end > 0 && f.seen >= f.end) {
				return f.asked(ctx)
			}
			return nil
		},
		Delta: func(d protocol.LiveDelta, _ int64) { f.delta(d) },
		Complete: func(client.Cursor) error {
			f.back()
			if f.until == nil {
				return nil
			}
			return f.asked(ctx)
		},
		Lost: func(err error, _ time.Duration) { f.lost(err) },
	})
	if errors.Is(err, errOver) {
		return nil
	}
	return err
}

// asked ends following where the run is over and all of it was shown: it may have ended after the last
// event that came.
func (f *remoteFollower) asked(ctx context.Context) error {
	over, newest, err := f.until(ctx)
	switch {
	case errors.Is(err, client.ErrUnreachable), errors.Is(err, protocol.ErrAgentAway), errors.Is(err, protocol.ErrShuttingDown):
		return nil // the connection is as good as gone, and is asked again when it is back
	case err != nil:
		return err
	case over && f.seen >= newest:
		return errOver
	case over:
		f.end = newest
	default:
		f.end = 0
	}
	return nil
}

func (f *remoteFollower) show(ctx context.Context, e protocol.Entry) error {
	if f.step != "" && e.StepName() != f.step {
		return nil
	}
	n, err := engine.ReadUpdate(func(l protocol.Link) ([]byte, error) { return f.blocks.Block(ctx, l) }, f.run, e)
	if err != nil {
		return fmt.Errorf("run %s, event %d: %w", f.run, e.Seq, err)
	}
	f.rep.notice(n)
	return nil
}

// delta shows live output; in JSON it is a frame of the replay protocol.
func (f *remoteFollower) delta(d protocol.LiveDelta) {
	if f.step != "" && d.Step != f.step {
		return
	}
	j, ok := f.rep.(*jsonLines)
	if !ok {
		f.rep.notice(api.Update{Run: f.run, Step: d.Step, Data: d.Delta})
		return
	}
	frame := protocol.Frame{Type: protocol.FrameDelta, AfterSeq: d.After, Step: d.Step, N: d.N, Kind: d.Delta.Kind, Text: d.Delta.Text}
	if b, err := frame.Encode(protocol.JSONFrames); err == nil {
		if err := line(j.a.out, json.RawMessage(b)); err != nil {
			f.progress("error: live output was not shown: %v", err)
		}
	}
}

// stopped reports whether a run waits, is suspended or has ended.
func (r *remote) stopped(run protocol.RunID) func(context.Context) (bool, protocol.Seq, error) {
	return func(ctx context.Context) (bool, protocol.Seq, error) {
		status, newest, err := r.status(ctx, run)
		return err == nil && status != protocol.Running, newest, err
	}
}

// final reports whether a run has ended for good.
func (r *remote) final(run protocol.RunID) func(context.Context) (bool, protocol.Seq, error) {
	return func(ctx context.Context) (bool, protocol.Seq, error) {
		status, newest, err := r.status(ctx, run)
		return err == nil && status.Final(), newest, err
	}
}

// backdrop is what reporters look up of a run.
func (r *remote) backdrop(ctx context.Context, run protocol.RunID) (backdrop, *remoteBlocks, error) {
	blocks := &remoteBlocks{api: r.api}
	v, _, err := r.view(ctx, run)
	if err != nil {
		return backdrop{}, nil, err
	}
	edges, err := r.edges(ctx, blocks, v.Definition)
	return backdrop{ctx: context.WithoutCancel(ctx), blocks: blocks, edges: edges, steers: map[string]bool{}, guest: true}, blocks, err
}

// followUntilStopped shows a run until it waits, is suspended or has ended.
func (r *remote) followUntilStopped(ctx context.Context, run protocol.RunID, from protocol.Seq, rep func(backdrop) reporter) error {
	b, blocks, err := r.backdrop(ctx, run)
	if err != nil {
		return err
	}
	f := &remoteFollower{remote: r, run: run, blocks: blocks, rep: rep(b), until: r.stopped(run)}
	defer f.rep.close()
	return f.follow(ctx, from)
}

// watchRun is wf watch.
func (r *remote) watchRun(ctx context.Context, f *pflag.FlagSet, args []string) error {
	from, err := f.GetInt64("from")
	if err != nil || from < 0 {
		return fail(protocol.ErrBadCursor, "", "--from %d: want the seq of the last event held, 0 for all", from)
	}
	run, _, err := r.find(ctx, latestUnless(args))
	if err != nil {
		return err
	}
	if err := r.followUntilStopped(ctx, run, protocol.Seq(from), r.newWatchReporter); err != nil {
		return err
	}
	return r.conclude(ctx, run)
}

// lineReporter writes one line per event to stdout, as wf log does, and with written what commands
// wrote.
type lineReporter struct {
	backdrop
	a       *app
	written bool
	fold    *folder
}

func (l lineReporter) notice(n api.Update) {
	if n.Entry == nil {
		return
	}
	for _, x := range l.logged(n.Run, n.Entry, n.Data, l.written, l.fold) {
		fmt.Fprintln(l.a.out, x)
	}
}

func (lineReporter) close() {}

// events writes the events of a window of a run, and with follow those that are yet to come;
// with wrote also what commands wrote. fold may be nil.
func (r *remote) events(ctx context.Context, run protocol.RunID, step string, w eventWindow, follow, wrote bool, fold *folder) error {
	blocks := &remoteBlocks{api: r.api}
	var rep reporter = lineReporter{backdrop{ctx: ctx, blocks: blocks}, r.app, wrote, fold}
	if r.asJSON() {
		rep = &jsonLines{a: r.app}
	}
	f := &remoteFollower{remote: r, run: run, step: step, to: w.end(), blocks: blocks, rep: rep}
	if follow {
		f.until = r.final(run)
	}
	return f.follow(ctx, w.from)
}

// log is wf log.
func (r *remote) log(ctx context.Context, f *pflag.FlagSet, args []string) error {
	run, step, err := r.find(ctx, latestUnless(args))
	if err != nil {
		return err
	}
	follow, only := f.Lookup("follow").Value.String() == "true", f.Lookup("events").Value.String() == "true"
	if !follow && !only && !r.asJSON() {
		w := api.Window{Limit: lastSteps}
		if step != "" {
			w = api.Window{}
		}
		v, _, err := r.window(ctx, run, w)
		if err != nil {
			return err
		}
		if err := r.showFirst(v, step); err != nil {
			return err
		}
	}
	fold := r.newFolder()
	if step != "" {
		fold = nil
	}
	return r.events(ctx, run, step, eventWindow{}, follow, !only && step == "", fold)
}

// replay is wf replay.
func (r *remote) replay(ctx context.Context, f *pflag.FlagSet, args []string) error {
	w, err := eventWindowOf(f)
	if err != nil {
		return err
	}
	follow := f.Lookup("follow").Value.String() == "true"
	if err := w.check(follow, false); err != nil {
		return err
	}
	switch {
	case f.Lookup("check").Value.String() == "true":
		return usagef("--check builds everything again from a store; run it where that is")
	case follow && r.format == "json":
		return usagef("--follow streams; it needs -o jsonl")
	}
	run, _, err := r.find(ctx, latestUnless(args))
	if err != nil {
		return err
	}
	if r.format != "json" {
		return r.events(ctx, run, "", w, follow, false, nil)
	}
	all := &collector{items: []eventJSON{}}
	fl := &remoteFollower{remote: r, run: run, to: w.end(), blocks: &remoteBlocks{api: r.api}, rep: all}
	if err := errors.Join(fl.follow(ctx, w.from), all.err); err != nil {
		return err
	}
	return r.answerJSON(map[string]any{"schema": "wf.replay/v1", "run": run, "items": all.items})
}

// collector keeps the events that it is shown.
type collector struct {
	items []eventJSON
	err   error
}

func (c *collector) notice(n api.Update) {
	if n.Entry == nil {
		return
	}
	j, err := newEventJSON(n.Entry, n.Data)
	c.err = errors.Join(c.err, err)
	c.items = append(c.items, j)
}

func (c *collector) close() {}
