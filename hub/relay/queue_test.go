package relay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"wf/api"
	"wf/hub/queue"
	"wf/hub/relay"
	"wf/protocol"
)

// post sends a start as it is, once, and gives the status with the body.
func (h *house) post(body string) (int, string) {
	h.Helper()
	return h.posted("/v1/runs", body)
}

func (h *house) posted(path, body string) (int, string) {
	h.Helper()
	res := must(h.api.HTTP().Post("http://"+h.addr+path, "application/json", strings.NewReader(body)))(h)
	defer res.Body.Close()
	var b json.RawMessage
	if err := json.NewDecoder(res.Body).Decode(&b); err != nil {
		h.Error(err)
	}
	return res.StatusCode, string(b)
}

// F-52: what no worker could begin is refused at once, and makes no job.
func TestF52WhatNoWorkerCanBeginMakesNoJob(t *testing.T) {
	h := newHouse(t)
	h.awaitGrace()
	old := newDesk(h, "old", "old")
	old.worker.Identity = nil // of a version that opens no boxes
	newDesk(h, "a", "fix").met(h)
	if _, err := h.kept.Announce(t.Context(), queue.Worker{ID: "old", Caps: []string{"old"}}, time.Minute); err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]string{
		`{"workflow":"fux","request_id":"r"}`:                  "404 not_found",
		`{"workflow":"old","request_id":"r"}`:                  "503 no_worker",
		`{"workflow":"fix","request_id":"r","priority":10}`:    "400 bad_request",
		`{"workflow":"fix","request_id":"r","inputs":"x"}`:     "400 bad_request",
		`{"workflow":"fix","request_id":"r","imputs":{}}`:      "400 bad_request",
		`{"workflow":"fix","request_id":"r","tags":[""]}`:      "400 bad_request",
		`{"workflow":"fix","request_id":"a\tb"}`:               "400 bad_request",
		`{"workflow":"fix","request_id":"r"} {"workflow":"x"}`: "400 bad_request",
		`{"request_id":"r"}`:                                   "400 bad_request",
	} {
		status, answer := h.post(body)
		var f struct{ Code string }
		if err := json.Unmarshal([]byte(answer), &f); err != nil || fmt.Sprint(status, " ", f.Code) != want {
			t.Errorf("%s: %d %s, want %s", body, status, answer, want)
		}
	}
	if list := must(h.hub.Queue.List(t.Context()))(t); len(list) != 0 {
		t.Errorf("the queue has %+v", list)
	}
}

// O-09: a job that was answered with 202 is begun although submitter and hub are gone, by a worker that was away; the disk
// of the hub does not hold its content before or after.
func TestO09AJobIsDurableFromThe202On(t *testing.T) {
	h := newHouse(t)
	const secret = "zebra-crossing-prompt"
	a := newDesk(h, "a", "fix").met(h)
	h.awaitGrace()
	h.hub.Holding = time.Millisecond
	status, answer := h.post(`{"workflow":"fix","request_id":"job1","inputs":{"topic":"` + secret + `"}}`)
	if status != http.StatusAccepted || !strings.Contains(answer, `"reason":"no_worker"`) {
		t.Fatalf("have %d %s", status, answer)
	}
	disk := func(when string) {
		if found := contains(t, h.dir, secret); len(found) > 0 {
			t.Errorf("%s: the content is in %v", when, found)
		}
	}
	disk("after the 202")
	h.shut()
	h.open()
	disk("after a restart")
	a.arrive()
	h.pointed("R-job1", func(p queue.Pointer) bool { return p.Worker == "a" })
	if e := must(h.hub.Queue.Await(t.Context(), "job1"))(t); e.State != queue.Done || e.Run != "R-job1" {
		t.Errorf("have %+v", e)
	}
	if _, err := h.hub.Queue.Box(t.Context(), "job1"); !errors.Is(err, queue.ErrBodyGone) {
		t.Errorf("the box of a job that is done: %v", err)
	}
	h.shut()
	disk("after it was done")
}

// O-09: a worker that joins later gets the key from one that has it, and begins what that one does not.
func TestO09AWorkerThatJoinsGetsTheKeyFromALiveRecipient(t *testing.T) {
	h := newHouse(t)
	a := newDesk(h, "a", "fix")
	a.arrive()
	h.await(1)
	if _, err := h.api.DrainWorker(t.Context(), "a", true); err != nil {
		t.Fatal(err)
	}
	h.awaitGrace()
	h.hub.Holding = time.Millisecond
	if status, answer := h.post(`{"workflow":"fix","request_id":"job1"}`); status != http.StatusAccepted || !strings.Contains(answer, `"reason":"draining"`) {
		t.Fatalf("have %d %s", status, answer)
	}
	b := newDesk(h, "b", "fix")
	b.arrive()
	e := must(h.hub.Queue.Await(t.Context(), "job1"))(t)
	if e.State != queue.Done || e.Worker != "b" || len(a.begun()) != 0 {
		t.Errorf("have %+v", e)
	}
}

