package line

import (
	"context"
	"fmt"
	"slices"
	"time"

	"wf/hub/queue"
	"wf/protocol"
)

// begun is an error wrapping queue.ErrBegun for a job that is leased or done.
func (j *job) begun() error {
	switch j.State {
	case queue.Leased:
		return fmt.Errorf("job %s: the worker %s begins it: %w", j.ID, j.Worker, queue.ErrBegun)
	case queue.Done:
		return fmt.Errorf("job %s: it is run %s of the worker %s: %w", j.ID, j.Run, j.Worker, queue.ErrBegun)
	}
	return nil
}

// bodyGone is the error of a job whose box is dropped: what was cancelled, or tried often enough, is not revived under its
// id.
func (j *job) bodyGone() error {
	if j.Why == queue.WhyCancelled || j.Attempts >= queue.Attempts {
		return protocol.Hinted(queue.ErrBodyGone, "submit it again with another request id")
	}
	return queue.ErrBodyGone
}

// Box reads the box of a job.
func (q *Queue) Box(ctx context.Context, id string) (box []byte, err error) {
	err = q.turn(ctx, false, func(Turn) error {
		j, err := q.find(id)
		if err != nil {
			return err
		}
		if len(j.Keys) > 0 {
			box, err = q.keeper.Box(ctx, j.Number)
		}
		if err == nil && box == nil {
			err = queue.ErrBodyGone
		}
		if err != nil {
			return fmt.Errorf("job %s: %w", id, err)
		}
		return nil
	})
	return box, err
}

// Share adds the key of a box for a further worker.
func (q *Queue) Share(ctx context.Context, id string, k queue.Key) error {
	return q.turn(ctx, true, func(t Turn) error {
		j, err := q.find(id)
		if err != nil || len(j.Keys) == 0 {
			return err
		}
		next := *j
		next.Keys = append(without(j.Keys, k.Worker), k)
		return q.replace(t, j, &next)
	})
}

// without are the keys of the other workers, in a slice of their own.
func without(keys []queue.Key, worker string) []queue.Key {
	return slices.DeleteFunc(slices.Clone(keys), func(k queue.Key) bool { return k.Worker == worker })
}

// Forget takes a worker's keys away.
func (q *Queue) Forget(ctx context.Context, worker string) error {
	return q.turn(ctx, true, func(t Turn) error {
		var old, all []*job
		for _, j := range q.jobs() {
			left := without(j.Keys, worker)
			if len(left) == len(j.Keys) {
				continue
			}
			next := *j
			if next.Keys = left; len(left) == 0 && j.State == queue.Queued {
				next.State, next.Since, next.Why = queue.Dead, t.Now(), queue.WhyNoRecipient
			}
			old, all = append(old, j), append(all, &next)
		}
		if err := q.replaceAll(t, old, all); err != nil {
			return fmt.Errorf("forget the worker %s: %w", worker, err)
		}
		return nil
	})
}

// jobs are all jobs, in no order.
func (q *Queue) jobs() []*job { return slices.Concat(q.line, q.over) }

// Retry makes a dead job a queued one.
func (q *Queue) Retry(ctx context.Context, id string) (e queue.Entry, err error) {
	err = q.turn(ctx, true, func(t Turn) error {
		j, err := q.find(id)
		if err == nil {
			err = j.begun()
		}
		if err == nil && len(j.Keys) == 0 {
			err = fmt.Errorf("job %s: %w", id, j.bodyGone())
		}
		if e = entryOf(j); err != nil {
			return err
		}
		next := *j
		next.Until = time.Time{}
		if j.State == queue.Dead {
			next.State, next.Since, next.Attempts, next.Why = queue.Queued, t.Now(), 0, ""
		}
		if err := q.replace(t, j, &next); err != nil {
			return fmt.Errorf("retry job %s: %w", id, err)
		}
		e = next.Entry
		return nil
	})
	return e, err
}

// Purge forgets a job.
func (q *Queue) Purge(ctx context.Context, id string) (e queue.Entry, err error) {
	err = q.turn(ctx, true, func(t Turn) error {
		j, err := q.find(id)
		if err != nil {
			return err
		}
		if e = j.Entry; j.State == queue.Leased {
			return j.begun()
		}
		if err := t.Write(Change{Drop: recordsOf([]*job{j})}); err != nil {
			return fmt.Errorf("purge job %s: %w", id, err)
		}
		q.take(j)
		q.changed()
		return nil
	})
	return e, err
}

// Return ends the leases of a worker.
func (q *Queue) Return(ctx context.Context, worker string, upTo uint64) error {
	return q.turn(ctx, true, func(t Turn) error {
		var old, all []*job
		for _, j := range q.line {
			if j.State != queue.Leased || j.Worker != worker || j.Epoch > upTo {
				continue
			}
			next := *j
			next.putBack(t.Now(), 0, "restarted")
			old, all = append(old, j), append(all, &next)
		}
		if err := q.replaceAll(t, old, all); err != nil {
			return fmt.Errorf("return the jobs of the worker %s: %w", worker, err)
		}
		return nil
	})
}

// Stats counts.
func (q *Queue) Stats(ctx context.Context) (s queue.Stats, err error) {
	err = q.turn(ctx, false, func(t Turn) error {
		s = queue.Stats{Leases: q.leases, Lapses: uint64(q.lapsed.Load())}
		_, s.Epoch = t.Last()
		for _, j := range q.jobs() {
			if len(j.Keys) > 0 {
				s.Bytes += int64(j.Size)
			}
			switch j.State {
			case queue.Queued:
				if s.Queued++; s.Oldest.IsZero() || j.Submitted.Before(s.Oldest) {
					s.Oldest = j.Submitted
				}
			case queue.Leased:
				s.Leased++
			case queue.Dead:
				s.Dead++
			}
		}
		return nil
	})
	return s, err
}
