package client_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"wf/hub/client"
	"wf/hub/internal/memfeed"
	"wf/hub/replay"
	"wf/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var codecs = []protocol.Codec{protocol.JSONFrames, protocol.CBORFrames}

// serve mounts a server on loopback.
func serve(t testing.TB, s *replay.Server) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("GET /v1/replay", s.WebSocket())
	h := httptest.NewServer(mux)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		h.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return h
}

// state is what a consumer makes of a run: the events that are applied.
type state struct {
	mu     sync.Mutex
	events []protocol.Link
	wrong  error
	moved  chan struct{}
}

func newState() *state { return &state{moved: make(chan struct{}, 1)} }

func (s *state) signal() {
	select {
	case s.moved <- struct{}{}:
	default:
	}
}

func (s *state) consumer() client.Consumer {
	return client.Consumer{
		Event: func(e client.Event) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			if int(e.Seq) != len(s.events)+1 {
				s.wrong = fmt.Errorf("event %d was applied after %d", e.Seq, len(s.events))
			}
			s.events = append(s.events, e.CID)
			s.signal()
			return nil
		},
		Reset: func(c client.Cursor) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			if int(c.Seq) > len(s.events) || c.Seq > 0 && s.events[c.Seq-1] != c.CID {
				s.wrong = fmt.Errorf("a reset to event %d %s, which is not held", c.Seq, c.CID)
			}
			s.events = s.events[:c.Seq]
			s.signal()
			return nil
		},
	}
}

func (s *state) is(chain []protocol.Entry) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.EqualFunc(chain, s.events, func(e protocol.Entry, l protocol.Link) bool { return e.CID == l }), s.wrong
}

// await waits until the state is the journal.
func (s *state) await(ctx context.Context, f *memfeed.Feed, run protocol.RunID) error {
	for {
		same, err := s.is(f.Chain(run))
		if same || err != nil {
			return err
		}
		select {
		case <-s.moved:
		case <-ctx.Done():
			return fmt.Errorf("the client has %d events, the journal %d", len(s.events), len(f.Chain(run)))
		}
	}
}

// A connection that is cut in the middle of frames, again and again: the client has every event
// once, in order.
func TestARelayThatCutsFramesLosesNothing(t *testing.T) {
	f := memfeed.New()
	f.Add("run", 2000, "e")
	for _, codec := range codecs {
		t.Run(codec.Subprotocol(), func(t *testing.T) {
			h := serve(t, &replay.Server{Feed: f})
			random := rand.New(rand.NewPCG(1, 2))
			n := 0
			r := newRelay(t, h.Listener.Addr().String(), func() int64 {
				if n++; n > 8 {
					return 1 << 40
				}
				return 200 + random.Int64N(100_000)
			})
			s := newState()
			lost := 0
			c := s.consumer()
			c.Lost = func(error, time.Duration) { lost++ }
			replay := client.Replay{URL: "http://" + r.l.Addr().String() + "/v1/replay", Codec: codec, Run: "run"}
			if err := replay.Follow(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if same, err := s.is(f.Chain("run")); !same || err != nil {
				t.Errorf("%d events, %v", len(s.events), err)
			}
			if lost == 0 {
				t.Error("nothing was cut")
			}
		})
	}
}

// Random appends, restores, kills of the server, cuts and slow readers: what a client holds is
// the journal, whenever both rest.
func TestWhatAClientHoldsIsTheJournal(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := memfeed.New()
		f.Add("run", 1, "start")
		mux := &swap{}
		mux.set(f)
		h := httptest.NewServer(mux)
		defer h.Close()
		defer http.DefaultClient.CloseIdleConnections()
		defer mux.close()
		cut := newRelay(t, h.Listener.Addr().String(), func() int64 { return 1 << 40 })
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		var clients sync.WaitGroup
		var states []*state
		for i := range 2 {
			s := newState()
			states = append(states, s)
			r := client.Replay{URL: "http://" + cut.l.Addr().String() + "/v1/replay", Codec: codecs[i], Run: "run", Live: true}
			clients.Go(func() {
				for ctx.Err() == nil { // a short patience, and again from what is held: no time is spent on backoff
					s.mu.Lock()
					r.Cursor = client.Cursor{Seq: protocol.Seq(len(s.events))}
					if len(s.events) > 0 {
						r.Cursor.CID = s.events[len(s.events)-1]
					}
					s.mu.Unlock()
					r.Patience = -1
					if err := r.Follow(ctx, s.consumer()); errors.Is(err, protocol.ErrFutureCursor) || errors.Is(err, protocol.ErrGap) {
						s.mu.Lock()
						s.wrong = err
						s.mu.Unlock()
						return
					}
				}
			})
		}
		restored := 0
		for step := range rapid.IntRange(3, 15).Draw(rt, "steps") {
			switch rapid.IntRange(0, 5).Draw(rt, "what") {
			case 0, 1, 2:
				f.Add("run", rapid.IntRange(1, 300).Draw(rt, "events"), fmt.Sprint("step ", step))
			case 3:
				restored++
				f.Restore("run", rapid.IntRange(1, len(f.Chain("run"))).Draw(rt, "to"))
				f.Add("run", rapid.IntRange(0, 50).Draw(rt, "then"), fmt.Sprint("branch ", restored))
			case 4:
				mux.set(f) // the server is killed and comes back
			case 5:
				cut.cutAll()
			}
			if rapid.Bool().Draw(rt, "rest") {
				for _, s := range states {
					if err := s.await(ctx, f, "run"); err != nil {
						rt.Error(err)
					}
				}
			}
		}
		for i, s := range states {
			if err := s.await(ctx, f, "run"); err != nil {
				rt.Errorf("client %d: %v", i, err)
			}
		}
		stop()
		clients.Wait()
		cut.l.Close()
		cut.cutAll()
		cut.idle.Wait()
	})
}

