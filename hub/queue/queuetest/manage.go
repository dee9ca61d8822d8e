package queuetest

import (
	"slices"
	"strings"
	"time"

	"wf/hub/queue"
	"wf/protocol"
)

// dead submits a job and has a worker refuse it.
func (w *world) dead(id string) {
	w.Helper()
	w.submit(id)
	w.ok(w.leaseOf("x", id).Dead(w.Context(), "invalid_inputs"))
}

// boxed checks whether the box of a job is kept, also after a restart.
func (w *world) boxed(id string, want bool) {
	w.Helper()
	for range 2 {
		b, err := w.Queue.Box(w.Context(), id)
		if want && (err != nil || string(b) != "box") {
			w.Errorf("the box of %s is %q, %v", id, b, err)
		} else if !want {
			w.wants(err, queue.ErrBodyGone)
		}
		w.reopen()
	}
}

var manageCases = map[string]func(*world){
	"O-09 jobs with a larger priority leave first, others in their order": func(w *world) {
		for _, j := range []queue.Job{{ID: "a", Workflow: "w"}, {ID: "b", Workflow: "w", Priority: 9}, {ID: "c", Workflow: "w", Priority: -9}, {ID: "d", Workflow: "w"}, {ID: "e", Workflow: "w", Priority: 9}} {
			_, _, err := w.Queue.Submit(w.Context(), j, sealed)
			w.ok(err)
		}
		_, _, err := w.Queue.Submit(w.Context(), queue.Job{ID: "f", Workflow: "w", Priority: 10}, sealed)
		w.wants(err, queue.ErrBadJob)
		w.reopen()
		var listed []string
		list, err := w.Queue.List(w.Context())
		w.ok(err)
		for _, e := range list {
			listed = append(listed, e.ID)
		}
		if want := []string{"b", "e", "a", "d", "c"}; !slices.Equal(listed, want) {
			w.Errorf("listed %v, want %v", listed, want)
		}
		for _, id := range listed {
			w.leaseOf("x", id)
		}
	},
	"O-09 a job without a key of its box is refused": func(w *world) {
		_, _, err := w.Queue.Submit(w.Context(), queue.Job{ID: "a", Workflow: "w"}, queue.Sealed{Box: []byte("box")})
		w.wants(err, queue.ErrBadJob)
	},
	"O-09 a box is kept until its job is done, cancelled or purged": func(w *world) {
		w.submit("done", "cancelled", "purged", "settled", "kept")
		w.boxed("done", true)
		w.ok(w.leaseOf("x", "done").Done(w.Context(), "R"))
		_, err := w.Queue.Cancel(w.Context(), "cancelled")
		w.ok(err)
		w.ok(w.Queue.Settle(w.Context(), queue.Job{ID: "settled", Workflow: "w"}, "y", "R2"))
		_, err = w.Queue.Purge(w.Context(), "purged")
		w.ok(err)
		for _, id := range []string{"done", "cancelled", "settled"} {
			w.boxed(id, false)
		}
		_, err = w.Queue.Find(w.Context(), "purged")
		w.wants(err, queue.ErrUnknownJob)
		w.boxed("kept", true)
	},
	"O-09 a box that is a week old is dropped, and its job with it": func(w *world) {
		w.dead("dead")
		w.submit("a")
		time.Sleep(queue.KeepBox - time.Second)
		if e := w.find("a"); e.State != queue.Queued {
			w.Errorf("early: %+v", e)
		}
		if e, err := w.Queue.Await(w.Context(), "a"); err != nil || e.State != queue.Dead || e.Why != queue.WhyExpired {
			w.Errorf("have %+v, %v", e, err)
		}
		w.boxed("a", false)
	},
	"O-09 a box whose week is over while the hub is away is dropped": func(w *world) {
		w.submit("a")
		w.close()
		time.Sleep(queue.KeepBox + time.Second)
		w.open()
		if e := w.find("a"); e.State != queue.Dead || e.Why != queue.WhyExpired {
			w.Errorf("have %+v", e)
		}
		w.boxed("a", false)
	},
	"O-09 a job of which all recipients are forgotten is dead": func(w *world) {
		w.submit("a", "b")
		w.ok(w.Queue.Share(w.Context(), "b", queue.Key{Worker: "y", To: "k", Sealed: []byte("other")}))
		w.ok(w.Queue.Forget(w.Context(), "x"))
		w.reopen()
		if e := w.find("a"); e.State != queue.Dead || e.Why != queue.WhyNoRecipient {
			w.Errorf("have %+v", e)
		}
		if e := w.find("b"); e.State != queue.Queued || len(e.Keys) != 1 || e.Keys[0].Worker != "y" || string(e.Keys[0].Sealed) != "other" || e.Digest["d"] != "1" {
			w.Errorf("have %+v", e)
		}
		w.boxed("a", false)
		w.boxed("b", true)
	},
	"O-09 a key that comes while a job is leased is there when it comes back": func(w *world) {
		w.submit("a")
		l := w.leaseOf("x", "a")
		w.ok(w.Queue.Share(w.Context(), "a", queue.Key{Worker: "y", To: "k", Sealed: []byte("other")}))
		w.ok(l.Retry(w.Context(), 0, "later"))
		if e := w.find("a"); e.State != queue.Queued || len(e.Keys) != 2 || e.Keys[1].Worker != "y" {
			w.Errorf("have %+v", e)
		}
	},
	"O-09 a dead job is tried again at its place, with all its attempts": func(w *world) {
		w.dead("a")
		w.submit("b")
		e, err := w.Queue.Retry(w.Context(), "a")
		w.ok(err)
		if e.State != queue.Queued || e.Attempts != 0 || e.Why != "" {
			w.Errorf("have %+v", e)
		}
		l := w.leaseOf("x", "a")
		_, err = w.Queue.Retry(w.Context(), "a")
		w.wants(err, queue.ErrBegun)
		_, err = w.Queue.Purge(w.Context(), "a")
		w.wants(err, queue.ErrBegun)
		w.ok(l.Retry(w.Context(), time.Hour, "later"))
		_, err = w.Queue.Retry(w.Context(), "a")
		w.ok(err)
		w.ok(w.leaseOf("x", "a").Done(w.Context(), "R"))
		_, err = w.Queue.Retry(w.Context(), "a")
		w.wants(err, queue.ErrBegun)
		_, err = w.Queue.Cancel(w.Context(), "b")
		w.ok(err)
		_, err = w.Queue.Retry(w.Context(), "b")
		w.wants(err, queue.ErrBodyGone)
		if hint := protocol.HintOf(err); !strings.Contains(hint, "another request id") { // its own is that of a job that was cancelled
			w.Errorf("hint %q", hint)
		}
		_, err = w.Queue.Retry(w.Context(), "nothing")
		w.wants(err, queue.ErrUnknownJob)
	},
	"F-51 a dead job is replaced by another of its id": func(w *world) {
		w.dead("a")
		w.submit("b")
		other := sealed
		other.Digest = map[string]string{"d": "2"}
		e, err := w.Queue.Resubmit(w.Context(), queue.Job{ID: "a", Workflow: "w"}, other)
		w.ok(err)
		if e.State != queue.Queued || e.Attempts != 0 || e.Digest["d"] != "2" {
			w.Errorf("have %+v", e)
		}
		w.reopen()
		w.ok(w.leaseOf("x", "b").Done(w.Context(), "R"))
		w.leaseOf("x", "a")
		if e, err := w.Queue.Resubmit(w.Context(), queue.Job{ID: "b", Workflow: "w"}, other); err != nil || e.State != queue.Done {
			w.Errorf("a job that is done: %+v, %v", e, err)
		}
	},
	"O-09 a worker that was started anew gives its leases back": func(w *world) {
		w.submit("a", "b", "c")
		first, other := w.leaseOf("x", "a"), w.leaseOf("y", "b")
		s, err := w.Queue.Stats(w.Context())
		w.ok(err)
		later := w.leaseOf("x", "c") // by the process that was started anew
		w.ok(w.Queue.Return(w.Context(), "x", s.Epoch))
		<-first.Lost()
		w.ok(later.Extend(w.Context()))
		w.leaseOf("y", "a")
		w.ok(other.Extend(w.Context()))
	},
	"O-09 the queue is counted": func(w *world) {
		w.dead("d")
		w.submit("a")
		came := time.Now()
		time.Sleep(time.Second)
		w.submit("b", "c")
		<-w.leaseOf("x", "a").Lost()
		w.leaseOf("x", "a")
		s, err := w.Queue.Stats(w.Context())
		w.ok(err)
		if s.Queued != 2 || s.Leased != 1 || s.Dead != 1 || s.Oldest.Before(came) || s.Leases != 3 || s.Lapses != 1 {
			w.Errorf("have %+v", s)
		}
	},
	"O-09 a worker that drains stays so, and one that is gone is forgotten": func(w *world) {
		w.announce("1", "ada", "w")
		w.ok(w.Registry.Drain(w.Context(), "1", true))
		draining, err := w.Registry.Announce(w.Context(), queue.Worker{ID: "1", Name: "ada", Version: "1", Caps: []string{"w"}}, ttl)
		w.ok(err)
		if !draining {
			w.Error("it is not said that the worker drains")
		}
		w.wants(w.Registry.Forget(w.Context(), "1"), queue.ErrWorkerLive)
		w.reopen()
		if a := w.workers()[0]; !a.Draining || a.Live {
			w.Errorf("have %+v", a)
		}
		w.ok(w.Registry.Drain(w.Context(), "1", false))
		w.ok(w.Registry.Forget(w.Context(), "1"))
		w.wants(w.Registry.Forget(w.Context(), "1"), protocol.ErrNotFound)
		w.wants(w.Registry.Drain(w.Context(), "1", true), protocol.ErrNotFound)
		w.reopen()
		if list := w.workers(); len(list) != 0 {
			w.Errorf("have %+v", list)
		}
	},
}
