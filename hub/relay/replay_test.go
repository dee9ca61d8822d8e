package relay_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"wf/hub/client"
	"wf/hub/queue"
	"wf/hub/relay"
	"wf/protocol"
)

// wire is a client of the replay protocol, frame by frame.
type wire struct {
	*house
	conn  *websocket.Conn
	codec protocol.Codec
}

func (h *house) dial(codec protocol.Codec) *wire {
	h.Helper()
	conn, _, err := websocket.Dial(h.Context(), "ws://"+h.addr+"/v1/replay",
		&websocket.DialOptions{HTTPClient: h.api.HTTP(), Subprotocols: []string{codec.Subprotocol()}})
	if err != nil {
		h.Fatal(err)
	}
	conn.SetReadLimit(2 * protocol.MaxFrame)
	h.Cleanup(func() { _ = conn.CloseNow() })
	return &wire{h, conn, codec}
}

func (w *wire) send(r protocol.Request) {
	w.Helper()
	w.raw(must(r.Encode(w.codec))(w))
}

func (w *wire) raw(b []byte) {
	w.Helper()
	typ := websocket.MessageText
	if w.codec == protocol.CBORFrames {
		typ = websocket.MessageBinary
	}
	if err := w.conn.Write(w.Context(), typ, b); err != nil {
		w.Fatal(err)
	}
}

func (w *wire) ask(id string, run protocol.RunID, from protocol.Seq, live bool) {
	w.Helper()
	w.send(protocol.Request{Type: protocol.FrameReplayRequest, ID: id, SessionID: run, FromSeq: &from, Live: live})
}

// tells reads a frame and shows it as a word: "1 event 2", "2 complete 7", "1 error gap".
func (w *wire) tells() string {
	w.Helper()
	_, b, err := w.conn.Read(w.Context())
	if err != nil {
		return "closed " + websocket.CloseStatus(err).String()
	}
	f := must(protocol.ParseFrame(w.codec, b))(w)
	switch f.Type {
	case protocol.FrameReplayEvent, protocol.FrameEvent:
		return fmt.Sprintf("%s event %d", f.ID, f.Event.Seq)
	case protocol.FrameReplayComplete:
		return fmt.Sprintf("%s complete %d", f.ID, f.LastSeq)
	case protocol.FrameReplayError:
		return fmt.Sprintf("%s error %s", f.ID, f.Code)
	case protocol.FrameBlock:
		return fmt.Sprintf("%s block %d of %d", f.ID, len(f.Bytes), f.Size)
	}
	return fmt.Sprintf("%s %s", f.ID, f.Type)
}

// expect reads as many frames as are wanted of each subscription: between subscriptions there
// is no order.
func (w *wire) expect(want map[string][]string) {
	w.Helper()
	left := 0
	for _, words := range want {
		left += len(words)
	}
	got := map[string][]string{}
	for range left {
		id, word, _ := strings.Cut(w.tells(), " ")
		got[id] = append(got[id], word)
	}
	if d := cmp.Diff(want, got); d != "" {
		w.Fatal(d)
	}
}

