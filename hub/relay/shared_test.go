package relay_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"wf/hub/queue"
	"wf/hub/relay"
	"wf/pgstore/pgtest"
	"wf/protocol"
)

// twoHouses are two hubs that share a queue.
func twoHouses(t *testing.T) (left, right *house) {
	t.Helper()
	dsn := must(pgtest.Shared(t).Database(t.Context()))(t)
	left, right = newHouseIn(t, dsn), newHouseIn(t, dsn)
	left.awaitGrace()
	right.awaitGrace()
	return left, right
}

// also connects the worker of a desk to another hub too.
func (d *desk) also(h *house) {
	d.Helper()
	w := &relay.Worker{Hub: "http://" + h.addr, ID: d.worker.ID, Name: d.worker.Name, Version: "1", Store: d.worker.Store, Capacity: d.worker.Capacity,
		Debounce: 10 * time.Millisecond, Identity: d.worker.Identity, Handler: d.worker.Handler, Process: d.worker.Process, Log: logger(h)}
	ctx, cancel := context.WithCancel(context.Background())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if err := w.Serve(ctx); err != nil {
			d.Error(err)
		}
	}()
	d.Cleanup(func() { cancel(); <-gone })
}

// linked waits until the worker of a desk is connected to a hub itself.
func (d *desk) linked(h *house) {
	d.Helper()
	h.until(func() bool { return relay.Linked(h.hub, d.worker.ID) })
}

// job is a job as a hub lists it.
func (h *house) job(id string) (e queue.Entry) {
	h.Helper()
	var list relay.Queue
	h.get("/v1/queue", &list)
	for _, e := range list.Items {
		if e.ID == id {
			return e
		}
	}
	return e
}

// A worker that one hub was told to drain gets no job of the other one either.
func TestAWorkerDrainsAtBothHubs(t *testing.T) {
	left, right := twoHouses(t)
	a := newDesk(left, "a", "fix")
	a.worker.Process = relay.NewProcess()
	a.arrive()
	a.also(right)
	a.linked(left)
	a.linked(right)
	must(right.api.DrainWorker(t.Context(), "a", true))(t)
	left.hub.Holding = 1
	left.until(func() bool { return relay.Drains(left.hub, "a") }) // it hears of it with a heartbeat
	if status, answer := left.post(`{"workflow":"fix","request_id":"job1"}`); status != http.StatusAccepted {
		t.Errorf("have %d %s", status, answer)
	}
	if e := left.job("job1"); e.State != queue.Queued || e.Reason != "draining" {
		t.Errorf("have %+v", e)
	}
	must(right.api.DrainWorker(t.Context(), "a", false))(t)
	if e := must(right.hub.Queue.Await(t.Context(), "job1"))(t); e.Run != "R-job1" || e.Worker != "a" {
		t.Errorf("have %+v", e)
	}
}

// What one hub gives a worker counts at the other one before the worker says that it has the run.
func TestTheCapacityOfAWorkerHoldsForBothHubs(t *testing.T) {
	left, right := twoHouses(t)
	a := newDesk(left, "a", "fix")
	a.worker.Process, a.worker.Capacity = relay.NewProcess(), 1
	beginning, goOn := make(chan string, 2), make(chan error)
	a.onStart = func(job string) error { beginning <- job; return <-goOn }
	a.arrive()
	a.also(right)
	a.linked(left)
	a.linked(right)
	answers := make(chan string, 2)
	for _, h := range []*house{left, right} {
		go func() {
			_, answer := h.post(`{"workflow":"fix","request_id":"` + map[*house]string{left: "job1", right: "job2"}[h] + `"}`)
			answers <- answer
		}()
		if h == left {
			<-beginning
		}
	}
	// Whichever hub gave the first one, neither gives the second.
	for _, h := range []*house{left, right} {
		h.until(func() bool { e := h.job("job2"); return e.State == queue.Queued && e.Reason == "no_capacity" })
	}
	goOn <- protocol.ErrBusy // it did not begin: the place is free, for either
	for range 2 {
		<-beginning
		goOn <- nil
	}
	for range 2 {
		if answer := <-answers; !strings.Contains(answer, `"id":"R-job`) {
			t.Errorf("have %s", answer)
		}
	}
	if got := a.begun(); len(got) != 3 {
		t.Errorf("begun %v", got)
	}
}

// Another process with the id of a worker is refused by a hub to which that one is not connected.
func TestAWorkerIsTakenAtAnotherHub(t *testing.T) {
	left, right := twoHouses(t)
	a := newDesk(left, "a", "fix").arrive()
	a.linked(left)
	said := make(chan string, 100)
	copied := newDesk(right, "a", "fix")
	copied.worker.Log = slog.New(heard{said})
	copied.arrive()
	for text := range said {
		if text == relay.ErrWorkerTaken.Code {
			break
		}
	}
	a.leave()
	copied.linked(right) // now it is free
}

// heard passes on what is logged, and the codes of errors.
type heard struct{ said chan string }

func (h heard) Enabled(context.Context, slog.Level) bool { return true }
func (h heard) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h heard) WithGroup(string) slog.Handler            { return h }
func (h heard) Handle(_ context.Context, r slog.Record) error {
	h.say(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok {
			h.say(protocol.CodeOf(err))
		}
		return true
	})
	return nil
}

func (h heard) say(text string) {
	select {
	case h.said <- text:
	default: // it is not listened to
	}
}

