package database

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"wf/hub/queue"
	"wf/postgres"
	"wf/protocol"
)

// keep is for how long workers that are gone are remembered.
const keep = 7 * 24 * time.Hour

// Registry is a queue.Registry. A worker lives as long as it is connected to any hub.
type Registry struct {
	s *Store

	mu    sync.Mutex
	wrote map[string]written // of the workers that are connected here
}

// written is what a worker has said when it was written last.
type written struct {
	said     queue.Worker
	at       time.Time
	draining bool
}

func newRegistry(s *Store) *Registry { return &Registry{s: s, wrote: map[string]written{}} }

// said is what a worker says of itself, as JSON.
type said struct {
	queue.Worker
	Key      []byte `json:"key,omitempty"`
	Instance string `json:"instance,omitempty"`
}

const announce = `with w as (
	insert into wfhub.workers as w (id, said, since, seen) values ($2, $3, ` + now + `, ` + now + `)
	on conflict (id) do update set said = excluded.said, seen = excluded.seen,
		since = case when exists (select from wfhub.links l where l.worker = w.id and l.until > excluded.seen) then w.since else excluded.since end
	returning draining
), l as (
	insert into wfhub.links (worker, hub, until) values ($2, $4, ` + now + ` + $5) on conflict (worker, hub) do update set until = excluded.until
) select draining, set_config('synchronous_commit', 'off', true) from w` // it is said again

// Announce adds a worker or refreshes it. What says nothing new is written three times in a ttl.
func (r *Registry) Announce(ctx context.Context, a queue.Worker, ttl time.Duration) (draining bool, err error) {
	a.Caps = slices.Sorted(slices.Values(a.Caps))
	a.Since, a.Seen, a.Live, a.Elsewhere, a.Draining = time.Time{}, time.Time{}, false, false, false
	clock := time.Now()
	r.mu.Lock()
	last := r.wrote[a.ID]
	r.mu.Unlock()
	if reflect.DeepEqual(last.said, a) && clock.Sub(last.at) < ttl/3 {
		return last.draining, r.s.open(ctx)
	}
	text, err := json.Marshal(said{a, a.Key, a.Instance})
	if err != nil {
		return false, err
	}
	got, err := r.s.query(ctx, announce, r.s.clock(), postgres.Text(a.ID), postgres.Text(string(text)), postgres.Bytea(r.s.hub), postgres.Long(ttl.Microseconds()))
	if err != nil {
		return false, fmt.Errorf("announce worker %s: %w", a.ID, err)
	}
	draining = got[0][0][0] == 1
	r.mu.Lock()
	r.wrote[a.ID] = written{a, clock, draining}
	r.mu.Unlock()
	return draining, nil
}

// forget has the next word of a worker written.
func (r *Registry) forget(id string) {
	r.mu.Lock()
	delete(r.wrote, id)
	r.mu.Unlock()
}

// Withdraw says that a worker is no longer connected to this hub.
func (r *Registry) Withdraw(ctx context.Context, id string) error {
	r.forget(id)
	if _, err := r.s.query(ctx, `delete from wfhub.links where worker = $1 and hub = $2`, postgres.Text(id), postgres.Bytea(r.s.hub)); err != nil {
		return fmt.Errorf("withdraw worker %s: %w", id, err)
	}
	return nil
}

// leave withdraws all workers of this hub.
func (r *Registry) leave() {
	_, _ = r.s.query(context.Background(), `delete from wfhub.links where hub = $1`, postgres.Bytea(r.s.hub)) // else their time passes
}

// Drain says whether a worker gets jobs.
func (r *Registry) Drain(ctx context.Context, id string, drain bool) error {
	got, err := r.s.query(ctx, `update wfhub.workers set draining = $2::text = 'yes' where id = $1 returning 1`, postgres.Text(id), postgres.Text(map[bool]string{true: "yes", false: "no"}[drain]))
	if err != nil {
		return fmt.Errorf("drain worker %s: %w", id, err)
	}
	if len(got) == 0 {
		return unknown(id)
	}
	r.forget(id)
	return nil
}

func unknown(id string) error {
	return protocol.ErrNotFound.With("wf hub workers lists them, and GET /v1/agents", "no hub of this database knows a worker %q", id)
}

const (
	alive        = `exists (select from wfhub.links l where l.worker = w.id and l.until > ` + now + `)`
	forgetWorker = `with live as (select ` + alive + ` as yes from wfhub.workers w where id = $2), gone as (delete from wfhub.workers w where id = $2 and not ` + alive + `) select yes from live`
	elsewhere    = `exists (select from wfhub.links l where l.worker = w.id and l.until > ` + now + ` and l.hub <> $3)`
	listWorkers  = `select said, since, seen, draining, ` + alive + `, ` + elsewhere + ` from wfhub.workers w where seen >= ` + now + ` - $2::bigint or ` + alive
)

// Forget takes a worker out that is gone.
func (r *Registry) Forget(ctx context.Context, id string) error {
	got, err := r.s.query(ctx, forgetWorker, r.s.clock(), postgres.Text(id))
	switch {
	case err != nil:
		return fmt.Errorf("forget worker %s: %w", id, err)
	case len(got) == 0:
		return unknown(id)
	case got[0][0][0] == 1:
		return fmt.Errorf("worker %s: %w", id, queue.ErrWorkerLive)
	}
	return nil
}

// List gives the workers by name, then id.
func (r *Registry) List(ctx context.Context) ([]queue.Worker, error) {
	got, err := r.s.query(ctx, listWorkers, r.s.clock(), postgres.Long(keep.Microseconds()), postgres.Bytea(r.s.hub))
	if err != nil {
		return nil, fmt.Errorf("workers: %w", err)
	}
	out := make([]queue.Worker, 0, len(got))
	for _, row := range got {
		var x said
		if err := json.Unmarshal(row[0], &x); err != nil {
			return nil, fmt.Errorf("worker %.200s: %v: %w", row[0], err, protocol.ErrCorrupt)
		}
		w := x.Worker
		w.Key, w.Instance = x.Key, x.Instance
		w.Since, w.Seen = time.UnixMicro(postgres.ReadLong(row[1])), time.UnixMicro(postgres.ReadLong(row[2]))
		w.Elsewhere = row[5][0] == 1
		if w.Draining, w.Live = row[3][0] == 1, row[4][0] == 1; !w.Live {
			w.Busy = 0
		}
		out = append(out, w)
	}
	protocol.Sort(out, func(a, b queue.Worker) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}