func TestOneSocketReachesTheRunsOfAllWorkers(t *testing.T) {
	for _, codec := range []protocol.Codec{protocol.JSONFrames, protocol.CBORFrames} {
		t.Run(codec.Subprotocol(), func(t *testing.T) {
			h := newHouse(t)
			a, b := newDesk(h, "a").arrive(), newDesk(h, "b").arrive()
			first := a.say("run-a", "one", "two")
			foreign := b.say("run-b", "one")
			h.await(2)
			w := h.dial(codec)
			w.ask("x", "run-a", 0, true)
			w.ask("y", "run-b", 0, true)
			w.expect(map[string][]string{"x": {"event 1", "event 2", "complete 2"}, "y": {"event 1", "complete 1"}})
			b.say("run-b", "two")
			a.say("run-a", "three")
			w.expect(map[string][]string{"x": {"event 3"}, "y": {"event 2"}})

			w.send(protocol.Request{Type: protocol.FramePing, ID: "p", N: 7})
			w.expect(map[string][]string{"p": {"pong"}})
			w.ask("z", "nowhere", 0, false)
			<-relay.GraceOver(h.hub)
			w.tells() // away or unknown, as the grace period is over or not
			w.ask("z", "nowhere", 0, false)
			w.expect(map[string][]string{"z": {"error unknown_session"}})
			w.ask("z", "run-a", 99, false)
			w.expect(map[string][]string{"z": {"error future_cursor"}})
			w.send(protocol.Request{Type: protocol.FrameBlockRequest, ID: "k", CID: first[0].CID})
			w.expect(map[string][]string{"k": {fmt.Sprintf("block %d of %d", len(first[0].Raw), len(first[0].Raw))}})
			w.raw([]byte{0xff})
			w.expect(map[string][]string{"": {"error bad_request"}})
			one := h.dial(codec) // asks its one worker, which has not got it
			one.ask("q", "run-a", 3, true)
			one.expect(map[string][]string{"q": {"complete 3"}})
			one.send(protocol.Request{Type: protocol.FrameBlockRequest, CID: foreign[0].CID})
			one.expect(map[string][]string{"": {"error not_found"}})
			_ = one.conn.CloseNow() // the hub would wait for it at the end

			// One id changes hands, and is cancelled.
			w.ask("x", "run-b", 1, true)
			w.expect(map[string][]string{"x": {"event 2", "complete 2"}})
			a.say("run-a", "four")
			b.say("run-b", "three")
			w.expect(map[string][]string{"x": {"event 3"}, "y": {"event 3"}})
			w.send(protocol.Request{Type: protocol.FrameCancel, ID: "x"})
			w.send(protocol.Request{Type: protocol.FramePing, N: 1}) // answered behind the cancel
			w.expect(map[string][]string{"": {"pong"}})
			b.say("run-b", "four")
			w.expect(map[string][]string{"y": {"event 4"}})

			// A worker goes: whoever hangs on it is told, the others do not notice.
			w.ask("v", "run-a", 4, true)
			w.expect(map[string][]string{"v": {"complete 4"}})
			h.pointed("run-b", func(p queue.Pointer) bool { return p.Worker == "b" })
			b.leave()
			w.expect(map[string][]string{"y": {"error agent_unavailable"}})
			a.say("run-a", "five")
			w.expect(map[string][]string{"v": {"event 5"}})
			w.ask("y", "run-b", 4, true)
			w.expect(map[string][]string{"y": {"error agent_unavailable"}})
			h.await(1) // the hub tells its clients before its registry
			b.arrive()
			h.await(2)
			w.ask("y", "run-b", 4, true)
			w.expect(map[string][]string{"y": {"complete 4"}})

			closed := make(chan struct{})
			go func() { // it waits for the client to take note
				defer close(closed)
				h.hub.Close()
			}()
			for {
				if got := w.tells(); got == "closed StatusGoingAway" {
					break
				} else if !strings.HasSuffix(got, "shutting_down") && !strings.HasSuffix(got, "agent_unavailable") {
					t.Fatalf("at the end: %s", got)
				}
			}
			<-closed
		})
	}
}

func TestAFrameThatIsTooLongEndsTheSocket(t *testing.T) {
	h := newHouse(t)
	w := h.dial(protocol.JSONFrames)
	w.raw(fmt.Appendf(nil, `{"type":"ping","x":%q}`, strings.Repeat("x", protocol.MaxRequest)))
	if got := w.tells(); got != " error too_large" {
		t.Errorf("have %q", got)
	}
	if got := w.tells(); got != "closed StatusMessageTooBig" {
		t.Errorf("have %q", got)
	}
}

func TestStreamsOverHTTPAreForwarded(t *testing.T) {
	h := newHouse(t)
	a := newDesk(h, "a").arrive()
	a.say("run1", "one", "two")
	h.await(1)
	req := must(http.NewRequest("GET", "http://"+h.addr+"/v1/sessions/run1/events?fromSeq=1", nil))(t)
	req.Header.Set("Accept", "text/event-stream")
	res := must(h.api.HTTP().Do(req))(t)
	defer res.Body.Close()
	var text strings.Builder
	buf := make([]byte, 4096)
	for !strings.Contains(text.String(), "id: 2\n") {
		n, err := res.Body.Read(buf)
		if text.Write(buf[:n]); err != nil {
			t.Fatalf("%v after %s", err, text.String())
		}
	}
	a.say("run1", "three")
	for !strings.Contains(text.String(), "id: 3\n") {
		n, err := res.Body.Read(buf)
		if text.Write(buf[:n]); err != nil {
			t.Fatalf("%v after %s", err, text.String())
		}
	}
	a.leave() // the stream ends with its worker
	if _, err := io.ReadAll(res.Body); err == nil && !strings.HasSuffix(text.String(), "\n") {
		t.Errorf("the stream ended in the middle: %q", text.String())
	}
}

