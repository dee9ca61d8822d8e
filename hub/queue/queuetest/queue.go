package queuetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"wf/hub/queue"
)

var queueCases = map[string]func(*world){
	"K-10 jobs leave in the order in which they came": func(w *world) {
		w.submit("a", "b", "c")
		for _, id := range []string{"a", "b", "c"} {
			w.leaseOf("x", id)
		}
		w.empty()
	},
	"a job that is submitted twice is one job": func(w *world) {
		w.submit("a")
		e, fresh, err := w.Queue.Submit(w.Context(), queue.Job{ID: "a", Workflow: "other"}, sealed)
		w.ok(err)
		if fresh || e.Workflow != "w" || e.State != queue.Queued {
			w.Errorf("have %+v, fresh %v; want the first one", e, fresh)
		}
		w.leaseOf("x", "a")
		w.empty()
	},
	"a job that is done is not queued again": func(w *world) {
		w.submit("a")
		w.ok(w.leaseOf("x", "a").Done(w.Context(), "RUN1"))
		e, fresh, err := w.Queue.Submit(w.Context(), queue.Job{ID: "a", Workflow: "w"}, sealed)
		w.ok(err)
		if fresh || e.State != queue.Done || e.Run != "RUN1" || e.Worker != "x" {
			w.Errorf("have %+v, fresh %v; want it done by x as RUN1", e, fresh)
		}
		w.empty()
	},
	"what is no job is refused": func(w *world) {
		for _, j := range []queue.Job{{}, {ID: "a"}, {Workflow: "w"}, {ID: "a\nb", Workflow: "w"},
			{ID: strings.Repeat("x", 129), Workflow: "w"}, {ID: "a", Workflow: strings.Repeat("x", 513)}} {
			_, _, err := w.Queue.Submit(w.Context(), j, sealed)
			w.wants(err, queue.ErrBadJob)
		}
	},
	"what does not fit keeps its place and its attempts": func(w *world) {
		w.submit("a", "b")
		l, err := w.Queue.Lease(w.Context(), "x", func(j queue.Entry) bool { return j.ID == "b" }, ttl)
		w.ok(err)
		if l.Entry().ID != "b" || w.find("a").Attempts != 0 {
			w.Errorf("leased %s with a tried %d times", l.Entry().ID, w.find("a").Attempts)
		}
		w.leaseOf("x", "a")
	},
	"a worker that waits is asked again at each submission": func(w *world) {
		w.submit("a")
		var mu sync.Mutex
		can := false
		got := make(chan queue.Lease, 1)
		asked := make(chan struct{}, 10)
		go func() {
			l, err := w.Queue.Lease(w.Context(), "x", func(queue.Entry) bool {
				mu.Lock()
				defer mu.Unlock()
				asked <- struct{}{}
				return can
			}, ttl)
			if err == nil {
				got <- l
			}
			close(got)
		}()
		<-asked
		mu.Lock()
		can = true
		mu.Unlock()
		w.submit("a") // again, for workers that can start more now
		if l := <-got; l == nil || l.Entry().ID != "a" {
			w.Error("the job was not leased")
		}
	},
	"K-10 a lease that lapses gives the job back once": func(w *world) {
		w.submit("a", "b")
		first := w.leaseOf("x", "a")
		<-first.Lost()
		second := w.leaseOf("y", "a")
		if e := second.Entry(); e.Attempts != 2 || e.Epoch <= first.Entry().Epoch || e.Worker != "y" {
			w.Errorf("have %+v after epoch %d", e, first.Entry().Epoch)
		}
		w.wants(first.Done(w.Context(), "R"), queue.ErrLeaseLost)
		w.wants(first.Extend(w.Context()), queue.ErrLeaseLost)
		w.wants(first.Retry(w.Context(), 0, "x"), queue.ErrLeaseLost)
		w.wants(first.Dead(w.Context(), "x"), queue.ErrLeaseLost)
		w.leaseOf("x", "b")
		w.ok(second.Done(w.Context(), "R"))
		w.empty()
	},
	"a lease that is extended lasts": func(w *world) {
		w.submit("a", "b")
		held, other := w.leaseOf("x", "a"), w.leaseOf("x", "b")
		extended := time.AfterFunc(ttl/2, func() {
			if err := held.Extend(w.Context()); err != nil {
				w.Error(err)
			}
		})
		defer extended.Stop()
		<-other.Lost() // a whole TTL has passed
		if e := w.find("a"); e.State != queue.Leased {
			w.Errorf("have %+v, want it leased", e)
		}
		w.ok(held.Done(w.Context(), "R"))
		<-held.Lost()
	},
	"Retry puts a job at its place, after the delay": func(w *world) {
		w.submit("a", "b")
		w.ok(w.leaseOf("x", "a").Retry(w.Context(), 0, "refused"))
		l := w.leaseOf("x", "a")
		if e := l.Entry(); e.Why != "refused" || e.Attempts != 2 {
			w.Errorf("have %+v", e)
		}
		w.ok(l.Retry(w.Context(), ttl/2, "Full Disk"))
		if e := w.find("a"); e.Why != "error" {
			w.Errorf("a reason that is no code was kept: %q", e.Why)
		}
		w.leaseOf("x", "b")
		w.empty()
		w.leaseOf("x", "a") // waits
	},
	"K-10 a job is dead after five leases": func(w *world) {
		w.submit("a", "b")
		for n := 1; n <= queue.Attempts; n++ {
			l := w.leaseOf("x", "a")
			if n%2 == 0 {
				w.ok(l.Retry(w.Context(), 0, "agent_unavailable"))
			} else {
				w.ok(w.leaseOf("x", "b").Retry(w.Context(), 0, "later"))
				<-l.Lost()
			}
		}
		e, err := w.Queue.Await(w.Context(), "a")
		w.ok(err)
		if e.State != queue.Dead || e.Attempts != queue.Attempts || e.Why != "lapsed" {
			w.Errorf("have %+v, want it dead after five", e)
		}
		list, err := w.Queue.List(w.Context())
		w.ok(err)
		if len(list) != 2 || list[0].ID != "a" || list[1].ID != "b" {
			w.Errorf("have %+v, want the dead one and the one that waits", list)
		}
		e, fresh, err := w.Queue.Submit(w.Context(), queue.Job{ID: "a", Workflow: "w"}, sealed)
		w.ok(err)
		if fresh || e.State != queue.Dead {
			w.Errorf("a dead job came back: %+v", e)
		}
	},
	"Dead ends a job": func(w *world) {
		w.submit("a")
		l := w.leaseOf("x", "a")
		w.ok(l.Dead(w.Context(), "invalid_inputs"))
		<-l.Lost()
		if e := w.find("a"); e.State != queue.Dead || e.Why != "invalid_inputs" {
			w.Errorf("have %+v", e)
		}
		w.empty()
	},
	"Cancel takes a job out that no worker has begun": func(w *world) {
		w.submit("a", "b", "c")
		got := make(chan queue.Entry, 1)
		go func() {
			e, err := w.Queue.Await(w.Context(), "b")
			if err != nil {
				w.Error(err)
			}
			got <- e
		}()
		for range 2 {
			e, err := w.Queue.Cancel(w.Context(), "b")
			w.ok(err)
			if e.ID != "b" || e.State != queue.Dead || e.Why != queue.WhyCancelled || e.Attempts != 0 {
				w.Errorf("have %+v", e)
			}
		}
		if e := <-got; e.State != queue.Dead {
			w.Errorf("awaited %+v", e)
		}
		l := w.leaseOf("x", "a")
		_, err := w.Queue.Cancel(w.Context(), "a")
		w.wants(err, queue.ErrBegun)
		w.ok(l.Done(w.Context(), "RUN1"))
		_, err = w.Queue.Cancel(w.Context(), "a")
		w.wants(err, queue.ErrBegun)
		_, err = w.Queue.Cancel(w.Context(), "unknown")
		w.wants(err, queue.ErrUnknownJob)
		w.leaseOf("x", "c")
		w.empty()
		// Somebody had begun it all the same.
		w.ok(w.Queue.Settle(w.Context(), queue.Job{ID: "b", Workflow: "w"}, "x", "RUN2"))
		if e := w.find("b"); e.State != queue.Done || e.Run != "RUN2" {
			w.Errorf("have %+v", e)
		}
	},
	"Settle ends a job that was started unheard": func(w *world) {
		w.submit("a", "b")
		l := w.leaseOf("y", "a")
		w.ok(w.Queue.Settle(w.Context(), queue.Job{ID: "a", Workflow: "w"}, "x", "RUN1"))
		<-l.Lost()
		w.wants(l.Done(w.Context(), "R"), queue.ErrLeaseLost)
		w.ok(w.Queue.Settle(w.Context(), queue.Job{ID: "new", Workflow: "w"}, "x", "RUN2"))
		for id, run := range map[string]string{"a": "RUN1", "new": "RUN2"} {
			if e := w.find(id); e.State != queue.Done || string(e.Run) != run || e.Worker != "x" {
				w.Errorf("have %+v, want %s by x", e, run)
			}
		}
		w.leaseOf("x", "b")
		w.empty()
	},
	"Await returns with the end of a job": func(w *world) {
		w.submit("a")
		got := make(chan queue.Entry, 1)
		go func() {
			e, err := w.Queue.Await(w.Context(), "a")
			if err != nil {
				w.Error(err)
			}
			got <- e
		}()
		w.ok(w.leaseOf("x", "a").Done(w.Context(), "RUN1"))
		if e := <-got; e.Run != "RUN1" {
			w.Errorf("have %+v", e)
		}
		_, err := w.Queue.Await(w.Context(), "b")
		w.wants(err, queue.ErrUnknownJob)
		_, err = w.Queue.Find(w.Context(), "b")
		w.wants(err, queue.ErrUnknownJob)
	},
	"no two workers have one job": func(w *world) {
		const jobs, workers = 40, 8
		for i := range jobs {
			w.submit(fmt.Sprint("job", i))
		}
		ctx, cancel := context.WithCancel(w.Context())
		var mu sync.Mutex
		had := map[string]int{}
		var all sync.WaitGroup
		for i := range workers {
			all.Go(func() {
				for {
					l, err := w.Queue.Lease(ctx, fmt.Sprint("agent", i), nil, ttl)
					if err != nil {
						return
					}
					mu.Lock()
					had[l.Entry().ID]++
					if len(had) == jobs {
						cancel()
					}
					mu.Unlock()
					if err := l.Done(w.Context(), "R"); err != nil {
						w.Error(err)
					}
				}
			})
		}
		all.Wait()
		cancel()
		for id, n := range had {
			if n != 1 {
				w.Errorf("%s was leased %d times", id, n)
			}
		}
	},
	"a wait ends with its context, or with the queue": func(w *world) {
		w.empty()
		ended := make(chan error, 1)
		q := w.Queue
		go func() {
			_, err := q.Lease(w.Context(), "x", nil, ttl)
			ended <- err
		}()
		w.close()
		w.wants(<-ended, queue.ErrClosed)
		w.open()
	},
	"a restart keeps jobs, order, attempts and epochs": func(w *world) {
		w.submit("a", "b", "c", "d", "e")
		w.ok(w.leaseOf("x", "a").Done(w.Context(), "RUN1"))
		w.ok(w.leaseOf("x", "b").Dead(w.Context(), "refused"))
		w.ok(w.leaseOf("x", "c").Retry(w.Context(), 0, "refused"))
		leased := w.leaseOf("x", "c")
		w.reopen()
		if e := w.find("a"); e.State != queue.Done || e.Run != "RUN1" {
			w.Errorf("a: have %+v", e)
		}
		if e := w.find("b"); e.State != queue.Dead || e.Why != "refused" {
			w.Errorf("b: have %+v", e)
		}
		if e := w.find("c"); e.State != queue.Leased || e.Attempts != 2 {
			w.Errorf("c: have %+v", e)
		}
		d := w.leaseOf("y", "d")
		if d.Entry().Epoch <= leased.Entry().Epoch {
			w.Errorf("epoch %d after the restart, %d before", d.Entry().Epoch, leased.Entry().Epoch)
		}
		w.leaseOf("y", "e")
		// The holder from before the restart is not heard of again.
		if e := w.leaseOf("y", "c").Entry(); e.Attempts != 3 {
			w.Errorf("c: have %+v", e)
		}
	},
}
