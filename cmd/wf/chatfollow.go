package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"wf/cmd/internal/chat"
	"wf/daemon"
	"wf/hub/client"
	"wf/protocol"
)

// Follow hands on what follows from. Where the run is in a store of this machine it is followed
// by the socket of the process that drives it, be it this one, while there is one, else by the
// store: only the process that drives a run knows what is said before it is recorded.
//
//	socket ── gone ──► store ── a socket appears ──► socket
func (s *chatSession) Follow(ctx context.Context, from protocol.Seq, on func(chat.Update)) error {
	r := s.replay(from)
	r.Live = true
	if s.local == nil {
		return follow(ctx, &r, on)
	}
	for {
		driven := true
		at := client.Replay{URL: "http://wf/v1/replay", Run: r.Run, Cursor: r.Cursor, Live: true, Patience: -1,
			HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				c, err := daemon.DialRun(ctx, s.local.Service.Store.Dir(), r.Run)
				if err == nil {
					on(chat.Update{Driven: &driven})
				}
				return c, err
			}}}}
		err := follow(ctx, &at, on)
		if lasting(err) {
			return err
		}
		r.Cursor = at.Cursor
		stored, stop := context.WithCancelCause(ctx)
		go s.look(stored, stop, r.Run, on)
		err = follow(stored, &r, on)
		stop(nil)
		if ctx.Err() != nil || !errors.Is(err, errDriven) {
			return err
		}
	}
}

// errDriven ends following the store: a process drives the run now.
var errDriven = errors.New("a process drives the run")

const (
	lookEvery  = 100 * time.Millisecond // how often a socket is looked for while the store is followed
	quietAfter = 2 * time.Second        // how often it is asked whether a process drives the run
)

// lasting reports whether no other source would give a better answer.
func lasting(err error) bool {
	return errors.Is(err, protocol.ErrCorrupt) || errors.Is(err, protocol.ErrGap) || errors.Is(err, protocol.ErrFutureCursor)
}

// look ends following the store when there is a socket to follow. While there is none it tells
// whether a process drives the run at all.
func (s *chatSession) look(ctx context.Context, stop context.CancelCauseFunc, run protocol.RunID, on func(chat.Update)) {
	socket, lock := time.NewTicker(lookEvery), time.NewTicker(quietAfter)
	defer socket.Stop()
	defer lock.Stop()
	for {
		select {
		case <-socket.C:
			if c, err := daemon.DialRun(ctx, s.local.Service.Store.Dir(), run); err == nil {
				c.Close()
				stop(errDriven)
				return
			}
		case <-lock.C:
			if driven, err := s.local.Supervisor.Driven(run); err == nil {
				on(chat.Update{Driven: &driven})
			}
		case <-ctx.Done():
			return
		}
	}
}

// follow hands on what a replay gives, and moves its cursor.
func follow(ctx context.Context, r *client.Replay, on func(chat.Update)) error {
	return r.Follow(ctx, client.Consumer{
		Event: func(e client.Event) error {
			r.Cursor = client.Cursor{Seq: e.Seq, CID: e.CID}
			w := wireEvent(e)
			on(chat.Update{Event: &w})
			return nil
		},
		Delta: func(d protocol.LiveDelta, _ int64) {
			on(chat.Update{Delta: &protocol.Frame{Type: protocol.FrameDelta, AfterSeq: d.After, Step: d.Step, N: d.N, Kind: d.Delta.Kind, Text: d.Delta.Text}})
		},
		Reset: func(c client.Cursor) error {
			r.Cursor = c
			on(chat.Update{Reset: &c.Seq})
			return nil
		},
		Complete: func(client.Cursor) error {
			on(chat.Update{Live: true})
			return nil
		},
		Lost: func(err error, again time.Duration) {
			on(chat.Update{Status: fmt.Sprintf("%v; again in %s", err, again.Round(100*time.Millisecond))})
		},
	})
}
