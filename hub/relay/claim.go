package relay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"wf/hub/queue"
	"wf/protocol"
)

// claim takes what a worker says of its runs. What it cannot record while the database is away it takes again with the next message.
func (h *Hub) claim(l *link, runs []Run) error {
	defer l.freed(l.used())
	for _, r := range l.heardBefore(runs) {
		if r.ID == "" || !queue.Plain(string(r.ID), 128) || !queue.Plain(r.HeadCID, 200) {
			return fmt.Errorf("worker %s claims a run with a name that is none: %w", l.id, protocol.ErrBadRequest)
		}
		if (queue.Job{ID: r.RequestID, Workflow: "any"}).Check() != nil {
			r.RequestID = "" // given at the worker, and no id of a job
		}
		if r.RequestID != "" && !h.makes(r.RequestID, r.ID) {
			h.Log.Warn("a worker names a run that is not that of the request", "worker", l.id, "run", r.ID)
			r.RequestID = ""
		}
		l.drives(r)
		strange, err := h.neverGiven(l, r)
		if strange {
			h.Log.Warn("a worker names the run of a job that it was never given", "worker", l.id, "run", r.ID, "job", r.RequestID)
			continue
		}
		owner := ""
		if err == nil {
			owner, err = h.point(l, r, nil)
		}
		if isAway(err) {
			l.unrecorded[r.ID] = r
			l.keeps(r)
			if r.RequestID != "" {
				h.learn(r.RequestID, claimed{l.id, r.ID})
			}
			continue
		}
		if err != nil {
			return err
		}
		if owner != l.id {
			err := h.contested(l, r, owner)
			if isAway(err) {
				l.unrecorded[r.ID] = r
			} else if err != nil {
				return err
			}
			continue
		}
		l.keeps(r)
		if r.RequestID == "" {
			continue
		}
		h.learn(r.RequestID, claimed{l.id, r.ID})
		if err := h.found(l, r); err != nil && !isAway(err) { // it is found again before the job is given to any worker: hasBegun
			return err
		}
	}
	return nil
}

// heardBefore are runs, with those that could not be recorded and of which nothing newer is said.
func (l *link) heardBefore(runs []Run) []Run {
	if len(l.unrecorded) == 0 {
		return runs
	}
	for _, r := range runs {
		l.unrecorded[r.ID] = r
	}
	all := slices.Collect(maps.Values(l.unrecorded))
	clear(l.unrecorded)
	return all
}

// neverGiven reports whether a run is that of a job which the worker cannot have begun.
func (h *Hub) neverGiven(l *link, r Run) (bool, error) {
	if r.RequestID == "" {
		return false, nil
	}
	e, err := h.Queue.Find(l.ctx, r.RequestID)
	if errors.Is(err, queue.ErrUnknownJob) {
		return false, nil
	}
	return err == nil && e.State != queue.Done && !h.mayHaveBegun(l.id, e), err
}

// mayHaveBegun reports whether a worker can have begun a job: it had a lease of it. One with a token of its own can also have begun it for a
// hub whose disk was lost since, if no worker has had a lease and the job is for it; and so can those that share a token, while none
// with its own has a lease.
func (h *Hub) mayHaveBegun(worker string, e queue.Entry) bool {
	switch {
	case e.Worker == worker || slices.Contains(e.Given, worker):
		return true
	case !h.names(worker):
		return e.State != queue.Leased || !h.names(e.Worker)
	}
	return e.Attempts == 0 && slices.ContainsFunc(e.Keys, func(k queue.Key) bool { return k.Worker == worker })
}

// keeps notes that the worker has a run.
func (l *link) keeps(r Run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[r.ID] = !r.Foreign
}

// drives takes what the worker says of how a run is driven.
func (l *link) drives(r Run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.begun, r.RequestID)
	if delete(l.busy, r.ID); r.Busy {
		l.busy[r.ID] = true
	}
}

// used is how many runs the worker drives, or is about to.
func (l *link) used() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.busy) + len(l.begun)
}

// freed has the worker ask for a job again if it drives fewer runs than before.
func (l *link) freed(before int) {
	if l.used() < before {
		l.restart()
	}
}

// makes reports whether a request id makes a run.
func (h *Hub) makes(request string, run protocol.RunID) bool {
	return h.MadeBy == nil || h.MadeBy(request, run)
}

// mayTake reports whether a worker may have the run of another one that is away. The lease of the
// job that makes the run allows it. Without a lease only workers with ids that no credentials are
// bound to take runs of one another: they share a token, and a store may have come under another name.
func (l *link) mayTake(from string, epoch uint64) bool {
	return epoch > 0 || l.bound == "" && !l.hub.names(from)
}

