package replay_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"wf/hub/internal/memfeed"
	"wf/hub/internal/pipes"
	"wf/hub/lists"
	"wf/hub/replay"
	"wf/protocol"
)

// watchedLists are runs and tables, watched as soon as they are wanted.
func watchedLists() *lists.Board {
	return &lists.Board{Of: []protocol.List{protocol.ListRuns, protocol.ListTables}, Source: func(ctx context.Context, b *lists.Board) {
		for ctx.Err() == nil {
			wanted, other := b.Wanted()
			for list, watched := range wanted {
				if !watched {
					b.All(list)
				}
			}
			select {
			case <-other:
			case <-ctx.Done():
			}
		}
	}}
}

func TestAListRequestIsToldWhatMoved(t *testing.T) {
	for _, codec := range []protocol.Codec{protocol.JSONFrames, protocol.CBORFrames} {
		t.Run(codec.Subprotocol(), func(t *testing.T) {
			m := memfeed.New()
			m.Add("run", 3, "e")
			b := watchedLists()
			p := dial(t, serve(t, &replay.Server{Feed: m, Lists: b}), codec)
			request := func(id string, names ...protocol.List) {
				p.send(protocol.Request{Type: protocol.FrameListRequest, ID: id, Lists: names})
			}
			next := func(id string, list protocol.List, all bool) protocol.Frame {
				t.Helper()
				f := p.read()
				if f.Type != protocol.FrameListChanged || f.ID != id || f.List != list || f.All != all {
					t.Fatalf("%+v", f)
				}
				return f
			}
			request("7", protocol.ListRuns)
			next("7", protocol.ListRuns, true)
			b.Moved(protocol.ListRuns, "A")
			if f := next("7", protocol.ListRuns, false); len(f.Runs) != 1 || f.Runs[0] != "A" {
				t.Errorf("%+v", f)
			}
			request("7", protocol.ListTables) // takes its place
			next("7", protocol.ListTables, true)
			request("8", protocol.ListQueue)
			if f := p.read(); f.Type != protocol.FrameReplayError || f.ID != "8" || f.Code != "bad_request" {
				t.Errorf("a list that is not here: %+v", f)
			}
			p.send(protocol.Request{Type: protocol.FrameCancel, ID: "7"})
			p.send(protocol.Request{Type: protocol.FramePing, N: 1})
			if f := p.read(); f.Type != protocol.FramePong {
				t.Errorf("%+v", f)
			}
			if wanted, _ := b.Wanted(); len(wanted) != 0 {
				t.Errorf("still wanted: %v", wanted)
			}
			p.send(protocol.Request{Type: protocol.FrameReplayRequest, ID: "7", SessionID: "run", FromSeq: seqOf(0)})
			if got, _ := p.until(protocol.FrameReplayComplete); len(got) != 3 {
				t.Errorf("%d events", len(got))
			}
		})
	}
}

func TestWithoutListsARequestIsRefused(t *testing.T) {
	p := dial(t, serve(t, &replay.Server{Feed: memfeed.New()}), protocol.JSONFrames)
	p.ask(`{"type":"list_request","id":"7","lists":["runs"]}`)
	if f := p.read(); f.Type != protocol.FrameReplayError || f.ID != "7" || f.Code != "bad_request" {
		t.Errorf("%+v", f)
	}
}

// Lists count among the subscriptions of a socket.
func TestListRequestsAreBounded(t *testing.T) {
	p := dial(t, serve(t, &replay.Server{Feed: memfeed.New(), Lists: watchedLists(), Subscriptions: 1}), protocol.JSONFrames)
	p.ask(`{"type":"list_request","id":"1","lists":["runs"]}`)
	p.read()
	p.ask(`{"type":"list_request","id":"2","lists":["runs"]}`)
	if f := p.read(); f.ID != "2" || f.Code != "rate_limited" {
		t.Errorf("%+v", f)
	}
}

// A client that does not read its frames is cut off, and what changes does not wait for it.
func TestAClientOfListsThatStallsIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := watchedLists()
		s := &replay.Server{Feed: memfeed.New(), Lists: b, WriteTimeout: 10 * time.Second, PingEvery: time.Hour}
		l := pipes.New()
		h := &http.Server{Handler: s.WebSocket()}
		served := make(chan error, 1)
		go func() { served <- h.Serve(l) }()
		wire := &http.Transport{DialContext: l.Dial}
		conn, _, err := websocket.Dial(t.Context(), "http://pipe/", &websocket.DialOptions{
			HTTPClient: &http.Client{Transport: wire}, Subprotocols: []string{protocol.FramesJSON}})
		if err != nil {
			t.Fatal(err)
		}
		p := &peer{t, conn, protocol.JSONFrames}
		p.ask(`{"type":"list_request","id":"7","lists":["runs"]}`)
		synctest.Wait()
		for range 1000 {
			b.Moved(protocol.ListRuns, "A")
		}
		<-time.After(9 * time.Second)
		if wanted, _ := b.Wanted(); len(wanted) != 1 {
			t.Error("it was cut off too early")
		}
		<-time.After(10 * time.Second)
		if wanted, _ := b.Wanted(); len(wanted) != 0 {
			t.Error("it is still there")
		}
		conn.CloseNow()
		wire.CloseIdleConnections()
		h.Close()
		<-served
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