// A client that asks for much and does not read it is let go.
func TestAClientThatNeverReadsHoldsNothingUp(t *testing.T) {
	h := newHouse(t)
	h.hub.Patience = 50 * time.Millisecond
	a := newDesk(h, "a").arrive()
	texts := make([]string, 300)
	for i := range texts { // more than the buffers on the way take
		texts[i] = fmt.Sprint(i, strings.Repeat(" and so on", 9000))
	}
	a.say("run1", texts...)
	h.pointed("run1", func(p queue.Pointer) bool { return p.Seq == 300 })
	over := make(chan bool)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(over)
		h.server.Handler.ServeHTTP(w, r)
	}))
	defer front.Close()
	c := must(net.Dial("tcp", front.Listener.Addr().String()))(t)
	defer c.Close()
	must(fmt.Fprintf(c, "GET /v1/sessions/run1/events HTTP/1.1\r\nHost: hub\r\n\r\n"))(t)
	<-over
}

// The hub is killed and comes back with an empty disk, while two workers write and two clients
// follow: the workers register again, the clients go on from their cursors, and each event comes
// once and in order.
func TestK07TheHubRestartsWithAnEmptyDisk(t *testing.T) {
	h := newHouse(t)
	h.grace = time.Minute // workers come back within seconds
	const events, kills = 60, 3
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var writers, readers sync.WaitGroup
	reached := make(chan protocol.Seq, 1000)
	for _, id := range []string{"a", "b"} {
		d := newDesk(h, id).arrive()
		run := protocol.RunID("run-" + id)
		want := d.say(run, "event 1")
		h.pointed(run, func(p queue.Pointer) bool { return p.Seq == 1 }) // the first hub settles at once
		more := make(chan struct{})
		writers.Go(func() {
			for n := 2; n <= events; n++ {
				if n%(events/(kills+1)) == 0 {
					select {
					case <-more: // so that the kills lie between the events
					case <-ctx.Done():
					}
				}
				want = append(want, d.say(run, fmt.Sprint("event ", n))...)
			}
		})
		readers.Go(func() {
			var got []protocol.Entry
			follow, done := context.WithCancel(ctx)
			defer done()
			r := client.Replay{URL: "ws://" + h.addr + "/v1/replay", HTTP: h.api.HTTP(), Codec: protocol.CBORFrames, Run: run, Live: true}
			err := r.Follow(follow, client.Consumer{Event: func(e client.Event) error {
				if got = append(got, e.Entry); e.Seq == events {
					done()
				}
				if (e.Seq+1)%(events/(kills+1)) == 0 && e.Seq+1 <= events {
					reached <- e.Seq
					select {
					case more <- struct{}{}:
					case <-ctx.Done():
					}
				}
				return nil
			}, Reset: func(c client.Cursor) error { return fmt.Errorf("reset to %d", c.Seq) }})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("run %s after %d events: %v", run, len(got), err)
				cancel()
			}
			writers.Wait()
			if len(got) != len(want) {
				t.Errorf("run %s: %d events, want %d", run, len(got), len(want))
				return
			}
			for i := range got {
				if got[i].CID != want[i].CID || got[i].Seq != protocol.Seq(i+1) {
					t.Errorf("run %s: event %d is %s at %d", run, i+1, got[i].CID, got[i].Seq)
				}
			}
		})
	}
	for range kills {
		for range 2 {
			select {
			case <-reached:
			case <-ctx.Done():
				readers.Wait()
				t.FailNow() // a reader has said why
			}
		}
		h.shut()
		h.dir = t.TempDir()
		h.open()
	}
	readers.Wait()
	h.await(2)
	var got list
	h.get("/v1/runs", &got)
	if len(got.Items) != 2 {
		t.Errorf("have %v", got.Items)
	}
}
