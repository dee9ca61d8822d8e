package line

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"wf/hub/queue"
	"wf/protocol"
)

// Queue is a queue.Queue.
type Queue struct {
	keeper Keeper
	lock   chan struct{} // holds one token while a call has what is below
	closed chan struct{} // by Close

	byID   map[string]*job
	line   []*job    // neither done nor dead, in the order of the queue
	over   []*job    // done and dead, about in the order in which they became so
	expiry time.Time // when a box may be too old; zero where there is none
	leases uint64
	wake   chan struct{}
	timer  *time.Timer

	lapsed atomic.Int64
}

// New is the queue of a keeper. Its first turn reads the jobs.
func New(k Keeper) *Queue {
	return &Queue{keeper: k, lock: make(chan struct{}, 1), closed: make(chan struct{}), byID: map[string]*job{}, wake: make(chan struct{})}
}

// Lapsed is how many leases have ended by themselves since the queue was opened.
func (q *Queue) Lapsed() int64 { return q.lapsed.Load() }

// Sync hears what others have changed.
func (q *Queue) Sync(ctx context.Context) error {
	return q.turn(ctx, false, func(Turn) error { return nil })
}

// A job is an entry with what only the queue needs to know.
type job struct {
	queue.Entry
	Number uint64
	TTL    time.Duration // of the lease
	Until  time.Time     // leased: when it lapses; queued: not before
	lost   chan struct{} // of the lease; nil where another process has it
}

func (j *job) record() Record {
	return Record{Entry: j.Entry, Number: j.Number, TTL: j.TTL, Until: j.Until, Unsure: j.Unsure, Given: j.Given, Keys: j.Keys, Size: j.Size, Digest: j.Digest}
}

func (r Record) job() *job {
	j := &job{Entry: r.Entry, Number: r.Number, TTL: r.TTL, Until: r.Until}
	j.Unsure, j.Given, j.Keys, j.Size, j.Digest = r.Unsure, r.Given, r.Keys, r.Size, r.Digest
	return j
}

func ended(s queue.State) bool { return s == queue.Done || s == queue.Dead }

// Submit puts a job behind the others of its priority.
func (q *Queue) Submit(ctx context.Context, want queue.Job, s queue.Sealed) (e queue.Entry, fresh bool, err error) {
	err = q.turn(ctx, true, func(t Turn) (err error) {
		if j, known := q.byID[want.ID]; known {
			q.changed() // what a worker can start may have changed
			e = j.Entry
			return want.Check()
		}
		e, err = q.add(t, want, s, q.forgettable(t.Now())...)
		fresh = err == nil
		return err
	})
	return e, fresh, err
}

// Resubmit replaces a dead job.
func (q *Queue) Resubmit(ctx context.Context, want queue.Job, s queue.Sealed) (e queue.Entry, err error) {
	err = q.turn(ctx, true, func(t Turn) error {
		j, err := q.find(want.ID)
		if err != nil || j.State != queue.Dead {
			e = entryOf(j)
			return err
		}
		e, err = q.add(t, want, s, j)
		return err
	})
	return e, err
}

// add writes a new job, and forgets others.
func (q *Queue) add(t Turn, want queue.Job, s queue.Sealed, forget ...*job) (queue.Entry, error) {
	if err := want.Check(); err != nil {
		return queue.Entry{}, err
	}
	if len(s.Keys) == 0 {
		return queue.Entry{}, fmt.Errorf("job %s has no key of its box: %w", want.ID, queue.ErrBadJob)
	}
	number, _ := t.Last()
	now := t.Now()
	j := &job{Entry: queue.Entry{Job: want, State: queue.Queued, Since: now, Submitted: now, Keys: s.Keys, Size: len(s.Box), Digest: s.Digest}, Number: number + 1}
	if err := t.Write(Change{Jobs: []Record{j.record()}, Box: s.Box, Drop: recordsOf(forget)}); err != nil {
		return queue.Entry{}, fmt.Errorf("submit job %s: %w", want.ID, err)
	}
	for _, f := range forget {
		q.take(f)
	}
	q.put(j)
	q.changed()
	return j.Entry, nil
}

func recordsOf(jobs []*job) []Record {
	out := make([]Record, len(jobs))
	for i, j := range jobs {
		out[i] = j.record()
	}
	return out
}

func entryOf(j *job) queue.Entry {
	if j == nil {
		return queue.Entry{}
	}
	return j.Entry
}

// Lease waits for the first queued job that fits.
func (q *Queue) Lease(ctx context.Context, worker string, fits func(queue.Entry) bool, ttl time.Duration) (queue.Lease, error) {
	for {
		l, wake, err := q.tryLease(ctx, worker, fits, ttl)
		if l != nil || err != nil {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-wake:
		}
	}
}

// first is the first queued job that fits, nil for none.
func (q *Queue) first(now time.Time, fits func(queue.Entry) bool) *job {
	for _, j := range q.line {
		if j.State == queue.Queued && !j.Until.After(now) && (fits == nil || fits(j.Entry)) {
			return j
		}
	}
	return nil
}

