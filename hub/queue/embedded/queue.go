package embedded

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"wf/hub/queue"
	"wf/protocol"
)

// Queue is a queue.Queue.
type Queue struct {
	db *bbolt.DB

	mu     sync.Mutex
	byID   map[string]*job
	line   []*job    // neither done nor dead, in the order of the queue
	over   []*job    // done and dead, in the order in which they became so
	number uint64    // of the newest submission
	epoch  uint64    // of the newest lease
	expiry time.Time // when a box may be too old; zero where there is none
	leases uint64
	wake   chan struct{}
	timer  *time.Timer
	closed bool

	lapsed atomic.Int64
}

// Lapsed is how many leases have ended by themselves since the queue was opened.
func (q *Queue) Lapsed() int64 { return q.lapsed.Load() }

// A job is an entry with what only the queue needs to know.
type job struct {
	queue.Entry
	Number uint64
	TTL    time.Duration // of the lease
	Until  time.Time     // leased: when it lapses; queued: not before
	lost   chan struct{} // of the lease; nil after a restart
}

// A record is a job in the file.
type record struct {
	queue.Entry
	Number uint64            `json:"number"`
	TTL    time.Duration     `json:"ttl"`
	Until  time.Time         `json:"until"`
	Unsure bool              `json:"unsure,omitempty"`
	Keys   []queue.Key       `json:"keys,omitempty"`
	Size   int               `json:"size,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

func newQueue(db *bbolt.DB) *Queue {
	return &Queue{db: db, byID: map[string]*job{}, wake: make(chan struct{})}
}

func (q *Queue) load(tx *bbolt.Tx) error {
	q.epoch = number(tx.Bucket(metaBucket).Get(epochKey))
	err := tx.Bucket(jobsBucket).ForEach(func(k, v []byte) error {
		r := record{}
		if err := json.Unmarshal(v, &r); err != nil {
			return fmt.Errorf("job %x: %w", k, err)
		}
		j := &job{Entry: r.Entry, Number: r.Number, TTL: r.TTL, Until: r.Until}
		j.Unsure, j.Keys, j.Size, j.Digest = r.Unsure, r.Keys, r.Size, r.Digest
		if j.Submitted.IsZero() { // of version 1
			j.Submitted = j.Since
		}
		q.number = max(q.number, j.Number)
		if latest := time.Now().Add(j.TTL); j.Until.After(latest) {
			j.Until = latest // the clock was put back meanwhile
		}
		if j.State == queue.Queued && len(j.Keys) == 0 { // of version 1: what it starts was in memory
			j.State, j.Why = queue.Dead, queue.ErrBodyGone.Code
		}
		if len(j.Keys) > 0 {
			q.expiresAt(j.Submitted.Add(queue.KeepBox))
		}
		q.put(j)
		return nil
	})
	protocol.Sort(q.over, func(a, b *job) int { return a.Since.Compare(b.Since) })
	return err
}

func ended(s queue.State) bool { return s == queue.Done || s == queue.Dead }

// Submit puts a job behind the others of its priority.
func (q *Queue) Submit(ctx context.Context, want queue.Job, s queue.Sealed) (queue.Entry, bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.ready(ctx); err != nil {
		return queue.Entry{}, false, err
	}
	if j, known := q.byID[want.ID]; known {
		q.changed() // what a worker can start may have changed
		return j.Entry, false, want.Check()
	}
	e, err := q.add(want, s, q.forgettable()...)
	return e, err == nil, err
}

// Resubmit replaces a dead job.
func (q *Queue) Resubmit(ctx context.Context, want queue.Job, s queue.Sealed) (queue.Entry, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	j, err := q.find(ctx, want.ID)
	if err != nil || j.State != queue.Dead {
		return entryOf(j), err
	}
	return q.add(want, s, j)
}

// add writes a new job, and forgets others.
func (q *Queue) add(want queue.Job, s queue.Sealed, forget ...*job) (queue.Entry, error) {
	if err := want.Check(); err != nil {
		return queue.Entry{}, err
	}
	if len(s.Keys) == 0 {
		return queue.Entry{}, fmt.Errorf("job %s has no key of its box: %w", want.ID, queue.ErrBadJob)
	}
	now := time.Now()
	j := &job{Entry: queue.Entry{Job: want, State: queue.Queued, Since: now, Submitted: now, Keys: s.Keys, Size: len(s.Box), Digest: s.Digest}, Number: q.number + 1}
	if err := q.store(j, s.Box, forget...); err != nil {
		return queue.Entry{}, fmt.Errorf("submit job %s: %w", want.ID, err)
	}
	for _, f := range forget {
		q.take(f)
	}
	q.number++
	q.put(j)
	q.expiresAt(now.Add(queue.KeepBox))
	q.changed()
	return j.Entry, nil
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

// tryLease leases a job, or gives the channel that is closed when there may be one.
func (q *Queue) tryLease(ctx context.Context, worker string, fits func(queue.Entry) bool, ttl time.Duration) (queue.Lease, <-chan struct{}, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.ready(ctx); err != nil {
		return nil, nil, err
	}
	now := time.Now()
	for i, j := range q.line {
		if j.State != queue.Queued || j.Until.After(now) || fits != nil && !fits(j.Entry) {
			continue
		}
		next := *j
		next.State, next.Since, next.Worker, next.Attempts = queue.Leased, now, worker, j.Attempts+1
		// Larger than any epoch of an earlier file, as long as the clock does not go back by
		// more than the hub was away.
		next.Epoch = max(q.epoch+1, uint64(now.UnixMilli()))
		next.TTL, next.Until, next.lost = ttl, now.Add(ttl), make(chan struct{})
		if err := q.store(&next, nil); err != nil {
			return nil, nil, fmt.Errorf("lease job %s: %w", j.ID, err)
		}
		q.epoch = next.Epoch
		q.leases++
		q.line[i], q.byID[j.ID] = &next, &next
		q.changed()
		return &lease{q: q, entry: next.Entry, lost: next.lost}, nil, nil
	}
	return nil, q.wake, nil
}

// Settle ends a job without a lease.
func (q *Queue) Settle(ctx context.Context, want queue.Job, worker string, run protocol.RunID) error {
	if err := want.Check(); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.ready(ctx); err != nil {
		return err
	}
	j, known := q.byID[want.ID]
	if !known {
		j = &job{Entry: queue.Entry{Job: want, State: queue.Queued, Submitted: time.Now()}, Number: q.number + 1}
	}
	if j.State == queue.Done {
		return nil
	}
	next := *j
	next.State, next.Since, next.Worker, next.Run, next.Why, next.Keys = queue.Done, time.Now(), worker, run, "", nil
	if err := q.replace(j, &next); err != nil {
		return fmt.Errorf("settle job %s: %w", want.ID, err)
	}
	q.number = max(q.number, next.Number)
	return nil
}

// Cancel takes a queued job out.
func (q *Queue) Cancel(ctx context.Context, id string) (queue.Entry, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	j, err := q.find(ctx, id)
	switch {
	case err != nil:
		return queue.Entry{}, err
	case j.State == queue.Dead:
		return j.Entry, nil
	}
	if err := j.begun(); err != nil {
		return j.Entry, err
	}
	next := *j
	next.State, next.Since, next.Why, next.Keys = queue.Dead, time.Now(), queue.WhyCancelled, nil
	if err := q.replace(j, &next); err != nil {
		return j.Entry, fmt.Errorf("cancel job %s: %w", id, err)
	}
	return next.Entry, nil
}

// Find looks a job up.
func (q *Queue) Find(ctx context.Context, id string) (queue.Entry, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	j, err := q.find(ctx, id)
	if err != nil {
		return queue.Entry{}, err
	}
	return j.Entry, nil
}

// List gives the jobs that are not done.
func (q *Queue) List(ctx context.Context) ([]queue.Entry, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.ready(ctx); err != nil {
		return nil, err
	}
	jobs := slices.Clone(q.line)
	for _, j := range q.over {
		if j.State == queue.Dead {
			jobs = append(jobs, j)
		}
	}
	protocol.Sort(jobs, inOrder)
	out := make([]queue.Entry, len(jobs))
	for i, j := range jobs {
		out[i] = j.Entry
	}
	return out, nil
}

// Await returns the job once it is done or dead.
func (q *Queue) Await(ctx context.Context, id string) (queue.Entry, error) {
	for {
		q.mu.Lock()
		j, err := q.find(ctx, id)
		wake := q.wake
		q.mu.Unlock()
		switch { // a job that was found is never changed, but for its place being taken
		case err != nil:
			return queue.Entry{}, err
		case ended(j.State):
			return j.Entry, nil
		}
		select {
		case <-ctx.Done():
			return j.Entry, ctx.Err()
		case <-wake:
		}
	}
}