// point writes the pointer of a run, unless the run is another worker's, and returns its
// worker. A run belongs to the worker that claimed it first. It changes hands when its worker is away, the
// claimant may take it (mayTake) and has at least the events that were heard of; never to a worker where it is
// foreign, and from such a one at once. job is the one that makes the run, where the worker has or had a lease of it: then the word of one
// that cannot have begun it does not count.
func (h *Hub) point(l *link, r Run, job *queue.Entry) (owner string, err error) {
	epoch := uint64(0)
	if job != nil {
		epoch = job.Epoch
	}
	for {
		p, err := h.Pointers.Get(l.ctx, r.ID)
		switch {
		case errors.Is(err, protocol.ErrUnknownRun):
			p = queue.Pointer{Run: r.ID, Worker: l.id}
		case err != nil:
			return "", err
		case p.Worker == l.id:
		case job != nil && p.Epoch == 0 && !h.mayHaveBegun(p.Worker, *job):
		case r.Foreign, !l.mayTake(p.Worker, epoch), !h.yields(p.Worker, r.ID) && (h.link(p.Worker) != nil || r.HeadSeq < p.Seq):
			return p.Worker, nil
		default:
			there, err := h.elsewhere(l.ctx, p.Worker)
			if err != nil || there && !h.yields(p.Worker, r.ID) {
				return p.Worker, err
			}
		}
		next := p
		next.Worker, next.Epoch = l.id, max(epoch, p.Epoch)
		if r.HeadSeq > 0 {
			next.Seq, next.Head = r.HeadSeq, r.HeadCID
		}
		if next == p && p.Revision > 0 {
			return l.id, nil
		}
		if _, err = h.Pointers.Swap(l.ctx, next); !errors.Is(err, queue.ErrSwapped) {
			return l.id, err
		}
	}
}

// elsewhere reports whether a worker is connected to another hub.
func (h *Hub) elsewhere(ctx context.Context, worker string) (bool, error) {
	known, err := h.Registry.List(ctx)
	return slices.ContainsFunc(known, func(a queue.Worker) bool { return a.ID == worker && a.Elsewhere }), err
}

// yields reports whether a run is foreign at a worker that is connected.
func (h *Hub) yields(worker string, run protocol.RunID) bool {
	l := h.link(worker)
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	own, known := l.runs[run]
	return known && !own
}

// contested answers a claim to a run of another worker. Where a lease gave the run to that one,
// the claimant started it under an earlier lease, and is sent msgMoved, by which it stops.
func (h *Hub) contested(l *link, r Run, owner string) error {
	h.Log.Warn("two workers claim one run", "run", r.ID, "worker", owner, "refused", l.id)
	p, err := h.Pointers.Get(l.ctx, r.ID)
	if err != nil || p.Epoch == 0 || r.RequestID == "" {
		return err
	}
	return l.lines.send(message{Type: msgMoved, Run: r.ID, To: owner})
}

// found ends the job of a run that a worker has started already.
func (h *Hub) found(l *link, r Run) error {
	e, err := h.Queue.Find(l.ctx, r.RequestID)
	switch {
	case errors.Is(err, queue.ErrUnknownJob):
		return nil
	case err != nil || e.State == queue.Done:
		return err
	case e.State == queue.Leased && e.Worker == l.id && l.offered(question{e.ID, e.Epoch}):
		return nil // it is being started at this moment, and that will say so
	case e.State == queue.Leased && e.Worker == l.id: // by another hub, which may be gone; or before this one was started anew
		if _, err := h.point(l, r, &e); err != nil {
			return err
		}
	}
	if err := h.Queue.Settle(l.ctx, e.Job, l.id, r.ID); err != nil {
		return err
	}
	h.Log.Info("a job had been started", "job", e.ID, "run", r.ID, "worker", l.id)
	return nil
}

func (l *link) offered(q question) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.leases[q]
	return ok
}

// owner is the link of the worker that has a run. A worker that is away is an error wrapping
// protocol.ErrWorkerAway, and so is a run that no worker is known to have in the grace period; later
// that is one wrapping protocol.ErrUnknownRun.
func (h *Hub) owner(ctx context.Context, run protocol.RunID) (*link, error) {
	p, err := h.Pointers.Get(ctx, run)
	if err == nil {
		if l := h.link(p.Worker); l != nil {
			return l, nil
		}
	} else if l := h.holder(run); l != nil && isAway(err) {
		return l, nil
	} else if !errors.Is(err, protocol.ErrUnknownRun) {
		return nil, err
	}
	// A run may be so new that its worker has not said so yet.
	if l := h.serving(ctx, "/v1/runs/"+escape(string(run))); l != nil {
		owner, err := h.point(l, Run{ID: run}, nil)
		if err != nil {
			return nil, err
		}
		if owner == l.id {
			return l, nil
		}
	}
	switch {
	case p.Worker != "":
		return nil, fmt.Errorf("run %s is at the worker %s: %w", run, p.Worker, protocol.ErrWorkerAway)
	case h.inGracePeriod():
		return nil, fmt.Errorf("run %s: the hub has just started, its worker may be on the way: %w", run, protocol.ErrWorkerAway)
	}
	return nil, fmt.Errorf("run %s: no worker has it: %w", run, protocol.ErrUnknownRun)
}

// holder is the link of a worker that has said that it has a run, nil for none.
func (h *Hub) holder(run protocol.RunID) *link {
	for _, l := range h.all() {
		l.mu.Lock()
		own := l.runs[run]
		l.mu.Unlock()
		if own {
			return l
		}
	}
	return nil
}

// serving asks all workers at once whether they serve a path, and returns one that does, or nil.
func (h *Hub) serving(ctx context.Context, path string) *link {
	ctx, cancel := context.WithTimeout(ctx, h.Asking)
	defer cancel()
	links := h.all()
	found := make(chan *link, len(links))
	var all sync.WaitGroup
	for _, l := range links {
		all.Go(func() {
			if l.has(ctx, path) {
				found <- l
				cancel()
			}
		})
	}
	all.Wait()
	close(found)
	return <-found
}
