package embedded

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"wf/hub/queue"
)

// The methods below are called with q.mu held, unless they say otherwise.

// ready is called before anything is read: it ends the leases that have lapsed by now.
func (q *Queue) ready(ctx context.Context) error {
	if q.closed {
		return queue.ErrClosed
	}
	q.lapse(time.Now())
	return ctx.Err()
}

// find looks a job up.
func (q *Queue) find(ctx context.Context, id string) (*job, error) {
	if err := q.ready(ctx); err != nil {
		return nil, err
	}
	j, known := q.byID[id]
	if !known {
		return nil, fmt.Errorf("job %s: %w", id, queue.ErrUnknownJob)
	}
	return j, nil
}

// lapse ends the leases with a time that has passed. Nothing is written: the next start comes to the
// same conclusion.
func (q *Queue) lapse(now time.Time) {
	lapsed := false
	for _, j := range slices.Clone(q.line) {
		if j.State != queue.Leased || j.Until.After(now) {
			continue
		}
		next := *j
		next.putBack(j.Until, 0, "lapsed")
		q.swap(j, &next)
		q.lapsed.Add(1)
		lapsed = true
	}
	if lapsed {
		q.changed()
	}
}

// putBack ends a lease of j without success.
func (j *job) putBack(now time.Time, delay time.Duration, why string) {
	j.State, j.Since, j.Until, j.Why = queue.Queued, now, now.Add(delay), queue.Code(why)
	if j.Attempts >= queue.Attempts {
		j.State = queue.Dead
	}
}

// replace writes next and puts it in the place of j.
func (q *Queue) replace(j, next *job) error {
	if err := q.write(next); err != nil {
		return err
	}
	q.swap(j, next)
	q.changed()
	return nil
}

// swap puts next in the place of j, in memory.
func (q *Queue) swap(j, next *job) {
	if next.State != queue.Leased && j.lost != nil {
		close(j.lost)
		next.lost = nil
	}
	q.byID[next.ID] = next
	if ended(next.State) {
		before := func(x *job) bool { return x == j }
		q.line = slices.DeleteFunc(q.line, before)
		q.over = append(slices.DeleteFunc(q.over, before), next) // a dead job may turn out to be done
	} else if at := slices.Index(q.line, j); at >= 0 {
		q.line[at] = next
	}
}

// forgettable are the ended jobs that are too old to be kept; the caller has them deleted.
func (q *Queue) forgettable() []*job {
	oldest, n := time.Now().Add(-keep), 0
	for n < len(q.over) && q.over[n].Since.Before(oldest) {
		n++
	}
	return q.over[:n]
}

// write makes a job durable, and forgets others.
func (q *Queue) write(j *job, forget ...*job) error {
	err := q.db.Update(func(tx *bbolt.Tx) error {
		jobs := tx.Bucket(jobsBucket)
		for _, f := range forget {
			if err := jobs.Delete(key(f.Number)); err != nil {
				return err
			}
		}
		if j.Epoch > q.epoch {
			if err := tx.Bucket(metaBucket).Put(epochKey, key(j.Epoch)); err != nil {
				return err
			}
		}
		return put(jobs, key(j.Number), j)
	})
	if err != nil {
		return err
	}
	for _, f := range forget {
		delete(q.byID, f.ID)
	}
	q.over = q.over[len(forget):]
	return nil
}

// changed wakes all waiting calls, and sets the timer for what comes next by itself.
func (q *Queue) changed() {
	close(q.wake)
	q.wake = make(chan struct{})
	q.arm()
}

// arm sets the timer to the next time at which a lease lapses or a delay is over. It needs no
// lock before the queue is handed out.
func (q *Queue) arm() {
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
	now := time.Now()
	var next time.Time
	for _, j := range q.line {
		if (j.State == queue.Leased || j.Until.After(now)) && (next.IsZero() || j.Until.Before(next)) {
			next = j.Until
		}
	}
	if next.IsZero() || q.closed {
		return
	}
	q.timer = time.AfterFunc(max(0, next.Sub(now)), func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if !q.closed {
			q.lapse(time.Now())
			q.changed()
		}
	})
}

// close wakes all waiting calls for good. Leases are lost to their holders; the file keeps them until
// they lapse. It takes the lock itself.
func (q *Queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.closed = true
	for _, j := range q.line {
		if j.lost != nil {
			close(j.lost)
			j.lost = nil
		}
	}
	q.changed()
}
