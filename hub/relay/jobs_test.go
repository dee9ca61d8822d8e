package relay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wf/api"
	"wf/hub/client"
	"wf/hub/queue"
	"wf/hub/relay"
	"wf/protocol"
)

// submit submits a job and waits for its run.
func (h *house) submit(workflow, request string) (protocol.RunID, error) {
	run, _, err := h.api.Submit(h.Context(), &api.Start{Workflow: workflow, RequestID: request, Inputs: topic("the prompt of " + request)}, nil)
	return run, err
}

// queued waits until n jobs wait in the queue.
func (h *house) queued(n int) (list []queue.Entry) {
	h.Helper()
	h.until(func() bool {
		list = must(h.hub.Queue.List(h.Context()))(h)
		return len(list) >= n
	})
	return list
}

// A text within the bounds of a request is within them on all of its way: no part of it writes <, > and & in six bytes.
func TestATextOfMarkupIsNotLongerAtTheWorker(t *testing.T) {
	h := newHouse(t)
	newDesk(h, "a", "fix").arrive()
	page := must(protocol.PlainJSON(strings.Repeat("<p>&", 1<<20)))(t)
	run, _, err := h.api.Submit(t.Context(), &api.Start{Workflow: "fix", RequestID: "page", Inputs: map[string]json.RawMessage{"topic": page}}, nil)
	if err != nil || run != "R-page" {
		t.Errorf("%s, %v", run, err)
	}
}

func TestK10JobsAreStartedInTheirOrderAndOnce(t *testing.T) {
	h := newHouse(t)
	var all sync.WaitGroup
	a := newDesk(h, "a", "fix").met(h)
	var want []string
	for i := range 5 {
		id := fmt.Sprint("job", i)
		want = append(want, id)
		all.Go(func() {
			if run, err := h.submit("fix", id); err != nil || run != protocol.RunID("R-"+id) {
				t.Errorf("%s: %s, %v", id, run, err)
			}
		})
		h.queued(i + 1)
	}
	a.arrive()
	newDesk(h, "b", "other").arrive()
	all.Wait()
	if d := cmp.Diff(want, a.begun()); d != "" {
		t.Error(d)
	}
	if list := must(h.hub.Queue.List(t.Context()))(t); len(list) > 0 {
		t.Errorf("the queue still has %v", list)
	}
	for _, id := range want { // submitted again, by someone who missed the answer
		if run, err := h.submit("fix", id); err != nil || run != protocol.RunID("R-"+id) {
			t.Errorf("%s: %s, %v", id, run, err)
		}
		if p := must(h.hub.Pointers.Get(t.Context(), protocol.RunID("R-"+id)))(t); p.Worker != "a" || p.Epoch == 0 || p.Seq != 1 || p.Head == "" {
			t.Errorf("%s: have %+v", id, p)
		}
	}
	if got := a.begun(); len(got) != len(want) {
		t.Errorf("started again: %v", got)
	}
}

// A worker that dies when it is given a job, before it starts the run: the job is delivered once
// more, to whoever is there then.
func TestK10AJobWhoseWorkerDiesBeforeTheAckIsDeliveredOnceMore(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.hub.Lease = 2 * time.Second // longer than b takes to start
	a, b := newDesk(h, "a", "fix"), newDesk(h, "b", "fix").met(h)
	a.onStart = func(string) error {
		a.die()
		return errors.New("nobody hears this")
	}
	a.arrive()
	h.await(1)
	go func() {
		<-a.gone
		b.arrive()
	}()
	run, err := h.submit("fix", "job1")
	if err != nil || run != "R-job1" {
		t.Fatalf("have %s, %v", run, err)
	}
	if d := cmp.Diff([][]string{{"job1"}, {"job1"}}, [][]string{a.begun(), b.begun()}); d != "" {
		t.Error(d)
	}
	if e := must(h.hub.Queue.Find(t.Context(), "job1"))(t); e.Attempts != 2 || e.Worker != "b" || e.State != queue.Done {
		t.Errorf("have %+v", e)
	}
}