// A run that one worker has while it is connected to the other hub alone is not given to a worker that shows it here.
func TestARunStaysWithAWorkerOfAnotherHub(t *testing.T) {
	left, right := twoHouses(t)
	a := newDesk(left, "a", "fix")
	a.say("R", "one")
	a.arrive()
	left.pointed("R", func(p queue.Pointer) bool { return p.Worker == "a" && p.Seq == 1 })
	b := newDesk(right, "b", "fix")
	b.say("R", "one")
	b.say("R", "two")
	b.say("mark", "one")
	b.arrive()
	right.pointed("mark", func(p queue.Pointer) bool { return p.Worker == "b" }) // it has said all
	if p := must(right.kept.Get(t.Context(), "R"))(t); p.Worker != "a" {
		t.Errorf("have %+v", p)
	}
}

// The database of the queue is lost: submissions are refused with its code, workers stay connected and their runs are shown; what they said
// meanwhile is recorded when it is back.
func TestTheDatabaseOfTheQueueIsLost(t *testing.T) {
	server := pgtest.Own(t)
	h := newHouseIn(t, must(server.Database(t.Context()))(t))
	h.awaitGrace()
	a, said := newDesk(h, "a", "fix"), make(chan string, 1000)
	a.worker.Log = slog.New(heard{said})
	a.say("R", "one")
	a.arrive()
	h.pointed("R", func(p queue.Pointer) bool { return p.Seq == 1 })
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	status, answer := h.post(`{"workflow":"fix","request_id":"job1"}`)
	if status != http.StatusServiceUnavailable || !strings.Contains(answer, `"store_unreachable"`) {
		t.Errorf("have %d %s", status, answer)
	}
	a.say("R", "two")
	a.say("S", "one")
	for range 3 { // and some heartbeats
		var run struct{ Seq protocol.Seq }
		if status := h.get("/v1/runs/R", &run); status != http.StatusOK || run.Seq != 2 {
			t.Errorf("have %d, %+v", status, run)
		}
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	h.pointed("R", func(p queue.Pointer) bool { return p.Seq == 2 })
	h.pointed("S", func(p queue.Pointer) bool { return p.Worker == "a" })
	if status, answer := h.post(`{"workflow":"fix","request_id":"job1"}`); status != http.StatusCreated {
		t.Errorf("have %d %s", status, answer)
	}
	for n := 0; len(said) > 0; {
		if text := <-said; text == "registered with the hub" {
			if n++; n > 1 {
				t.Error("the worker has lost its connection")
			}
		}
	}
}

// gets are pointers that are counted, by run R, and read unless the database is away for the nth.
type gets struct {
	queue.Pointers
	counted chan int
	away    int
}

func (g gets) Get(ctx context.Context, run protocol.RunID) (queue.Pointer, error) {
	if run == "R" {
		n := <-g.counted + 1
		g.counted <- n
		if n == g.away {
			return queue.Pointer{}, fmt.Errorf("run %s: %w", run, protocol.ErrUnreachable)
		}
	}
	return g.Pointers.Get(ctx, run)
}

// The database is lost while a worker is refused a run that another one has: it stays connected, and what it said is looked at again.
func TestTheDatabaseIsLostWhileTwoWorkersClaimOneRun(t *testing.T) {
	h := newHouse(t)
	h.hub.Heartbeat = 50 * time.Millisecond
	a := newDesk(h, "a", "fix")
	a.say("R", "one")
	counted := make(chan int, 1)
	counted <- -1                             // of a
	h.hub.Pointers = gets{h.kept, counted, 2} // first comes whose it is
	a.arrive()
	h.pointed("R", func(p queue.Pointer) bool { return p.Worker == "a" })
	b, said := newDesk(h, "b", "fix"), make(chan string, 1000)
	b.worker.Log = slog.New(heard{said})
	b.say("R", "one")
	b.arrive()
	h.await(2)
	h.until(func() bool { // each heartbeat is a change
		n := <-counted
		counted <- n
		return n >= 3
	})
	for n := 0; len(said) > 0; {
		if text := <-said; text == "registered with the hub" {
			if n++; n > 1 {
				t.Error("the worker has lost its connection")
			}
		}
	}
}

// A hub is gone while a worker begins a job that it gave. Where the worker has begun it, the other hub hears so and gives it to none; where it has not, the
// other hub gives it when the lease has lapsed.
func TestAHubIsGoneWhileAJobBegins(t *testing.T) {
	for _, begins := range []bool{true, false} {
		left, right := twoHouses(t)
		left.hub.Lease = 2 * time.Second
		a, b := newDesk(left, "a", "fix"), newDesk(right, "b", "fix").met(right)
		a.worker.Process = relay.NewProcess()
		beginning, goOn := make(chan string, 1), make(chan error, 1)
		a.onStart = func(job string) error { beginning <- job; return <-goOn }
		a.arrive()
		a.linked(left)
		left.hub.Holding = 1
		if status, answer := left.post(`{"workflow":"fix","request_id":"job1"}`); status != http.StatusAccepted {
			t.Fatalf("have %d %s", status, answer)
		}
		<-beginning
		a.also(right)
		b.arrive()
		a.linked(right)
		b.linked(right)
		left.shut()
		if e := right.job("job1"); e.State != queue.Leased || e.Worker != "a" {
			t.Errorf("the other hub shows %+v", e)
		}
		if begins {
			goOn <- nil
		} else {
			must(right.api.DrainWorker(t.Context(), "a", true))(t)
			goOn <- protocol.ErrBusy
		}
		e := must(right.hub.Queue.Await(t.Context(), "job1"))(t)
		if e.State != queue.Done || e.Run != "R-job1" || (e.Worker == "a") != begins || (len(b.begun()) == 0) != begins {
			t.Errorf("begun %v: have %+v, and b has begun %v", begins, e, b.begun())
		}
		p := must(right.kept.Get(t.Context(), "R-job1"))(t)
		if p.Worker != e.Worker || p.Epoch != e.Epoch {
			t.Errorf("have %+v of %+v", p, e)
		}
	}
}
