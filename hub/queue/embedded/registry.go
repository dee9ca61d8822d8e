package embedded

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"wf/hub/queue"
	"wf/protocol"
)

// seenEvery is how far the time of the last word in the file may lag behind.
const seenEvery = time.Minute

// Registry is a queue.Registry.
type Registry struct {
	db *bbolt.DB

	mu      sync.Mutex
	workers map[string]*worker
	closed  bool
}

type worker struct {
	queue.Worker
	until   time.Time // it lives till then
	written time.Time // Seen, as the file has it
}

// A workerRecord is a worker in the file.
type workerRecord struct {
	queue.Worker
	Key      []byte `json:"key,omitempty"`
	Instance string `json:"instance,omitempty"`
}

func newRegistry(db *bbolt.DB) *Registry {
	return &Registry{db: db, workers: map[string]*worker{}}
}

// load reads the workers of the file; none is live until it is heard of again.
func (r *Registry) load(tx *bbolt.Tx) error {
	return tx.Bucket(workersBucket).ForEach(func(k, v []byte) error {
		kept := workerRecord{}
		if err := json.Unmarshal(v, &kept); err != nil {
			return fmt.Errorf("worker %s: %w", k, err)
		}
		a := &worker{Worker: kept.Worker}
		a.Key, a.Instance = kept.Key, kept.Instance
		a.Live, a.Busy, a.written = false, 0, a.Seen
		r.workers[a.ID] = a
		return nil
	})
}

// Announce adds a worker or refreshes it.
func (r *Registry) Announce(ctx context.Context, said queue.Worker, ttl time.Duration) (draining bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.ready(ctx); err != nil {
		return false, err
	}
	now := time.Now()
	a := &worker{Worker: said, until: now.Add(ttl)}
	a.Caps = slices.Sorted(slices.Values(said.Caps))
	a.Since, a.Seen, a.Live = now, now, true
	old := r.workers[a.ID]
	if a.Draining = false; old != nil {
		a.Draining = old.Draining
	}
	if old != nil && old.Live {
		a.Since = old.Since
	}
	if a.written = now; old != nil && same(old.Worker, a.Worker) && now.Sub(old.written) < seenEvery {
		a.written = old.written
	} else if err := r.write(a); err != nil {
		return false, fmt.Errorf("announce worker %s: %w", a.ID, err)
	}
	r.workers[a.ID] = a
	return a.Draining, nil
}

// same reports whether the file need not be written for what was said: Seen may lag behind.
func same(a, b queue.Worker) bool {
	return a.Name == b.Name && a.Version == b.Version && slices.Equal(a.Caps, b.Caps) && a.Runs == b.Runs && a.Live == b.Live &&
		a.Capacity == b.Capacity && bytes.Equal(a.Key, b.Key) && a.Instance == b.Instance // how many it drives is not worth a write
}

// Withdraw says that a worker is gone.
func (r *Registry) Withdraw(ctx context.Context, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.ready(ctx); err != nil {
		return err
	}
	old := r.workers[id]
	if old == nil || !old.Live {
		return nil
	}
	a := *old
	a.Live, a.written = false, a.Seen
	if err := r.write(&a); err != nil {
		return fmt.Errorf("withdraw worker %s: %w", id, err)
	}
	r.workers[id] = &a
	return nil
}

// Drain says whether a worker gets jobs.
func (r *Registry) Drain(ctx context.Context, id string, drain bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.ready(ctx); err != nil {
		return err
	}
	old := r.workers[id]
	if old == nil {
		return unknown(id)
	}
	a := *old
	a.Draining = drain
	if err := r.write(&a); err != nil {
		return fmt.Errorf("drain worker %s: %w", id, err)
	}
	r.workers[id] = &a
	return nil
}

func unknown(id string) error {
	return protocol.ErrNotFound.With("wf hub workers lists them, and GET /v1/agents", "this hub knows no worker %q", id)
}

// Forget takes a worker out that is gone.
func (r *Registry) Forget(ctx context.Context, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.ready(ctx); err != nil {
		return err
	}
	old := r.workers[id]
	switch {
	case old == nil:
		return unknown(id)
	case old.Live:
		return fmt.Errorf("worker %s: %w", id, queue.ErrWorkerLive)
	}
	err := r.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(workersBucket).Delete([]byte(id)) })
	if err != nil {
		return fmt.Errorf("forget worker %s: %w", id, err)
	}
	delete(r.workers, id)
	return nil
}

// List gives the workers by name, then id.
func (r *Registry) List(ctx context.Context) ([]queue.Worker, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.ready(ctx); err != nil {
		return nil, err
	}
	out := make([]queue.Worker, 0, len(r.workers))
	for _, a := range r.workers {
		out = append(out, a.Worker)
	}
	protocol.Sort(out, func(a, b queue.Worker) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}

// ready lets workers lapse, and forgets those that are gone for long.
func (r *Registry) ready(ctx context.Context) error {
	if r.closed {
		return queue.ErrClosed
	}
	now := time.Now()
	for id, a := range r.workers {
		switch {
		case a.Live && !a.until.After(now):
			gone := *a
			gone.Live = false
			r.workers[id] = &gone
		case !a.Live && now.Sub(a.Seen) > keep:
			delete(r.workers, id) // from the file with the next word of any worker
		}
	}
	return ctx.Err()
}

// write makes a worker durable, and deletes those that are forgotten.
func (r *Registry) write(a *worker) error {
	return r.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(workersBucket)
		var forgotten [][]byte
		err := b.ForEach(func(k, _ []byte) error {
			if r.workers[string(k)] == nil {
				forgotten = append(forgotten, slices.Clone(k))
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, k := range forgotten {
			if err := b.Delete(k); err != nil {
				return err
			}
		}
		return put(b, []byte(a.ID), workerRecord{a.Worker, a.Key, a.Instance})
	})
}

func (r *Registry) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}
