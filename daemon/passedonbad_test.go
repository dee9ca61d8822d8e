package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"wf/hub/replay"
	"wf/protocol"
)

// Nonsense at the socket of a run costs neither text nor events, nor more memory than there is for a subscriber.
func TestNonsenseAtTheSocketOfARun(t *testing.T) {
	s, first := liveRun(t, filepath.Join(shortSockets(t), "store"))
	frame := func(f protocol.Frame) []byte {
		b, err := f.Encode(protocol.CBORFrames)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	said := func(d protocol.LiveDelta) []byte {
		return frame(protocol.Frame{Type: protocol.FrameDelta, AfterSeq: d.After, Step: d.Step, N: d.N, Kind: d.Delta.Kind, Text: d.Delta.Text})
	}
	long := strings.Repeat("x", 200<<10)
	speaks := func(frames ...[]byte) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{protocol.FramesCBOR}})
			if err != nil {
				return
			}
			defer conn.CloseNow()
			for _, b := range frames {
				if conn.Write(r.Context(), websocket.MessageBinary, b) != nil {
					return
				}
			}
		})
	}
	p := passing(t, s)
	served := replay.Server{Feed: s, Deltas: p}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	came := make(chan string, 64)
	ended := make(chan error, 1)
	go func() {
		ended <- served.Follow(ctx, protocol.Request{SessionID: "R1", FromSeq: new(protocol.Seq), Live: true}, shown(came))
	}()
	comes := func(what string) {
		t.Helper()
		for got := range came {
			if got == what {
				return
			}
			if len(got) > 100 || strings.Contains(got, "future") {
				t.Errorf("%.100q came", got)
			}
		}
	}
	comes("event 1")
	for i, h := range []http.Handler{
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, long) }),
		speaks([]byte("nonsense")),
		speaks(frame(protocol.Frame{Type: protocol.FrameReplayComplete, LastSeq: 1 << 40}),
			frame(protocol.Frame{Type: protocol.FrameEvent, Event: protocol.WireEvent{Seq: 1 << 40, CID: first.Entry.CID, Raw: []byte("nonsense")}})),
		speaks(said(protocol.LiveDelta{Step: long}), said(protocol.LiveDelta{Step: "a#1", Delta: protocol.Delta{Kind: long}}),
			said(protocol.LiveDelta{Step: "a#1", Delta: protocol.Delta{Text: long}}),
			said(protocol.LiveDelta{After: 1 << 40, Step: "future"}), said(protocol.LiveDelta{After: -1 << 40, N: -1, Step: "past"})),
	} {
		tried := make(chan struct{}, 64)
		kill := atRunSocket(t, s, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(w, r)
			select {
			case tried <- struct{}{}:
			default:
			}
		}))
		<-tried
		e := record(t, s, "on") // events come all the same
		comes(fmt.Sprint("event ", i+2))
		kill()
		var real replay.Broadcast
		real.Event("R1", &e.Entry.Event)
		real.Delta("R1", "a#1", protocol.Delta{Kind: "text", Text: fmt.Sprint("text ", i)})
		from := replay.Server{Feed: s, Deltas: &real}
		kill = atRunSocket(t, s, from.WebSocket())
		comes(fmt.Sprint("a#1 text ", i))
		if err := from.Close(); err != nil {
			t.Error(err)
		}
		kill()
	}
	leave()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := served.Close(); err != nil {
		t.Error(err)
	}
}

// shown is what a client is sent, as lines.
type shown chan string

func (s shown) Events(_ context.Context, batch []protocol.Entry, _ bool) error {
	for _, e := range batch {
		s <- fmt.Sprint("event ", e.Seq)
	}
	return nil
}

func (s shown) Frame(_ context.Context, f *protocol.Frame) error {
	if f.Type == protocol.FrameDelta {
		s <- f.Step + " " + f.Text
	}
	return nil
}

// sink gives a test the frames of a subscription.
type sink func(*protocol.Frame)

func (sink) Events(context.Context, []protocol.Entry, bool) error { return nil }

func (s sink) Frame(_ context.Context, f *protocol.Frame) error {
	s(f)
	return nil
}

// A subscriber that does not read holds up neither another one nor what is said, and loses the oldest of it.
func TestASubscriberThatStallsIsAlone(t *testing.T) {
	s, first := liveRun(t, filepath.Join(shortSockets(t), "store"))
	var said replay.Broadcast
	said.Event("R1", &first.Entry.Event)
	from := replay.Server{Feed: s, Deltas: &said}
	kill := atRunSocket(t, s, from.WebSocket())
	defer kill()
	p := passing(t, s)
	served := replay.Server{Feed: s, Deltas: p}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	const deltas, size = 2000, 1000
	type tally struct {
		bytes, deltas int
		dropped       int64
	}
	follow := func(at func()) (got chan tally, heard chan bool) {
		got, heard = make(chan tally, 1), make(chan bool, deltas+1)
		go func() {
			var sum tally
			_ = served.Follow(ctx, protocol.Request{SessionID: "R1", Live: true}, sink(func(f *protocol.Frame) { // it ends with ctx
				switch f.Type {
				case protocol.FrameReplayComplete:
					at()
				case protocol.FrameDelta:
					heard <- true
					sum = tally{sum.bytes + len(f.Text), sum.deltas + 1, sum.dropped + f.Dropped}
					if f.N == deltas {
						got <- sum
					}
				}
			}))
		}()
		return got, heard
	}
	stalls, goes := make(chan bool), make(chan bool)
	slow, _ := follow(func() { stalls <- true; <-goes })
	<-stalls
	quick, heard := follow(func() {})
	for i := range deltas {
		said.Delta("R1", "a#1", protocol.Delta{Kind: "text", Text: strings.Repeat("x", size)})
		if i == 0 {
			<-heard // the connection is there
		}
	}
	<-quick
	close(goes)
	if sum := <-slow; sum.bytes > 256<<10 || sum.dropped == 0 || sum.deltas+int(sum.dropped) > deltas {
		t.Errorf("the one that stalled gets %+v", sum)
	}
	leave()
	if err := errors.Join(served.Close(), from.Close()); err != nil {
		t.Error(err)
	}
}