// swap serves by a server that can be killed.
type swap struct {
	mu sync.Mutex
	s  *replay.Server
}

func (m *swap) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	s := m.s
	m.mu.Unlock()
	s.WebSocket().ServeHTTP(w, r)
}

func (m *swap) set(f protocol.Feed) {
	m.mu.Lock()
	old := m.s
	m.s = &replay.Server{Feed: f}
	m.mu.Unlock()
	if old != nil {
		old.Close()
	}
}

func (m *swap) close() { m.s.Close() }

// A consumer that is slow holds up nobody and misses nothing.
func TestASlowConsumerMissesNothing(t *testing.T) {
	f := memfeed.New()
	f.Add("run", 500, "e")
	h := serve(t, &replay.Server{Feed: f})
	s := newState()
	c := s.consumer()
	apply := c.Event
	c.Event = func(e client.Event) error {
		if e.Seq%100 == 0 {
			f.Add("run", 100, "meanwhile")
		}
		if e.Seq == 3000 {
			return errEnough
		}
		return apply(e)
	}
	r := client.Replay{URL: h.URL + "/v1/replay", Run: "run", Live: true}
	if err := r.Follow(t.Context(), c); !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	if s.wrong != nil || len(s.events) != 2999 {
		t.Error(len(s.events), s.wrong)
	}
}

var errEnough = errors.New("enough")

// scripted answers requests with frames of the test's own making.
func scripted(t *testing.T, codec protocol.Codec, answer func(n int, r protocol.Request) []protocol.Frame) *httptest.Server {
	t.Helper()
	n := 0
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{codec.Subprotocol()}})
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.CloseNow()
		typ := websocket.MessageText
		if codec == protocol.CBORFrames {
			typ = websocket.MessageBinary
		}
		for {
			_, b, err := conn.Read(r.Context())
			if err != nil {
				return
			}
			req, err := protocol.ParseRequest(codec, b)
			if err != nil {
				t.Error(err)
				return
			}
			frames := answer(n, req)
			n++
			for _, f := range frames {
				b, err := f.Encode(codec)
				if err != nil {
					t.Error(err)
					return
				}
				if conn.Write(r.Context(), typ, b) != nil {
					return
				}
			}
			if frames == nil {
				return
			}
		}
	}))
	t.Cleanup(h.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return h
}

