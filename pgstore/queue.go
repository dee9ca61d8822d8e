package pgstore

import (
	"slices"
	"sync"
)

// Bounds of a group: the batches of one transaction, and the bytes of their blocks.
const (
	maxGroup  = 512
	groupSize = 4 << 20
)

// queue is the batches that wait for the committer.
type queue struct {
	mu      sync.Mutex
	waiting []*request
	running bool
	closed  bool
	idle    sync.WaitGroup // of the committer
}

// add has a batch committed by drain, which is started where it does not run; false where the store is closed.
func (q *queue) add(r *request, drain func()) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.waiting = append(q.waiting, r)
	if !q.running {
		q.running = true
		q.idle.Go(drain)
	}
	return true
}

// close refuses later batches; false where it was called before.
func (q *queue) close() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	first := !q.closed
	q.closed = true
	return first
}

// take gives the next group; nil ends the committer. No head is moved twice in it, and none that a fork of it leans on: what
// waits behind another batch of its heads stays behind it.
func (q *queue) take() (group []*request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	used, moved, size := map[string]bool{}, map[string]bool{}, 0
	var left []*request
	for i, r := range q.waiting {
		if len(group) == maxGroup || len(group) > 0 && size+r.size > groupSize {
			left = append(left, q.waiting[i:]...)
			break
		}
		if slices.ContainsFunc(r.rows, func(x row) bool { return moved[x.name] || x.alone() && used[x.name] }) {
			left = append(left, r)
		} else {
			group, size = append(group, r), size+r.size
		}
		for _, x := range r.rows {
			used[x.name] = true
			moved[x.name] = moved[x.name] || x.alone()
		}
	}
	q.waiting = left
	q.running = len(group) > 0
	return group
}
