package relay_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"wf/cas"
	"wf/hub/guard"
	"wf/hub/queue"
	"wf/hub/relay"
	"wf/hub/reply"
	"wf/protocol"
)

// The workers of a bound house have tokens of their own: that of the worker a is "a". "shared" is a
// token of no worker in particular. The tokens name the workers a, b and evil.
func newBoundHouse(t testing.TB) *house {
	h := newHouse(t)
	h.shut()
	h.wrap = func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			id := everyone
			if r.URL.Path == relay.WorkerPath {
				token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
				id = guard.Identity{Name: token, Scopes: []guard.Scope{guard.Worker}, Worker: token}
				if token == "shared" {
					id.Worker = ""
				}
			}
			next.ServeHTTP(w, r.WithContext(guard.With(r.Context(), id)))
		})
	}
	h.open()
	h.hub.NamesWorker = func(id string) bool { return slices.Contains([]string{"a", "b", "evil"}, id) }
	h.hub.MadeBy = func(request string, run protocol.RunID) bool { return run == protocol.RunID("R-"+request) }
	return h
}

// with gives the worker a token.
func (d *desk) with(token string) *desk {
	d.worker.Token = func() (string, error) { return token, nil }
	return d
}

// The token of one worker, and that which workers share, are refused under the id of another worker
// that has a token: while that worker is away, and while it is connected.
func TestATokenOfOneWorkerCannotRegisterAnother(t *testing.T) {
	h := newBoundHouse(t)
	refused := func(token string) {
		t.Helper()
		d := newDesk(h, "a").with(token)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // for a hub that takes it
		defer cancel()
		err := d.worker.Once(ctx)
		if protocol.CodeOf(err) != protocol.ErrForbidden.Code {
			t.Errorf("the token %s registered the worker a: %v", token, err)
		}
	}
	refused("evil")
	refused("shared")
	newDesk(h, "a").with("a").arrive()
	h.await(1)
	refused("evil")
	refused("shared")
	newDesk(h, "c").with("shared").arrive() // an id that no token names
	h.await(2)
}

// A worker that claims the runs of another one, with more events than were heard of, does not get
// them, whether the other is connected or away; and the runs that it lists under their names are
// not shown.
func TestAWorkerCannotTakeTheRunsOfAnother(t *testing.T) {
	for _, token := range []string{"evil", "shared"} {
		t.Run(token, func(t *testing.T) {
			h := newBoundHouse(t)
			a := newDesk(h, "a").with("a")
			a.say("run1", "one")
			a.arrive()
			h.pointed("run1", func(p queue.Pointer) bool { return p.Worker == "a" })
			owner := func() string { return must(h.hub.Pointers.Get(t.Context(), "run1"))(t).Worker }
			id := map[string]string{"evil": "evil", "shared": "c"}[token]
			evil := newDesk(h, id).with(token)
			evil.say("run1", "one", "two", "three")
			evil.say("mark1", "x")
			evil.arrive()
			h.pointed("mark1", func(p queue.Pointer) bool { return p.Worker == id })
			if got := owner(); got != "a" {
				t.Errorf("connected: the run went to %s", got)
			}
			a.leave()
			h.await(1)
			evil.leave()
			evil.say("run1", "four")
			evil.say("mark2", "x")
			evil.arrive()
			h.pointed("mark2", func(p queue.Pointer) bool { return p.Worker == id })
			if got := owner(); got != "a" {
				t.Errorf("away: the run went to %s", got)
			}
			var answer struct{ Code string }
			if status := h.get("/v1/runs/run1", &answer); status != http.StatusServiceUnavailable || answer.Code != protocol.ErrWorkerAway.Code {
				t.Errorf("the run was answered for: %d %+v", status, answer)
			}
			var list struct{ Items []struct{ ID, Worker string } }
			h.get("/v1/runs", &list)
			for _, x := range list.Items {
				if x.ID == "run1" {
					t.Errorf("the run is listed as that of %s", x.Worker)
				}
			}
			if len(list.Items) != 2 {
				t.Errorf("listed are %+v", list.Items)
			}
		})
	}
}