func wireEvents(chain []protocol.Entry) []protocol.WireEvent {
	var out []protocol.WireEvent
	for _, e := range chain {
		out = append(out, protocol.WireEvent{Seq: e.Seq, CID: e.CID, Prev: e.Prev, TS: e.TS, Type: e.Type, Step: e.Step, Data: protocol.JSON("{}"), Raw: e.Raw})
	}
	return out
}

func complete(chain []protocol.Entry) protocol.Frame {
	e := chain[len(chain)-1]
	return protocol.Frame{Type: protocol.FrameReplayComplete, LastSeq: e.Seq, LastCID: e.CID}
}

// What does not follow the cursor is asked for again, with the proof of what is held.
func TestAnEventThatIsMissingIsAskedForAgain(t *testing.T) {
	f := memfeed.New()
	f.Add("run", 10, "e")
	chain := f.Chain("run")
	all := wireEvents(chain)
	var asked []protocol.Seq
	h := scripted(t, protocol.JSONFrames, func(n int, r protocol.Request) []protocol.Frame {
		asked = append(asked, *r.FromSeq)
		if n == 0 {
			return []protocol.Frame{{Type: protocol.FrameReplayBatch, Events: all[:4]}, {Type: protocol.FrameReplayEvent, Event: all[2]}, {Type: protocol.FrameReplayEvent, Event: all[6]}}
		}
		if r.LastCID != chain[3].CID {
			t.Errorf("proof %s", r.LastCID)
		}
		return []protocol.Frame{{Type: protocol.FrameReplayBatch, Events: all[4:]}, complete(chain)}
	})
	s := newState()
	r := client.Replay{URL: h.URL, Run: "run"}
	if err := r.Follow(t.Context(), s.consumer()); err != nil {
		t.Fatal(err)
	}
	if same, err := s.is(chain); !same || err != nil || !cmp.Equal(asked, []protocol.Seq{0, 4}) {
		t.Error(same, err, asked)
	}
}

// Bytes that do not hash to their CID are never applied; where they keep coming it is an error.
func TestForgedBytesAreNotApplied(t *testing.T) {
	f := memfeed.New()
	f.Add("run", 5, "e")
	g := memfeed.New()
	g.Add("run", 5, "forged")
	all, forged := wireEvents(f.Chain("run")), wireEvents(g.Chain("run"))
	all[3].Raw = forged[3].Raw
	connections := 0
	h := scripted(t, protocol.CBORFrames, func(n int, r protocol.Request) []protocol.Frame {
		connections++
		return []protocol.Frame{{Type: protocol.FrameReplayBatch, Events: all[*r.FromSeq:]}}
	})
	s := newState()
	r := client.Replay{URL: h.URL, Run: "run", Codec: protocol.CBORFrames}
	if err := r.Follow(t.Context(), s.consumer()); !errors.Is(err, protocol.ErrCorrupt) {
		t.Fatal(err)
	}
	if len(s.events) != 3 || connections < 3 {
		t.Errorf("%d events were applied over %d connections", len(s.events), connections)
	}
}

