package line

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"wf/hub/queue"
)

// keep is for how long done and dead jobs are remembered.
const keep = 7 * 24 * time.Hour

// enter takes the memory for the caller, who leaves it. It fails for a queue that is closed.
func (q *Queue) enter(ctx context.Context) error {
	select {
	case q.lock <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	err := ctx.Err()
	select {
	case <-q.closed:
		err = queue.ErrClosed
	default:
	}
	if err != nil {
		q.leave()
	}
	return err
}

func (q *Queue) leave() { <-q.lock }

// turn has f look at the jobs as they are now, in memory, and write one change where changes is set.
func (q *Queue) turn(ctx context.Context, changes bool, f func(Turn) error) error {
	if err := q.enter(ctx); err != nil {
		return err
	}
	defer q.leave()
	if q.expires(q.keeper.Now()) {
		q.expire(ctx)
	}
	return q.within(ctx, changes, f)
}

// The methods below are called by those who have entered.

// within is turn behind all that is done first.
func (q *Queue) within(ctx context.Context, changes bool, f func(Turn) error) error {
	t, err := q.keeper.Begin(ctx, changes)
	if err != nil {
		return err
	}
	defer t.End()
	if jobs, all := t.News(); all || len(jobs) > 0 {
		q.hear(jobs, all)
	}
	q.lapse(t.Now())
	return f(t)
}

// hear takes what others have changed.
func (q *Queue) hear(jobs []Record, all bool) {
	left := map[string]*job{}
	if all {
		for id, j := range q.byID {
			left[id] = j
		}
	}
	for _, r := range jobs {
		old := q.byID[r.ID]
		delete(left, r.ID)
		switch next := r.job(); {
		case r.Gone && old != nil:
			q.take(old)
		case r.Gone:
		case old == nil:
			q.put(next)
		default:
			if next.Epoch == old.Epoch {
				next.lost = old.lost
			}
			q.swap(old, next)
		}
	}
	for _, j := range left {
		q.take(j)
	}
	q.changed()
}

// find looks a job up.
func (q *Queue) find(id string) (*job, error) {
	j, known := q.byID[id]
	if !known {
		return nil, fmt.Errorf("job %s: %w", id, queue.ErrUnknownJob)
	}
	return j, nil
}

// lapse ends the leases with a time that has passed. Nothing is written: all others come to the same conclusion.
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
	if lapsed {
		q.changed()
	}
}

// expires reports whether a box may be too old.
func (q *Queue) expires(now time.Time) bool { return !q.expiry.IsZero() && !now.Before(q.expiry) }

// expire drops the boxes that are too old, and ends their jobs. What cannot be written now is tried again in a minute.
func (q *Queue) expire(ctx context.Context) {
	q.expiry = time.Time{}
	err := q.within(ctx, true, func(t Turn) error {
		var old, all []*job
		for _, j := range q.byID {
			switch due := j.Submitted.Add(queue.KeepBox); {
			case len(j.Keys) == 0:
			case due.After(t.Now()):
				q.expiresAt(due)
			case j.State == queue.Leased: // its end drops the box
				q.expiresAt(t.Now().Add(time.Minute))
			default:
				next := *j
				if next.Keys = nil; next.State == queue.Queued {
					next.State, next.Since, next.Why = queue.Dead, t.Now(), queue.WhyExpired
				}
				old, all = append(old, j), append(all, &next)
			}
		}
		return q.replaceAll(t, old, all)
	})
	if err != nil {
		q.expiresAt(q.keeper.Now().Add(time.Minute))
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
func (q *Queue) replace(t Turn, j, next *job) error {
	return q.replaceAll(t, []*job{j}, []*job{next})
}

// replaceAll is replace for several jobs, in one change: a worker may have thousands, and all other calls wait.
func (q *Queue) replaceAll(t Turn, old, all []*job) error {
	if len(all) == 0 {
		return nil
	}
	if err := t.Write(Change{Jobs: recordsOf(all)}); err != nil {
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
	if next.State != queue.Leased {
		next.lost = nil
	}
	if j.lost != nil && j.lost != next.lost {
		close(j.lost)
	}
	j.lost = nil // it is next's, or over
	if at := slices.Index(q.line, j); at >= 0 && !ended(next.State) && inOrder(j, next) == 0 {
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
	if len(j.Keys) > 0 {
		q.expiresAt(j.Submitted.Add(queue.KeepBox))
	}
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
	if j.lost != nil {
		close(j.lost)
		j.lost = nil
	}
}

// inOrder is the order of the queue.
func inOrder(a, b *job) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Number, b.Number))
}

// forgettable are the ended jobs that are too old to be kept.
func (q *Queue) forgettable(now time.Time) []*job {
	oldest, n := now.Add(-keep), 0
	for n < len(q.over) && q.over[n].Since.Before(oldest) {
		n++
	}
	return slices.Clone(q.over[:n])
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
	now := q.keeper.Now()
	var next time.Time
	for _, j := range q.line {
		if (j.State == queue.Leased || j.Until.After(now)) && (next.IsZero() || j.Until.Before(next)) {
			next = j.Until
		}
	}
	if !q.expiry.IsZero() && (next.IsZero() || q.expiry.Before(next)) {
		next = q.expiry
	}
	if !next.IsZero() {
		q.timer = time.AfterFunc(max(0, next.Sub(now)), q.tick)
	}
}

// tick does what comes by itself.
func (q *Queue) tick() {
	ctx := context.Background()
	if q.enter(ctx) != nil {
		return
	}
	defer q.leave()
	now := q.keeper.Now()
	q.lapse(now)
	if q.expires(now) {
		q.expire(ctx)
	}
	q.changed()
}

// Close wakes all waiting calls for good: they get queue.ErrClosed. Leases are lost to their holders; what is kept has them until
// they lapse.
func (q *Queue) Close() {
	if q.enter(context.Background()) != nil {
		return
	}
	defer q.leave()
	close(q.closed)
	for _, j := range q.line {
		if j.lost != nil {
			close(j.lost)
			j.lost = nil
		}
	}
	q.changed()
	if q.timer != nil {
		q.timer.Stop()
	}
}