// A worker that is given a job answers with the run of another worker, or says that its own run is
// what became of a request that it was never given. It gets neither.
func TestAWorkerCannotAnswerAJobWithAnotherRun(t *testing.T) {
	h := newBoundHouse(t)
	a := newDesk(h, "a").with("a")
	a.say("run1", "one")
	a.arrive()
	h.pointed("run1", func(p queue.Pointer) bool { return p.Worker == "a" })
	a.leave()
	h.await(0)
	evil := newDesk(h, "evil", "fix").with("evil")
	honest := evil.worker.Handler
	asked, joined := make(chan struct{}, queue.Attempts), make(chan struct{})
	evil.worker.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			honest.ServeHTTP(w, r)
			return
		}
		asked <- struct{}{}
		<-joined // while it has the lease: the other worker is passed the key of the job all the same
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"schema":"wf.started/v1","id":"run1","fresh":true}`))
	})
	evil.say("run1", "one", "two")
	evil.arrive()
	h.await(1)
	b := newDesk(h, "b", "fix").with("b")
	done := make(chan error, 1)
	go func() {
		run, err := h.submit("fix", "job1")
		if err == nil && run != "R-job1" {
			t.Errorf("the job became %s", run)
		}
		done <- err
	}()
	<-asked
	b.arrive()
	h.until(func() bool { return len(must(h.hub.Queue.Find(h.Context(), "job1"))(t).Keys) == 2 })
	close(joined)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if p := must(h.hub.Pointers.Get(t.Context(), "run1"))(t); p.Worker != "a" {
		t.Errorf("the run of the worker a went to %s", p.Worker)
	}
	if p := must(h.hub.Pointers.Get(t.Context(), "R-job1"))(t); p.Worker != "b" {
		t.Errorf("the job went to %s", p.Worker)
	}
}

// A worker answers on the socket of a client with frames under the id of a subscription that leads
// to another worker. The client does not see them.
func TestAWorkerCannotSpeakUnderTheSubscriptionOfAnother(t *testing.T) {
	h := newBoundHouse(t)
	a := newDesk(h, "a").with("a")
	a.say("run-a", "one")
	a.arrive()
	evil := newDesk(h, "evil").with("evil")
	evil.say("run-e", "one")
	evil.worker.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{protocol.JSONFrames.Subprotocol()}})
		if err != nil {
			t.Error(err)
			return
		}
		defer c.CloseNow()
		if _, _, err := c.Read(r.Context()); err != nil {
			return
		}
		for _, line := range []string{
			`{"type":"delta","id":"x","step":"coder#1","n":1,"kind":"text","text":"lies"}`,
			`{"type":"replay_error","id":"x","code":"unknown_session","message":"lies"}`,
			`{"type":"replay_event","id":"x","seq":0,"lies":true}`,
			`{"type":"replay_error","id":"y","code":"internal","message":"the end"}`,
		} {
			if err := c.Write(r.Context(), websocket.MessageText, []byte(line)); err != nil {
				return
			}
		}
		_, _, _ = c.Read(r.Context()) // until the client leaves
	})
	evil.arrive()
	h.pointed("run-e", func(p queue.Pointer) bool { return p.Worker == "evil" })
	h.pointed("run-a", func(p queue.Pointer) bool { return p.Worker == "a" })
	w := h.dial(protocol.JSONFrames)
	w.ask("x", "run-a", 0, true)
	w.expect(map[string][]string{"x": {"event 1", "complete 1"}})
	w.ask("y", "run-e", 0, true)
	w.expect(map[string][]string{"y": {"error internal"}})
	a.say("run-a", "two")
	w.expect(map[string][]string{"x": {"event 2"}})
	_ = w.conn.CloseNow() // the hub would wait for it at the end
}

// A worker says that it has every block, and gives other bytes for them. Clients get those of the
// worker that has the block, also where the text of a payload is put together of several.
func TestAWorkerCannotAnswerForTheBlocksOfAnother(t *testing.T) {
	h := newBoundHouse(t)
	a := newDesk(h, "a").with("a")
	link := a.say("run-a", "the truth")[0].CID
	long := strings.Repeat("the truth ", 400_000)
	root, blocks := cas.Payload([]byte(long))
	if len(blocks) < 2 {
		t.Fatalf("%d blocks are no chunks", len(blocks))
	}
	a.say("run-b", long)
	a.arrive()
	h.await(1)
	evil := newDesk(h, "evil").with("evil")
	evil.worker.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") == "*" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		reply.Bytes(w, http.StatusOK, "application/vnd.ipld.raw", []byte("lies"))
	})
	evil.arrive()
	h.await(2)
	for range 5 {
		block := must(h.api.Block(t.Context(), link))(t)
		if want := must(a.store.Block(t.Context(), link))(t); !slices.Equal(block, want) {
			t.Fatalf("the block is %.40q", block)
		}
		res := must(h.api.HTTP().Get("http://" + h.addr + "/v1/blocks/" + root.String() + "?payload=true"))(t)
		text := string(must(io.ReadAll(res.Body))(t))
		res.Body.Close()
		if text != long {
			t.Fatalf("the payload has %d bytes, and begins with %.40q", len(text), text)
		}
	}
	a.leave()
	h.await(1)
	if _, err := h.api.Block(t.Context(), link); protocol.CodeOf(err) != protocol.ErrNotFound.Code {
		t.Errorf("a block of a worker that is away: %v", err)
	}
}

// A worker says that it has begun a job which it was never given, or has the run of it: a job that waits for another worker, and one that
// another worker has the lease of. It gets neither the job nor the run, and the other worker keeps what it begins.
func TestAWorkerCannotTakeAJobThatItWasNotGiven(t *testing.T) {
	for _, leased := range []bool{false, true} {
		for _, silent := range []bool{false, true} {
			t.Run(fmt.Sprint("leased ", leased, ", silent ", silent), func(t *testing.T) {
				h := newBoundHouse(t)
				b := newDesk(h, "b", "fix").with("b").met(h)
				began, goOn := make(chan struct{}), make(chan struct{})
				b.onStart = func(string) error {
					close(began)
					<-goOn
					return nil
				}
				done := make(chan error, 1)
				go func() {
					_, err := h.submit("fix", "job1")
					done <- err
				}()
				h.queued(1)
				if leased {
					b.arrive()
					<-began
				}
				evil := newDesk(h, "evil").with("evil")
				evil.worker.Store.(*shelf).silent = silent
				evil.say("R-job1", "lies", "and more of them")
				evil.say("mark", "x")
				evil.arrive()
				h.pointed("mark", func(p queue.Pointer) bool { return p.Worker == "evil" })
				if e := must(h.hub.Queue.Find(t.Context(), "job1"))(t); e.State == queue.Done {
					t.Fatalf("the job is done, by %s", e.Worker)
				}
				if !leased {
					b.arrive()
					<-began
				}
				close(goOn)
				if err := <-done; err != nil {
					t.Error(err)
				}
				if p := must(h.hub.Pointers.Get(t.Context(), "R-job1"))(t); p.Worker != "b" {
					t.Errorf("the run is that of %s", p.Worker)
				}
			})
		}
	}
}