// A worker that dies between the first event and the answer comes back and says that it has the
// run: nothing is delivered again.
func TestK10AJobThatWasStartedUnheardIsNotStartedAgain(t *testing.T) {
	h := newHouse(t)
	h.hub.Lease = time.Minute // nobody else gets it meanwhile
	a, b := newDesk(h, "a", "fix"), newDesk(h, "b", "fix")
	a.onStart = func(id string) error {
		a.say(protocol.RunID("R-"+id), "begun")
		a.die()
		return errors.New("nobody hears this")
	}
	a.arrive()
	h.await(1)
	go func() {
		<-a.gone
		a.onStart = nil
		b.arrive()
		a.arrive()
	}()
	if run, err := h.submit("fix", "job1"); err != nil || run != "R-job1" {
		t.Fatalf("have %s, %v", run, err)
	}
	if d := cmp.Diff([][]string{{"job1"}, nil}, [][]string{a.begun(), b.begun()}); d != "" {
		t.Error(d)
	}
	if e := must(h.hub.Queue.Find(t.Context(), "job1"))(t); e.Attempts != 1 || e.Worker != "a" || e.State != queue.Done {
		t.Errorf("have %+v", e)
	}
}

func TestAJobThatKillsItsWorkerFiveTimesIsDead(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.hub.Lease = 300 * time.Millisecond
	a := newDesk(h, "a", "fix")
	a.onStart = func(id string) error {
		if id == "poison" {
			a.die()
			return errors.New("nobody hears this")
		}
		return nil
	}
	stop := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() { // what starts the worker again
		for {
			a.arrive()
			select {
			case <-stop:
				return
			case <-a.gone:
			}
		}
	})
	_, err := h.submit("fix", "poison")
	if !errors.Is(err, &protocol.Error{Code: "job_dead"}) || !strings.Contains(err.Error(), "after 5 attempts: lapsed") {
		t.Errorf("have %v", err)
	}
	if run, err := h.submit("fix", "good"); err != nil || run != "R-good" {
		t.Errorf("the job behind it: %s, %v", run, err)
	}
	close(stop)
	all.Wait()
	var got list
	h.get("/v1/queue", &got)
	if len(got.Items) != 1 || got.Items[0]["id"] != "poison" || got.Items[0]["state"] != "dead" || got.Items[0]["attempts"] != 5.0 {
		t.Errorf("the queue shows %v", got.Items)
	}
	// An attempt whose lease has lapsed before it came to the worker counts too.
	if n := len(slices.DeleteFunc(a.begun(), func(id string) bool { return id != "poison" })); n == 0 || n > queue.Attempts {
		t.Errorf("delivered %d times", n)
	}
}

// What a worker refuses for good is told to whoever submitted it, and is dead.
func TestARefusedJobTellsWhy(t *testing.T) {
	h := newHouse(t)
	a := newDesk(h, "a", "fix")
	a.onStart = func(string) error {
		return fmt.Errorf("inputs: topic is missing: %w", protocol.ErrInputs)
	}
	a.arrive()
	for range 2 {
		_, err := h.submit("fix", "job1")
		if !errors.Is(err, protocol.ErrInputs) || !strings.Contains(err.Error(), "topic is missing") {
			t.Errorf("have %v", err)
		}
	}
	if e := must(h.hub.Queue.Find(t.Context(), "job1"))(t); e.State != queue.Dead || e.Why != protocol.ErrInputs.Code {
		t.Errorf("have %+v", e)
	}
}

// A job that waits is taken out of the queue: whoever submitted it is told, its body is gone, and
// a worker that could start it gets the next one.
func TestAQueuedJobIsCancelled(t *testing.T) {
	h := newHouse(t)
	a := newDesk(h, "a", "fix").met(h)
	told := make(chan error, 1)
	go func() {
		_, err := h.submit("fix", "job/1")
		told <- err
	}()
	h.queued(1)
	var e queue.Entry
	if err := json.Unmarshal(must(h.api.CancelJob(t.Context(), "job/1"))(t), &e); err != nil || e.State != queue.Dead || e.Why != queue.WhyCancelled {
		t.Errorf("have %+v, %v", e, err)
	}
	if err := <-told; !errors.Is(err, relay.ErrJobDead) || !strings.Contains(err.Error(), "was cancelled") {
		t.Errorf("told %v", err)
	}
	a.arrive()
	if run, err := h.submit("fix", "job2"); err != nil || run != "R-job2" {
		t.Errorf("the job behind it: %s, %v", run, err)
	}
	if d := cmp.Diff([]string{"job2"}, a.begun()); d != "" {
		t.Error(d)
	}
	if _, err := h.api.CancelJob(t.Context(), "job2"); !errors.Is(err, queue.ErrBegun) || !strings.Contains(err.Error(), "R-job2") {
		t.Errorf("a job that is a run: %v", err)
	}
	for _, unknown := range []string{"nobody", ".", "..", "../runs/R-job2"} {
		if _, err := h.api.CancelJob(t.Context(), unknown); !errors.Is(err, queue.ErrUnknownJob) {
			t.Errorf("job %s: %v", unknown, err)
		}
	}
}

