// Package queuetest says, as tests, what the interfaces of package queue promise. Every
// implementation passes Exercise.
package queuetest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"wf/hub/queue"
)

// A Backend is one open implementation.
type Backend struct {
	Queue    queue.Queue
	Registry queue.Registry
	Pointers queue.Pointers
	Close    func() error
}

// An opener opens the backend over what an earlier one left in dir, which is empty at first.
type opener func(t *testing.T, dir string) Backend

// Exercise runs the suite.
func Exercise(t *testing.T, open opener) {
	for _, group := range []struct {
		name  string
		cases map[string]func(*world)
	}{{"queue", queueCases}, {"manage", manageCases}, {"registry", registryCases}, {"pointers", pointerCases}} {
		t.Run(group.name, func(t *testing.T) {
			for name, f := range group.cases {
				t.Run(name, func(t *testing.T) { run(t, open, f) })
			}
		})
	}
}

func run(t *testing.T, open opener, f func(*world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, opener: open, dir: t.TempDir()}
		w.open()
		defer w.close()
		f(w)
	})
}

// A world is what one case works with.
type world struct {
	*testing.T
	Backend
	opener opener
	dir    string
}

// ttl is what leases and workers live for, in virtual time.
const ttl = 10 * time.Second

func (w *world) open() { w.Backend = w.opener(w.T, w.dir) }

func (w *world) close() {
	w.Helper()
	w.ok(w.Backend.Close())
}

// reopen closes the backend and opens it again, as a hub that is restarted.
func (w *world) reopen() {
	w.Helper()
	w.close()
	w.open()
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) wants(err, want error) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Fatalf("have error %v, want %v", err, want)
	}
}

// submit submits jobs of the workflow "w".
func (w *world) submit(ids ...string) {
	w.Helper()
	for _, id := range ids {
		_, _, err := w.Queue.Submit(w.Context(), queue.Job{ID: id, Workflow: "w"}, sealed)
		w.ok(err)
	}
}

// leaseOf leases the next job and checks which it is.
func (w *world) leaseOf(worker, id string) queue.Lease {
	w.Helper()
	l, err := w.Queue.Lease(w.Context(), worker, nil, ttl)
	w.ok(err)
	if l.Entry().ID != id {
		w.Fatalf("leased %s, want %s", l.Entry().ID, id)
	}
	return l
}

// empty checks that there is nothing to lease at this moment.
func (w *world) empty() {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), 100*time.Millisecond)
	defer cancel()
	l, err := w.Queue.Lease(ctx, "unknown", nil, ttl)
	if err == nil {
		w.Fatalf("leased %s, want nothing", l.Entry().ID)
	}
	w.wants(err, context.DeadlineExceeded)
}

func (w *world) find(id string) queue.Entry {
	w.Helper()
	e, err := w.Queue.Find(w.Context(), id)
	w.ok(err)
	return e
}

// sealed is what the jobs of the suite start.
var sealed = queue.Sealed{Box: []byte("box"), Keys: []queue.Key{{Worker: "x", To: "k", Sealed: []byte("key")}}, Digest: map[string]string{"d": "1"}}