// tryLease leases a job, or gives the channel that is closed when there may be one. A turn is begun only where memory holds one.
func (q *Queue) tryLease(ctx context.Context, worker string, fits func(queue.Entry) bool, ttl time.Duration) (l queue.Lease, wake <-chan struct{}, err error) {
	if err := q.enter(ctx); err != nil {
		return nil, nil, err
	}
	wake = q.wake
	q.lapse(q.keeper.Now())
	may := q.first(q.keeper.Now(), fits) != nil
	q.leave()
	if !may {
		return nil, wake, nil
	}
	asked := time.Now() // the Keeper's time of the turn is later
	err = q.turn(ctx, true, func(t Turn) error {
		wake = q.wake
		now := t.Now()
		j := q.first(now, fits)
		if j == nil {
			q.arm() // one may be due by the time of the Keeper, and by that of turns not yet: the timer has passed
			return nil
		}
		_, epoch := t.Last()
		next := *j
		next.State, next.Since, next.Worker, next.Attempts = queue.Leased, now, worker, j.Attempts+1
		if !slices.Contains(j.Given, worker) {
			next.Given = append(slices.Clone(j.Given), worker)
		}
		// Larger than any epoch of what was kept before, as long as the clock does not go back by
		// more than the hub was away.
		next.Epoch = max(epoch+1, uint64(now.UnixMilli()))
		next.TTL, next.Until, next.lost = ttl, now.Add(ttl), make(chan struct{})
		if err := q.replace(t, j, &next); err != nil {
			return fmt.Errorf("lease job %s: %w", j.ID, err)
		}
		q.leases++
		l = &lease{q: q, entry: next.Entry, ttl: ttl, lost: next.lost, until: asked.Add(ttl)}
		return nil
	})
	return l, wake, err
}

// Settle ends a job without a lease.
func (q *Queue) Settle(ctx context.Context, want queue.Job, worker string, run protocol.RunID) error {
	if err := want.Check(); err != nil {
		return err
	}
	return q.turn(ctx, true, func(t Turn) error {
		j, known := q.byID[want.ID]
		if !known {
			number, _ := t.Last()
			j = &job{Entry: queue.Entry{Job: want, State: queue.Queued, Submitted: t.Now()}, Number: number + 1}
		}
		if j.State == queue.Done {
			return nil
		}
		next := *j
		next.State, next.Since, next.Worker, next.Run, next.Why, next.Keys = queue.Done, t.Now(), worker, run, "", nil
		if err := q.replace(t, j, &next); err != nil {
			return fmt.Errorf("settle job %s: %w", want.ID, err)
		}
		return nil
	})
}

// Cancel takes a queued job out.
func (q *Queue) Cancel(ctx context.Context, id string) (e queue.Entry, err error) {
	err = q.turn(ctx, true, func(t Turn) error {
		j, err := q.find(id)
		if err != nil {
			return err
		}
		if e = j.Entry; j.State == queue.Dead {
			return nil
		}
		if err := j.begun(); err != nil {
			return err
		}
		next := *j
		next.State, next.Since, next.Why, next.Keys = queue.Dead, t.Now(), queue.WhyCancelled, nil
		if err := q.replace(t, j, &next); err != nil {
			return fmt.Errorf("cancel job %s: %w", id, err)
		}
		e = next.Entry
		return nil
	})
	return e, err
}

// Find looks a job up.
func (q *Queue) Find(ctx context.Context, id string) (e queue.Entry, err error) {
	err = q.turn(ctx, false, func(Turn) error {
		j, err := q.find(id)
		e = entryOf(j)
		return err
	})
	return e, err
}

// List gives the jobs that are not done.
func (q *Queue) List(ctx context.Context) (out []queue.Entry, err error) {
	err = q.turn(ctx, false, func(Turn) error {
		jobs := slices.Clone(q.line)
		for _, j := range q.over {
			if j.State == queue.Dead {
				jobs = append(jobs, j)
			}
		}
		protocol.Sort(jobs, inOrder)
		out = make([]queue.Entry, len(jobs))
		for i, j := range jobs {
			out[i] = j.Entry
		}
		return nil
	})
	return out, err
}

// Await returns the job once it is done or dead. Behind the first turn it looks at what others heard.
func (q *Queue) Await(ctx context.Context, id string) (e queue.Entry, err error) {
	if e, err = q.Find(ctx, id); err != nil || ended(e.State) {
		return e, err
	}
	for {
		if err := q.enter(ctx); err != nil {
			return e, err
		}
		q.lapse(q.keeper.Now())
		j, err := q.find(id)
		wake := q.wake
		q.leave()
		if err != nil {
			return queue.Entry{}, err
		}
		// A job that was found is never changed, but for its place being taken.
		if e = j.Entry; ended(e.State) {
			return e, nil
		}
		select {
		case <-ctx.Done():
			return e, ctx.Err()
		case <-wake:
		}
	}
}