// O-09: when all workers that could open a job are forgotten it is dead, and says so; another of its workflow changes nothing.
func TestO09AJobWithoutARecipientIsDead(t *testing.T) {
	h := newHouse(t)
	newDesk(h, "a", "fix").met(h)
	h.awaitGrace()
	h.hub.Holding = time.Millisecond
	if status, _ := h.post(`{"workflow":"fix","request_id":"job1"}`); status != http.StatusAccepted {
		t.Fatal(status)
	}
	newDesk(h, "b", "fix").arrive()
	h.await(1)
	if e := must(h.listed(t, "job1"))(t); e.Reason != "no_key" {
		t.Errorf("have %+v", e)
	}
	if _, err := h.api.ForgetWorker(t.Context(), "b"); !errors.Is(err, queue.ErrWorkerLive) {
		t.Errorf("a worker that is connected: %v", err)
	}
	if _, err := h.api.ForgetWorker(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if e := must(h.listed(t, "job1"))(t); e.State != queue.Dead || e.Why != queue.WhyNoRecipient {
		t.Errorf("have %+v", e)
	}
	if _, err := h.api.RetryJob(t.Context(), "job1"); !errors.Is(err, queue.ErrBodyGone) {
		t.Errorf("retry: %v", err)
	}
	h.hub.Holding = time.Minute
	if run, err := h.submit("fix", "job2"); err != nil || run != "R-job2" {
		t.Errorf("another job: %s, %v", run, err)
	}
	if status, answer := h.post(`{"workflow":"fix","request_id":"job1"}`); status != http.StatusCreated {
		t.Errorf("submitted again: %d %s", status, answer)
	}
}

// listed is a job as the queue shows it.
func (h *house) listed(t *testing.T, id string) (queue.Entry, error) {
	var list struct{ Items []queue.Entry }
	h.get("/v1/queue", &list)
	for _, e := range list.Items {
		if e.ID == id {
			return e, nil
		}
	}
	return queue.Entry{}, fmt.Errorf("the queue lacks %s: %+v", id, list.Items)
}

// F-51: another request under the id of one that waits, or is a run, is refused with what differs; the same one is not,
// however it is written.
func TestF51AnotherRequestUnderAnIDIsRefused(t *testing.T) {
	h := newHouse(t)
	h.awaitGrace()
	a := newDesk(h, "a", "fix", "fox").met(h)
	h.awaitGrace()
	h.hub.Holding = time.Millisecond
	const first = `{"workflow":"fix","request_id":"job1","title":"t","inputs":{"topic":"x","n":1}}`
	if status, answer := h.post(first); status != http.StatusAccepted {
		t.Fatal(answer)
	}
	again := func(same, accepted int) {
		for _, body := range []string{first, `{"inputs": {"n": 1, "topic": "x"}, "title":"t", "priority":3, "request_id":"job1", "workflow":"fix"}`,
			`{"workflow":"fix","request_id":"job1","inputs":{"topic":"x","n":1}}`} { // what only people read may be left out
			if status, answer := h.post(body); status != same {
				t.Errorf("%s: %d %s", body, status, answer)
			}
		}
		for body, differs := range map[string]string{
			`{"workflow":"fox","request_id":"job1","title":"t","inputs":{"topic":"x","n":1}}`: "workflow",
			`{"workflow":"fix","request_id":"job1","title":"t","inputs":{"topic":"y","n":1}}`: "inputs.topic",
			`{"workflow":"fix","request_id":"job1","title":"t","inputs":{"n":1}}`:             "an input that it lacks",
			`{"workflow":"fix","request_id":"job1","title":"u","inputs":{"topic":"x","n":1}}`: "title",
		} {
			status, answer := h.post(body)
			var f struct{ Code, Message string }
			if err := json.Unmarshal([]byte(answer), &f); err != nil || status != accepted || status == 409 && (f.Code != "request_reused" || !strings.Contains(f.Message, differs)) {
				t.Errorf("%s: %d %s, want %d and %s", body, status, answer, accepted, differs)
			}
		}
	}
	again(http.StatusAccepted, http.StatusConflict)
	h.shut()
	h.open()
	h.hub.Holding = time.Minute
	a.arrive()
	e := must(h.hub.Queue.Await(t.Context(), "job1"))(t)
	if e.State != queue.Done {
		t.Fatalf("have %+v", e)
	}
	a.leave() // the hub alone tells them apart
	h.await(0)
	again(http.StatusOK, http.StatusConflict)
}

// F-51: a request id whose request was refused takes the corrected one, also after a restart.
func TestF51ARefusedRequestIDTakesACorrectedRequest(t *testing.T) {
	for _, restart := range []bool{false, true} {
		h := newHouse(t)
		a := newDesk(h, "a", "fix")
		a.onStart = func(string) error { return fmt.Errorf("inputs: topic is missing: %w", protocol.ErrInputs) }
		a.arrive()
		if status, answer := h.post(`{"workflow":"fix","request_id":"job1"}`); status != http.StatusUnprocessableEntity {
			t.Fatalf("have %d %s", status, answer)
		}
		a.leave()
		a.onStart = nil
		if restart {
			h.shut()
			h.open()
		}
		a.arrive()
		if status, answer := h.post(`{"workflow":"fix","request_id":"job1","inputs":{"topic":"x"}}`); status != http.StatusCreated {
			t.Errorf("corrected: %d %s", status, answer)
		}
	}
}

// F-53: a worker is given as many jobs as it can drive, those with the largest priority first, and what waits says why.
func TestF53AWorkerGetsNoMoreThanItsCapacity(t *testing.T) {
	h := newHouse(t)
	a := newDesk(h, "a", "fix")
	a.worker.Capacity = 2
	busy := &driven{shelf: a.worker.Store.(*shelf)}
	a.worker.Store = busy
	a.met(h)
	h.awaitGrace()
	h.hub.Holding = time.Millisecond
	for n := range 5 {
		if status, answer := h.post(fmt.Sprintf(`{"workflow":"fix","request_id":"job%d","priority":%d}`, n, n%3)); status != http.StatusAccepted {
			t.Fatal(answer)
		}
	}
	a.arrive()
	h.pointed("R-job2", func(queue.Pointer) bool { return true })
	h.pointed("R-job1", func(queue.Pointer) bool { return true })
	for _, id := range []string{"job0", "job3", "job4"} {
		if e := must(h.listed(t, id))(t); e.State != queue.Queued || e.Reason != "no_capacity" {
			t.Errorf("have %+v", e)
		}
	}
	if n := len(a.begun()); n != 2 {
		t.Errorf("%d runs were begun", n)
	}
	busy.done("R-job1")
	a.say("R-job1", "its end")
	h.pointed("R-job4", func(queue.Pointer) bool { return true })
	if e := must(h.listed(t, "job0"))(t); e.State != queue.Queued {
		t.Errorf("have %+v", e)
	}
	var workers struct{ Items []queue.Worker }
	h.get("/v1/agents", &workers)
	if w := workers.Items[0]; w.Capacity != 2 || w.Busy != 2 {
		t.Errorf("have %+v", w)
	}
}

// driven is a store of which all runs are driven until they are done.
type driven struct {
	*shelf
	mu   sync.Mutex
	over []protocol.RunID
}

func (d *driven) done(run protocol.RunID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = append(d.over, run)
}

func (d *driven) Runs(ctx context.Context) ([]relay.Run, error) {
	all, err := d.shelf.Runs(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range all {
		all[i].Busy = !slices.Contains(d.over, all[i].ID)
	}
	return all, err
}

// O-09: a job that was given up is tried again, and purged.
func TestO09JobsAreRetriedAndPurged(t *testing.T) {
	h := newHouse(t)
	a := newDesk(h, "a", "fix")
	a.onStart = func(string) error { return fmt.Errorf("not now: %w", protocol.ErrInputs) }
	a.arrive()
	for _, id := range []string{"job1", "job2"} {
		if _, err := h.submit("fix", id); !errors.Is(err, protocol.ErrInputs) {
			t.Fatal(err)
		}
	}
	a.leave()
	a.onStart = nil
	a.arrive()
	if _, err := h.api.RetryJob(t.Context(), "job1"); err != nil {
		t.Fatal(err)
	}
	if e := must(h.hub.Queue.Await(t.Context(), "job1"))(t); e.State != queue.Done {
		t.Errorf("have %+v", e)
	}
	if _, err := h.api.PurgeJob(t.Context(), "job2"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.hub.Queue.Find(t.Context(), "job2"); !errors.Is(err, queue.ErrUnknownJob) {
		t.Errorf("a job that was purged: %v", err)
	}
	if _, err := h.api.RetryJob(t.Context(), "job2"); !errors.Is(err, queue.ErrUnknownJob) {
		t.Errorf("have %v", err)
	}
	if _, _, err := h.api.Submit(t.Context(), &api.Start{Workflow: "fix", RequestID: "job2"}, nil); err != nil {
		t.Errorf("its id is free: %v", err)
	}
}
