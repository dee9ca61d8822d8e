package relay_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"wf/hub/client"
	"wf/hub/queue"
	"wf/hub/relay"
	"wf/protocol"
)

// A worker whose connection stands still while it is given a job gets it when the lease is
// another's: it asks the hub, and starts nothing.
func TestAWorkerThatLostItsLeaseDoesNotStartTheJob(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.hub.Lease = 2 * time.Second
	h.hub.Starting = time.Second
	a, b := newDesk(h, "a", "fix"), newDesk(h, "b", "fix").met(h)
	cut := newCutter(t, h.addr)
	a.worker.Hub = "http://" + cut.addr
	a.say("hello", "x")
	a.arrive()
	h.pointed("hello", func(queue.Pointer) bool { return true })
	h.await(1)
	thaw := cut.freeze() // what the hub sends does not arrive; what a sends does
	done := make(chan error, 1)
	go func() {
		_, err := h.submit("fix", "job1")
		done <- err
	}()
	id := h.queued(1)[0].ID
	h.until(func() bool { return must(h.hub.Queue.Find(t.Context(), id))(t).Attempts > 0 })
	b.arrive()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	thaw()
	a.say("mark", "x")
	h.pointed("mark", func(queue.Pointer) bool { return true })
	if len(a.begun()) != 0 || !slices.Equal(b.begun(), []string{"job1"}) {
		t.Errorf("started: a %v, b %v", a.begun(), b.begun())
	}
	if p := must(h.hub.Pointers.Get(t.Context(), "R-job1"))(t); p.Worker != "b" {
		t.Errorf("have %+v", p)
	}
}

// A worker started a job, died, and comes back when another one has it: its run is that one's,
// and it is told.
func TestAWorkerThatComesBackTooLateIsTold(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.hub.Lease = 2 * time.Second // longer than b takes to start
	a, b := newDesk(h, "a", "fix"), newDesk(h, "b", "fix").met(h)
	a.onStart = func(id string) error {
		a.die() // the hub hears nothing of what it does now
		a.say(protocol.RunID("R-"+id), "begun")
		b.arrive()
		return errors.New("nobody hears this")
	}
	a.arrive()
	h.await(1)
	if _, err := h.submit("fix", "job1"); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(b.begun(), []string{"job1"}) {
		t.Fatalf("b started %v", b.begun())
	}
	told := make(chan string, 1)
	a.worker.Moved = func(run protocol.RunID, to string) { told <- string(run) + " " + to }
	a.arrive()
	if got := <-told; got != "R-job1 b" {
		t.Errorf("told %q", got)
	}
	if p := must(h.hub.Pointers.Get(t.Context(), "R-job1"))(t); p.Worker != "b" || p.Epoch == 0 {
		t.Errorf("have %+v", p)
	}
}

// Two stores have one run, say because one is a copy of the other. It belongs to whoever said so
// first, as long as that one is there; a copy with fewer events never gets it.
func TestTwoWorkersClaimOneRun(t *testing.T) {
	h := newHouse(t)
	a, b := newDesk(h, "a"), newDesk(h, "b")
	a.say("run1", "one", "two", "three")
	b.say("run1", "one", "two")
	b.say("mark", "x")
	b.worker.Moved = func(protocol.RunID, string) { t.Error("a copy that no job made is not to be stopped") }
	a.arrive()
	h.pointed("run1", func(p queue.Pointer) bool { return p.Seq == 3 })
	b.arrive()
	h.pointed("mark", func(p queue.Pointer) bool { return p.Worker == "b" }) // all claims of b were heard
	owner := func() string { return must(h.hub.Pointers.Get(t.Context(), "run1"))(t).Worker }
	if owner() != "a" {
		t.Error("the second claim won")
	}
	a.leave()
	h.await(1)
	b.leave()
	h.await(0)
	b.arrive()
	h.await(1)
	b.say("mark", "y")
	h.pointed("mark", func(p queue.Pointer) bool { return p.Seq == 2 })
	if owner() != "a" {
		t.Error("a copy with fewer events won")
	}
	b.say("run1", "another three", "four")
	h.pointed("run1", func(p queue.Pointer) bool { return p.Worker == "b" && p.Seq == 4 })
}

