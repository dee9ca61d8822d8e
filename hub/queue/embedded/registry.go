package embedded

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"wf/hub/queue"
)

// seenEvery is how far the time of the last word in the file may lag behind.
const seenEvery = time.Minute

// Registry is a queue.Registry.
type Registry struct {
	db   *bbolt.DB
	now  func() time.Time
	keep time.Duration

	mu     sync.Mutex
	agents map[string]*agent
	closed bool
}

type agent struct {
	queue.Agent
	until   time.Time // it lives till then
	written time.Time // Seen as it stands in the file
}

func newRegistry(db *bbolt.DB, o Options) *Registry {
	return &Registry{db: db, now: o.Now, keep: o.Keep, agents: map[string]*agent{}}
}

// load reads who was there; nobody lives until it is heard of again.
func (r *Registry) load(tx *bbolt.Tx) error {
	return tx.Bucket(agentsBucket).ForEach(func(k, v []byte) error {
		a := &agent{}
		if err := json.Unmarshal(v, &a.Agent); err != nil {
			return fmt.Errorf("agent %s: %w", k, err)
		}
		a.Live, a.written = false, a.Seen
		r.agents[a.ID] = a
		return nil
	})
}

// Announce adds an agent or refreshes it.
func (r *Registry) Announce(ctx context.Context, said queue.Agent, ttl time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.ready(ctx); err != nil {
		return err
	}
	now := r.now()
	a := &agent{Agent: said, until: now.Add(ttl)}
	a.Caps = slices.Sorted(slices.Values(said.Caps))
	a.Since, a.Seen, a.Live = now, now, true
	old := r.agents[a.ID]
	if old != nil && old.Live {
		a.Since = old.Since
	}
	if a.written = now; old != nil && same(old.Agent, a.Agent) && now.Sub(old.written) < seenEvery {
		a.written = old.written
	} else if err := r.write(a); err != nil {
		return fmt.Errorf("announce agent %s: %w", a.ID, err)
	}
	r.agents[a.ID] = a
	return nil
}

// same reports whether the file need not be written for what was said: Seen may lag behind.
func same(a, b queue.Agent) bool {
	return a.Name == b.Name && a.Version == b.Version && slices.Equal(a.Caps, b.Caps) && a.Runs == b.Runs && a.Live == b.Live
}

// Withdraw says that an agent is gone.
func (r *Registry) Withdraw(ctx context.Context, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.ready(ctx); err != nil {
		return err
	}
	old := r.agents[id]
	if old == nil || !old.Live {
		return nil
	}
	a := *old
	a.Live, a.written = false, a.Seen
	if err := r.write(&a); err != nil {
		return fmt.Errorf("withdraw agent %s: %w", id, err)
	}
	r.agents[id] = &a
	return nil
}

// List gives the agents by name, then id.
func (r *Registry) List(ctx context.Context) ([]queue.Agent, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.ready(ctx); err != nil {
		return nil, err
	}
	out := make([]queue.Agent, 0, len(r.agents))
	for _, a := range r.agents {
		out = append(out, a.Agent)
	}
	slices.SortFunc(out, func(a, b queue.Agent) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}

// ready lets agents lapse, and forgets those that are gone for long.
func (r *Registry) ready(ctx context.Context) error {
	if r.closed {
		return queue.ErrClosed
	}
	now := r.now()
	for id, a := range r.agents {
		switch {
		case a.Live && !a.until.After(now):
			gone := *a
			gone.Live = false
			r.agents[id] = &gone
		case !a.Live && now.Sub(a.Seen) > r.keep:
			delete(r.agents, id) // from the file with the next word of any agent
		}
	}
	return ctx.Err()
}

// write makes an agent durable, and deletes those that are forgotten.
func (r *Registry) write(a *agent) error {
	return update(r.db, func(tx *bbolt.Tx) error {
		b := tx.Bucket(agentsBucket)
		var forgotten [][]byte
		err := b.ForEach(func(k, _ []byte) error {
			if r.agents[string(k)] == nil {
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
		return put(b, []byte(a.ID), a.Agent)
	})
}

func (r *Registry) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}
