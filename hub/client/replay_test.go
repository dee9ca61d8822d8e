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
	t.Parallel()
	f := memfeed.New()
	f.Add("run", 2000, "e")
	for _, codec := range codecs {
		t.Run(codec.Subprotocol(), func(t *testing.T) {
			t.Parallel()
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
			c.Lost = func(error) { lost++ }
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
	t.Parallel()
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
					r.Once = true
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
		cut.stop()
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

// deleting is a feed with a run that was deleted.
type deleting struct{ *memfeed.Feed }

func (d deleting) Tip(ctx context.Context, run protocol.RunID) (protocol.Link, protocol.Seq, error) {
	if run == "gone" {
		return protocol.Link{}, 0, (&protocol.Tombstone{Run: run, By: "ada", At: 1}).Error()
	}
	return d.Feed.Tip(ctx, run)
}

func TestErrorsThatNoOtherConnectionMendsAreReturned(t *testing.T) {
	f := memfeed.New()
	f.Add("run", 3, "e")
	h := serve(t, &replay.Server{Feed: deleting{f}})
	for _, c := range []struct {
		name string
		r    client.Replay
		want error
	}{
		{"a run that was deleted", client.Replay{Run: "gone"}, protocol.ErrRunDeleted},
		{"one that is followed", client.Replay{Run: "gone", Cursor: client.Cursor{Seq: 2}, Live: true}, protocol.ErrRunDeleted},
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

// A window ends where it was asked to, or at the head.
func TestAWindowEndsWhereItIsWanted(t *testing.T) {
	f := memfeed.New()
	f.Add("run", 30, "e")
	h := serve(t, &replay.Server{Feed: f})
	for _, to := range []protocol.Seq{1, 17, 30, 99} {
		r := client.Replay{URL: h.URL + "/v1/replay", Run: "run", To: to}
		events, complete := 0, protocol.Seq(0)
		err := r.Follow(t.Context(), client.Consumer{
			Event:    func(client.Event) error { events++; return nil },
			Complete: func(c client.Cursor) error { complete = c.Seq; return nil },
		})
		if want := min(30, to); err != nil || events != int(want) || complete != want {
			t.Errorf("up to %d: %d events, complete at %d, %v", to, events, complete, err)
		}
	}
}
