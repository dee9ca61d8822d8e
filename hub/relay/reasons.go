package relay

import (
	"context"

	"wf/hub/queue"
)

// Reasons for which a queued job is not leased.
const (
	reasonAway     = "no_worker"    // no worker that has the workflow is connected
	reasonKey      = "no_key"       // none of those that are has a key of the box yet: one that has it must come
	reasonDraining = "draining"     // they get no jobs
	reasonCapacity = "no_capacity"  // they drive as many runs as they do
	reasonGrace    = "grace_period" // the hub has just started, and a worker that is on the way may have begun it
)

// lacks is why a worker cannot be given a job now, "" where it can.
func (l *link) lacks(e queue.Entry) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !has(l.caps, e.Workflow):
		return reasonAway
	case l.keyOf(e) == nil:
		return reasonKey
	case l.draining:
		return reasonDraining
	case l.capacity > 0 && len(l.busy)+len(l.begun) >= l.capacity:
		return reasonCapacity
	}
	return ""
}

// nearness orders reasons: of several workers the one that is nearest to taking the job tells.
var nearness = map[string]int{reasonAway: 0, reasonKey: 1, reasonDraining: 2, reasonCapacity: 3, "": 4}

// explained is a job with the reason for which it is not leased.
func (h *Hub) explained(e queue.Entry) queue.Entry {
	if e.State != queue.Queued {
		return e
	}
	e.Reason = reasonAway
	for _, l := range h.all() {
		if l.stalled() {
			continue
		}
		if why := l.lacks(e); nearness[why] > nearness[e.Reason] {
			e.Reason = why
		}
	}
	if e.Reason == "" && e.Attempts > 0 && h.inGracePeriod() {
		e.Reason = reasonGrace
	}
	return e
}

// listed are the jobs that are not done, each with its reason.
func (h *Hub) listed(ctx context.Context) ([]queue.Entry, error) {
	items, err := h.Queue.List(ctx)
	for i := range items {
		items[i] = h.explained(items[i])
	}
	return items, err
}
