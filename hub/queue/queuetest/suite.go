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

// A Setup says how an implementation is opened.
type Setup struct {
	// Open opens the backend over what an earlier one left in dir, which is empty at first.
	Open func(t *testing.T, dir string) Backend
	// TTL is what leases and workers live for; default 10 s of virtual time.
	TTL time.Duration
}

// Exercise runs the suite.
func Exercise(t *testing.T, s Setup) {
	if s.TTL == 0 {
		s.TTL = 10 * time.Second
	}
	for _, group := range []struct {
		name  string
		cases map[string]func(*world)
	}{{"queue", queueCases}, {"registry", registryCases}, {"pointers", pointerCases}} {
		t.Run(group.name, func(t *testing.T) {
			for name, f := range group.cases {
				t.Run(name, func(t *testing.T) { s.run(t, f) })
			}
		})
	}
}

func (s Setup) run(t *testing.T, f func(*world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, Setup: s, dir: t.TempDir()}
		w.open()
		defer w.close()
		f(w)
	})
}

// A world is what one case works with.
type world struct {
	*testing.T
	Setup
	Backend
	dir string
}

func (w *world) open() { w.Backend = w.Open(w.T, w.dir) }

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
		_, _, err := w.Queue.Submit(w.Context(), queue.Job{ID: id, Workflow: "w"})
		w.ok(err)
	}
}

// lease leases the next job for a worker.
func (w *world) lease(worker string) queue.Lease {
	w.Helper()
	l, err := w.Queue.Lease(w.Context(), worker, nil, w.TTL)
	w.ok(err)
	return l
}

// leaseOf leases the next job and checks which it is.
func (w *world) leaseOf(worker, id string) queue.Lease {
	w.Helper()
	l := w.lease(worker)
	if l.Entry().ID != id {
		w.Fatalf("leased %s, want %s", l.Entry().ID, id)
	}
	return l
}

// empty checks that there is nothing to lease at this moment.
func (w *world) empty() {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), min(w.TTL/10, 100*time.Millisecond))
	defer cancel()
	l, err := w.Queue.Lease(ctx, "unknown", nil, w.TTL)
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