func TestK09TheDiskOfTheHubHoldsNoPromptText(t *testing.T) {
	h := newHouse(t)
	const secret = "zebra-crossing-prompt"
	newDesk(h, "z", "never").met(h)
	go func() { // this one waits for a worker that never comes
		_, _, _ = h.api.Submit(t.Context(), &api.Start{Workflow: "never", RequestID: "waits", Title: secret, Inputs: topic(secret)}, nil)
	}()
	h.queued(1)
	a := newDesk(h, "a", "fix").arrive()
	run, _, err := h.api.Submit(t.Context(), &api.Start{Workflow: "fix", Title: secret, Inputs: topic(secret)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	a.onStart = func(string) error { return fmt.Errorf("no %s: %w", secret, protocol.ErrInputs) }
	if _, err := h.submit("fix", "refused"); !errors.Is(err, protocol.ErrInputs) {
		t.Errorf("have %v", err)
	}
	a.say(run, secret, secret)
	if got := h.follow(t.Context(), run, client.Cursor{}, 3); !strings.Contains(got[2], secret) {
		t.Errorf("followed %v", got)
	}
	h.pointed(run, func(p queue.Pointer) bool { return p.Seq == 3 })
	h.shut()
	if found := contains(t, h.dir, secret); len(found) > 0 {
		t.Errorf("prompt text in %v", found)
	}
	if len(contains(t, h.dir, "waits")) == 0 {
		t.Error("the queue is not on the disk at all")
	}
}

// follow reads n events of a run through the hub, and gives their texts.
func (h *house) follow(ctx context.Context, run protocol.RunID, from client.Cursor, n int) []string {
	h.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var out []string
	r := client.Replay{URL: "ws://" + h.addr + "/v1/replay", HTTP: h.api.HTTP(), Run: run, Cursor: from, Live: true}
	err := r.Follow(ctx, client.Consumer{Event: func(e client.Event) error {
		if out = append(out, string(e.JSON)); len(out) == n {
			cancel()
		}
		return nil
	}})
	if !errors.Is(err, context.Canceled) {
		h.Errorf("follow %s: %v", run, err)
	}
	return out
}

// A hub that is restarted with its disk knows the jobs and not their inputs: they wait until
// they are submitted again.
func TestASubmitterBringsAJobBackAfterARestart(t *testing.T) {
	h := newHouse(t)
	a := newDesk(h, "a", "fix").met(h)
	done := make(chan error, 1)
	go func() {
		run, err := h.submit("fix", "job1")
		if err == nil && run != "R-job1" {
			err = fmt.Errorf("run %s", run)
		}
		done <- err
	}()
	h.queued(1)
	h.shut()
	h.open()
	a.arrive()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"job1"}, a.begun()); d != "" {
		t.Error(d)
	}
}

// While a hub with an empty disk settles, a request that may have been answered before waits
// for the workers, and one whose id was made just now does not.
func TestAHubInItsGracePeriodStartsNothingTwice(t *testing.T) {
	h := newHouse(t)
	h.shut()
	h.dir, h.grace = t.TempDir(), time.Hour
	h.open()
	a, b := newDesk(h, "a", "fix"), newDesk(h, "b", "fix").arrive()
	h.await(1)
	a.say("R-job1", "begun before")
	if run, fresh, err := h.api.Submit(t.Context(), &api.Start{Workflow: "fix"}, nil); err != nil || !fresh {
		t.Errorf("a new request: %s, %v, %v", run, fresh, err)
	}
	done := make(chan error, 1)
	go func() {
		run, err := h.submit("fix", "job1")
		if err == nil && run != "R-job1" {
			err = fmt.Errorf("run %s", run)
		}
		done <- err
	}()
	a.arrive()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if slices.Contains(b.begun(), "job1") || len(a.begun()) > 0 {
		t.Errorf("started again: a %v, b %v", a.begun(), b.begun())
	}
}