// A run that was imported at a worker is shown there where no other worker has it, and is no reason to take it from the
// worker that it was begun at: neither while that one is away, nor when the hub has forgotten both.
func TestAnImportedRunStaysThatOfTheWorkerItWasBegunAt(t *testing.T) {
	h := newHouse(t)
	a, b := newDesk(h, "a", "fix"), newDesk(h, "b")
	b.worker.Store.(*shelf).foreign = true
	for _, d := range []*desk{a, b} {
		d.worker.Moved = func(protocol.RunID, string) { t.Error("worker " + d.worker.ID + " stops a run that it need not stop") }
	}
	a.arrive()
	h.await(1)
	if _, err := h.submit("fix", "job1"); err != nil {
		t.Fatal(err)
	}
	owner := func(run protocol.RunID) string { return must(h.hub.Pointers.Get(t.Context(), run))(t).Worker }
	seen := protocol.Seq(0)
	hears := func() { // all claims of b
		seen++
		b.say("mark", "x")
		h.pointed("mark", func(p queue.Pointer) bool { return p.Seq == seen })
	}
	b.say("R-job1", "begun", "and", "further")
	b.say("lost", "one", "two", "three")
	b.arrive()
	hears()
	if owner("R-job1") != "a" || owner("lost") != "b" {
		t.Errorf("begun at a, it is that of %s; known to b alone, it is that of %s", owner("R-job1"), owner("lost"))
	}
	a.leave()
	h.await(1)
	b.leave()
	h.await(0)
	b.arrive()
	hears()
	if owner("R-job1") != "a" {
		t.Error("an imported copy took the run of a worker that is away")
	}
	a.say("lost", "one")
	a.arrive()
	h.pointed("lost", func(p queue.Pointer) bool { return p.Worker == "a" })
	if owner("R-job1") != "a" {
		t.Error("the run did not come back")
	}
}

// One id, two processes: the second is refused while the first lives, and gets in when it is
// gone. The same process that connects anew takes its own place.
func TestTwoProcessesAreOneWorker(t *testing.T) {
	h := newHouse(t)
	first, second := newDesk(h, "a").arrive(), newDesk(h, "a")
	h.await(1)
	first.say("run1", "x")
	h.pointed("run1", func(queue.Pointer) bool { return true })
	second.say("run2", "x")
	second.arrive()
	first.leave()
	h.pointed("run2", func(p queue.Pointer) bool { return p.Worker == "a" }) // it tried until then
}

// A link that is cut in the middle of a frame costs nothing but the time to connect anew.
func TestALinkThatIsCutInTheMiddleIsMadeAnew(t *testing.T) {
	h := newHouse(t)
	a := newDesk(h, "a")
	cut := newCutter(t, h.addr)
	a.worker.Hub = "http://" + cut.addr
	// The worker comes by the cutter, under whose name the hub does not go: that is the guard's
	// business, and none stands here.
	a.arrive()
	h.await(1)
	entries := a.say("run1", strings.Repeat("x", 3000))
	for range 50 {
		entries = append(entries, a.say("run1", strings.Repeat("y", 3000))...)
	}
	h.grace = time.Minute
	seen := 0
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := client.Replay{URL: "ws://" + h.addr + "/v1/replay", HTTP: h.api.HTTP(), Codec: protocol.CBORFrames, Run: "run1", Live: true}
	err := r.Follow(ctx, client.Consumer{Event: func(e client.Event) error {
		if e.CID != entries[seen].CID {
			t.Errorf("event %d is %s", e.Seq, e.CID)
		}
		if seen++; seen == len(entries) {
			cancel()
		} else if seen%10 == 0 {
			cut.now()
		}
		return nil
	}})
	if !errors.Is(err, context.Canceled) || seen != len(entries) {
		t.Errorf("%v after %d of %d events", err, seen, len(entries))
	}
}

// A cutter is a relay of TCP that can cut what goes through it.
type cutter struct {
	addr string
	mu   sync.Mutex
	open []net.Conn
	cold chan struct{} // until it is closed nothing goes towards who dialled; nil is thawed
}

