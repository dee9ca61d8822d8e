package embedded

import (
	"cmp"
	"context"
	"errors"
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

// lapse ends the leases with a time that has passed, and the jobs whose boxes are too old. Of leases nothing is written: the
// next start comes to the same conclusion.
func (q *Queue) lapse(now time.Time) {
	lapsed := false
	for _, j := range slices.Clone(q.line) {
		if j.State != queue.Leased || j.Until.After(now) {
			continue
		}
		next := *j
		next.Unsure = true
		next.putBack(j.Until, 0, queue.WhyLapsed)
		q.swap(j, &next)
		q.lapsed.Add(1)
		lapsed = true
	}
	if !q.expiry.IsZero() && !now.Before(q.expiry) {
		q.expire(now)
		lapsed = true
	}
	if lapsed {
		q.changed()
	}
}

// expire drops the boxes that are too old. What cannot be written now is tried again in a minute.
func (q *Queue) expire(now time.Time) {
	q.expiry = time.Time{}
	var old, all []*job
	for _, j := range q.byID {
		switch due := j.Submitted.Add(queue.KeepBox); {
		case len(j.Keys) == 0:
		case due.After(now):
			q.expiresAt(due)
		case j.State == queue.Leased: // its end drops the box
			q.expiresAt(now.Add(time.Minute))
		default:
			next := *j
			if next.Keys = nil; next.State == queue.Queued {
				next.State, next.Since, next.Why = queue.Dead, now, queue.WhyExpired
			}
			old, all = append(old, j), append(all, &next)
		}
	}
	if q.storeAll(all) != nil {
		q.expiresAt(now.Add(time.Minute))
		return
	}
	for i, j := range old {
		q.swap(j, all[i])
	}
}

// expiresAt has expire called then, or earlier.
func (q *Queue) expiresAt(t time.Time) {
	if q.expiry.IsZero() || t.Before(q.expiry) {
		q.expiry = t
	}
}

// putBack ends a lease of j without success.
func (j *job) putBack(now time.Time, delay time.Duration, why string) {
	j.State, j.Since, j.Until, j.Why = queue.Queued, now, now.Add(delay), queue.Code(why)
	switch {
	case len(j.Keys) == 0 && j.Digest == nil: // of a file of version 1
		j.State, j.Why = queue.Dead, queue.ErrBodyGone.Code
	case len(j.Keys) == 0:
		j.State, j.Why = queue.Dead, queue.WhyNoRecipient
	case j.Attempts >= queue.Attempts:
		j.State = queue.Dead
	}
}

// replace writes next and puts it in the place of j.
func (q *Queue) replace(j, next *job) error {
	if err := q.store(next, nil); err != nil {
		return err
	}
	q.swap(j, next)
	q.changed()
	return nil
}

// replaceAll is replace for several jobs, in one transaction: a worker may have thousands, and all other calls wait.
func (q *Queue) replaceAll(old, all []*job) error {
	if len(all) == 0 {
		return nil
	}
	if err := q.storeAll(all); err != nil {
		return err
	}
	for i, j := range old {
		q.swap(j, all[i])
	}
	q.changed()
	return nil
}

// swap puts next in the place of j, in memory.
func (q *Queue) swap(j, next *job) {
	if next.State != queue.Leased && j.lost != nil {
		close(j.lost)
		next.lost = nil
	}
	if at := slices.Index(q.line, j); at >= 0 && !ended(next.State) {
		q.line[at], q.byID[next.ID] = next, next
		return
	}
	if at := slices.Index(q.over, j); at >= 0 && ended(next.State) && next.Since.Equal(j.Since) {
		q.over[at], q.byID[next.ID] = next, next
		return
	}
	q.take(j)
	q.put(next)
}

// put adds a job to memory.
func (q *Queue) put(j *job) {
	q.byID[j.ID] = j
	if ended(j.State) {
		q.over = append(q.over, j)
		return
	}
	at, _ := slices.BinarySearchFunc(q.line, j, inOrder)
	q.line = slices.Insert(q.line, at, j)
}

// take removes a job from memory.
func (q *Queue) take(j *job) {
	is := func(x *job) bool { return x == j }
	q.line, q.over = slices.DeleteFunc(q.line, is), slices.DeleteFunc(q.over, is)
	delete(q.byID, j.ID)
}

// inOrder is the order of the queue.
func inOrder(a, b *job) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Number, b.Number))
}

// forgettable are the ended jobs that are too old to be kept.
func (q *Queue) forgettable() []*job {
	oldest, n := time.Now().Add(-keep), 0
	for n < len(q.over) && q.over[n].Since.Before(oldest) {
		n++
	}
	return slices.Clone(q.over[:n])
}

// store makes a job durable, with its box where there is a new one, and deletes others.
func (q *Queue) store(j *job, box []byte, drop ...*job) error {
	return q.db.Update(func(tx *bbolt.Tx) error {
		jobs, boxes := tx.Bucket(jobsBucket), tx.Bucket(boxesBucket)
		for _, d := range drop {
			if err := errors.Join(jobs.Delete(key(d.Number)), boxes.Delete(key(d.Number))); err != nil {
				return err
			}
		}
		if j == nil {
			return nil
		}
		if j.Epoch > q.epoch {
			if err := tx.Bucket(metaBucket).Put(epochKey, key(j.Epoch)); err != nil {
				return err
			}
		}
		return write(tx, j, box)
	})
}

// storeAll makes jobs durable whose boxes are stored already.
func (q *Queue) storeAll(all []*job) error {
	if len(all) == 0 {
		return nil
	}
	return q.db.Update(func(tx *bbolt.Tx) error {
		for _, j := range all {
			if err := write(tx, j, nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// write writes a job, with its box where there is a new one. A job without keys loses its box.
func write(tx *bbolt.Tx, j *job, box []byte) error {
	var err error
	switch boxes := tx.Bucket(boxesBucket); {
	case len(j.Keys) == 0:
		err = boxes.Delete(key(j.Number))
	case box != nil:
		err = boxes.Put(key(j.Number), box)
	}
	return errors.Join(err, put(tx.Bucket(jobsBucket), key(j.Number), record{j.Entry, j.Number, j.TTL, j.Until, j.Unsure, j.Keys, j.Size, j.Digest}))
}

// changed wakes all waiting calls, and sets the timer for what comes next by itself.
func (q *Queue) changed() {
	close(q.wake)
	q.wake = make(chan struct{})
	q.arm()
}

// arm sets the timer to the next time at which a lease lapses, a delay is over or a box is too old.
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
	if !q.expiry.IsZero() && (next.IsZero() || q.expiry.Before(next)) {
		next = q.expiry
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