// An event that does not fit into a frame is fetched as a block.
func TestAnEventTooLongForAFrameIsFetched(t *testing.T) {
	first := memfeed.Next(protocol.Entry{}, "short")
	second := memfeed.Next(first, "long in the eyes of this server")
	third := memfeed.Next(second, "short")
	chain := []protocol.Entry{first, second, third}
	all := wireEvents(chain)
	all[1].Raw, all[1].Size = nil, int64(len(second.Raw))
	h := scripted(t, protocol.CBORFrames, func(n int, r protocol.Request) []protocol.Frame {
		if r.Type == protocol.FrameBlockRequest {
			half := len(second.Raw) / 2
			part := protocol.Frame{Type: protocol.FrameBlock, CID: r.CID, Size: int64(len(second.Raw)), Bytes: second.Raw[:half]}
			rest := part
			rest.Offset, rest.Bytes = int64(half), second.Raw[half:]
			return []protocol.Frame{part, {Type: protocol.FrameHeartbeat, LastSeq: 1, LastCID: first.CID}, rest, complete(chain)}
		}
		return []protocol.Frame{{Type: protocol.FrameReplayEvent, Event: all[0]}, {Type: protocol.FrameReplayEvent, Event: all[1]}, {Type: protocol.FrameReplayEvent, Event: all[2]}}
	})
	s := newState()
	r := client.Replay{URL: h.URL, Run: "run", Codec: protocol.CBORFrames}
	if err := r.Follow(t.Context(), s.consumer()); err != nil {
		t.Fatal(err)
	}
	if same, err := s.is(chain); !same || err != nil {
		t.Error(same, err)
	}
}

// A delta that came before an event of its step is out of date.
func TestOldDeltasAreLeftOut(t *testing.T) {
	f := memfeed.New()
	f.Add("run", 3, "e")
	chain := f.Chain("run")
	all := wireEvents(chain)
	delta := func(after protocol.Seq, step, text string) protocol.Frame {
		return protocol.Frame{Type: protocol.FrameDelta, AfterSeq: after, Step: step, N: 1, Kind: "text", Text: text}
	}
	h := scripted(t, protocol.JSONFrames, func(int, protocol.Request) []protocol.Frame {
		return []protocol.Frame{{Type: protocol.FrameReplayBatch, Events: all}, delta(2, "coder#1", "old"), delta(3, "coder#1", "new"), delta(1, "other#1", "of another"), complete(chain)}
	})
	var heard []string
	r := client.Replay{URL: h.URL, Run: "run"}
	if err := r.Follow(t.Context(), client.Consumer{Delta: func(d protocol.LiveDelta, _ int64) { heard = append(heard, d.Delta.Text) }}); err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(heard, []string{"new", "of another"}) {
		t.Error(heard)
	}
}

func TestErrorsThatNoOtherConnectionMendsAreReturned(t *testing.T) {
	f := memfeed.New()
	f.Add("run", 3, "e")
	h := serve(t, &replay.Server{Feed: f})
	for _, c := range []struct {
		name string
		r    client.Replay
		want error
	}{
		{"an unknown run", client.Replay{Run: "nobody"}, protocol.ErrUnknownRun},
		{"a cursor beyond the head", client.Replay{Run: "run", Cursor: client.Cursor{Seq: 9}}, protocol.ErrFutureCursor},
		{"a negative cursor", client.Replay{Run: "run", Cursor: client.Cursor{Seq: -1}}, protocol.ErrBadCursor},
	} {
		c.r.URL = h.URL + "/v1/replay"
		if err := c.r.Follow(t.Context(), client.Consumer{}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	for status, want := range map[int]error{401: protocol.ErrUnauthorized, 403: protocol.ErrForbidden, 421: protocol.ErrForbidden, 404: protocol.ErrNotFound} {
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		r := client.Replay{URL: h.URL, Run: "run"}
		if err := r.Follow(t.Context(), client.Consumer{}); !errors.Is(err, want) {
			t.Errorf("%d: %v", status, err)
		}
		h.Close()
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestTailBeginsAtTheHead(t *testing.T) {
	f := memfeed.New()
	f.Add("run", 30, "e")
	h := serve(t, &replay.Server{Feed: f})
	r := client.Replay{URL: h.URL + "/v1/replay", Run: "run", Tail: true, Live: true}
	var at protocol.Seq
	err := r.Follow(t.Context(), client.Consumer{
		Complete: func(c client.Cursor) error { at = c.Seq; f.Add("run", 1, "news"); return nil },
		Event: func(e client.Event) error {
			if at != 30 || e.Seq != 31 || !e.Live {
				t.Errorf("complete at %d, then %d", at, e.Seq)
			}
			return errEnough
		},
	})
	if !errors.Is(err, errEnough) {
		t.Error(err)
	}
}
