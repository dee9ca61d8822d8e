package client_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/api"
	"wf/hub/client"
	"wf/hub/internal/memfeed"
	"wf/protocol"
)

// A screen at a server hears of the end of what is recorded, of a history that was replaced, and whether a process
// drives the run; a text that cannot be read for a while is waited for, and does not end it.
func TestAScreenFollowsARunAtAServer(t *testing.T) {
	f := memfeed.New()
	f.Add("run", 3, "e")
	chain := f.Chain("run")
	all := wireEvents(chain)
	last := chain[2]
	socket := scripted(t, protocol.CBORFrames, func(n int, _ protocol.Request) []protocol.Frame {
		if n > 0 {
			return nil
		}
		return []protocol.Frame{
			{Type: protocol.FrameReplayBatch, Events: all}, complete(chain),
			{Type: protocol.FrameReset, Reason: protocol.ResetHeadMoved, CommonSeq: 2, CommonCID: chain[1].CID, HeadSeq: 3},
			{Type: protocol.FrameReplayBatch, Events: all[2:], Live: true},
		}
	})
	text := []byte("a long text")
	sum, err := last.CID.CID().Prefix().Sum(text)
	if err != nil {
		t.Fatal(err)
	}
	link := protocol.NewLink(sum)
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/replay":
			socket.Config.Handler.ServeHTTP(w, r)
		case "/v1/blocks/" + link.String():
			if asked++; asked == 1 {
				panic(http.ErrAbortHandler) // the connection breaks off
			}
			_, _ = w.Write(text)
		default:
			_, _ = w.Write([]byte(`{"id":"run","status":"running","driven":false,"seq":3}`))
		}
	}))
	t.Cleanup(server.Close)
	a, err := client.New(server.URL, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := client.Service{API: a, Decode: func(read func(protocol.Link) ([]byte, error), run protocol.RunID, e protocol.Entry) (api.Update, error) {
		u := api.Update{Run: run, Entry: &e, Step: e.StepName()}
		if e.Seq == last.Seq {
			b, err := read(link)
			u.Data = protocol.TextSaid{Content: protocol.NewText(string(b))}
			return u, err
		}
		return u, nil
	}}
	ctx, leave := context.WithCancelCause(t.Context())
	defer leave(nil)
	enough := errors.New("enough")
	var got []string
	err = s.Follow(ctx, "run", api.Following{Until: api.Never}, func(u api.Update) error {
		switch {
		case u.Entry != nil && u.Data != nil:
			got = append(got, u.Data.(protocol.TextSaid).Content.S)
			if len(got) > 7 {
				return enough
			}
		case u.Entry != nil:
			got = append(got, "event")
		case u.Away != "":
			got = append(got, "away")
		case u.Reset != nil && *u.Reset == 2:
			got = append(got, "reset")
		case u.Whole:
			got = append(got, "whole")
		case u.Driven != nil && !*u.Driven:
			got = append(got, "not driven")
		}
		return nil
	})
	if want := []string{"event", "event", "away", "a long text", "whole", "not driven", "reset", "a long text"}; !errors.Is(err, enough) || !cmp.Equal(got, want) {
		t.Errorf("%v: %q", err, got)
	}
}

// A daemon that is stopped suspends its runs, and goes on with them when it starts again: following one outlives that,
// as it outlives a daemon that was killed.
func TestFollowingARunOutlivesADaemonThatIsStopped(t *testing.T) {
	f := memfeed.New()
	f.Add("run", 5, "e")
	chain := f.Chain("run")
	all := wireEvents(chain)
	gone := protocol.Frame{Type: protocol.FrameReplayError, Code: protocol.ErrShuttingDown.Code, Message: "the server stops"}
	connections := 0
	socket := scripted(t, protocol.CBORFrames, func(int, protocol.Request) []protocol.Frame {
		switch connections++; connections {
		case 1:
			return []protocol.Frame{{Type: protocol.FrameReplayBatch, Events: all[:2]}, complete(chain[:2]), gone}
		case 2:
			return []protocol.Frame{{Type: protocol.FrameReplayBatch, Events: all[2:3]}, complete(chain[:3]), gone}
		}
		return []protocol.Frame{{Type: protocol.FrameReplayBatch, Events: all[3:]}, complete(chain)}
	})
	states := []string{`"running","seq":2`, `"suspended","code":"serve_stopped","seq":3`, `"done","seq":5`}
	s := serviceOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/replay" {
			socket.Config.Handler.ServeHTTP(w, r)
			return
		}
		_, _ = w.Write([]byte(`{"id":"run","status":` + states[0] + `}`))
		states = states[1:]
	})
	var got []protocol.Seq
	err := s.Follow(t.Context(), "run", api.Following{Until: api.Parked}, func(u api.Update) error {
		if u.Entry != nil {
			got = append(got, u.Entry.Seq)
		}
		return nil
	})
	if want := []protocol.Seq{1, 2, 3, 4, 5}; err != nil || !cmp.Equal(got, want) {
		t.Errorf("events %v, %v; want %v", got, err, want)
	}
}