func newCutter(t *testing.T, to string) *cutter {
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	c := &cutter{addr: l.Addr().String()}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			c.mu.Lock()
			c.open = append(c.open, in, out)
			c.mu.Unlock()
			all.Go(func() { pipe(in, out, c.wait) })
			all.Go(func() { pipe(out, in, nil) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		c.now()
		all.Wait()
	})
	return c
}

func pipe(to, from net.Conn, hold func()) {
	buf := make([]byte, 777) // no size of anything
	for {
		n, err := from.Read(buf)
		if hold != nil {
			hold()
		}
		if err == nil {
			_, err = to.Write(buf[:n])
		}
		if err != nil {
			to.Close()
			from.Close()
			return
		}
	}
}

// freeze stops what goes towards who dialled, until thaw.
func (c *cutter) freeze() (thaw func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cold := make(chan struct{})
	c.cold = cold
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.cold = nil
		close(cold)
	}
}

func (c *cutter) wait() {
	c.mu.Lock()
	cold := c.cold
	c.mu.Unlock()
	if cold != nil {
		<-cold
	}
}

func (c *cutter) now() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.open {
		conn.Close()
	}
	c.open = nil
}

// What dials in and does not speak as a worker does is cut off, and the hub goes on.
func TestWhoIsNoWorkerIsRefused(t *testing.T) {
	h := newHouse(t)
	for _, test := range []struct{ name, first, want string }{
		{"no register", `{"type":"heartbeat"}`, "bad_request"},
		{"no JSON", `hello`, ""},
		{"another version", `{"type":"register","wire":99,"agentId":"x"}`, "bad_request"},
		{"no id", `{"type":"register","wire":1}`, "bad_request"},
		{"an id that is none", `{"type":"register","wire":1,"agentId":"a\u0000b"}`, "bad_request"},
		{"a line without end", strings.Repeat("x", 2<<20), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := relay.SpeakFirst(t.Context(), "http://"+h.addr, test.first); got != test.want {
				t.Errorf("answered %q, want %q", got, test.want)
			}
		})
	}
	newDesk(h, "a").arrive()
	h.await(1)
	var got list
	if status := h.get("/v1/agents", &got); status != http.StatusOK || len(got.Items) != 1 {
		t.Errorf("have %d, %v", status, got.Items)
	}
}

// ledger is a store of many runs.
type ledger struct {
	*shelf
	runs []relay.Run
}

func (l *ledger) Runs(context.Context) ([]relay.Run, error) { return l.runs, nil }

// A worker with very many runs is registered before its heartbeat is missed.
func TestAWorkerWithManyRunsRegisters(t *testing.T) {
	h := newHouse(t)
	d := newDesk(h, "a")
	all := &ledger{shelf: &shelf{Store: d.store, caps: nil}}
	for i := range 20_000 {
		all.runs = append(all.runs, relay.Run{ID: protocol.RunID(fmt.Sprint("run", i)), HeadSeq: 1, HeadCID: "c", RequestID: fmt.Sprint("request", i)})
	}
	d.worker.Store = all
	d.arrive()
	h.pointed("run19999", func(p queue.Pointer) bool { return p.Worker == "a" })
	if e := must(h.hub.Queue.List(t.Context()))(t); len(e) > 0 {
		t.Errorf("the queue has %v", e)
	}
}

// A run that was started at the worker under a request id that no queue takes is listed like any
// other, and is no reason to refuse the worker.
func TestARequestIDThatIsNoJobsIsLeftOut(t *testing.T) {
	h := newHouse(t)
	d := newDesk(h, "a")
	d.worker.Store = &ledger{shelf: &shelf{Store: d.store, caps: nil}, runs: []relay.Run{
		{ID: "long", HeadSeq: 1, HeadCID: "c", RequestID: strings.Repeat("x", 500)},
		{ID: "odd", HeadSeq: 1, HeadCID: "c", RequestID: "a\tb"},
		{ID: "plain", HeadSeq: 1, HeadCID: "c", RequestID: "request"},
	}}
	d.arrive()
	for _, run := range []protocol.RunID{"long", "odd", "plain"} {
		h.pointed(run, func(p queue.Pointer) bool { return p.Worker == "a" })
	}
}
