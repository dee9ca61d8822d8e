package daemon

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"wf/cas"
	"wf/engine"
	"wf/engine/rules"
	"wf/protocol"
	"wf/service/query"
	"wf/store"
)

// A census knows where the runs of a store stand, and what the store takes on disk:
//
//	supervisor reads a run ─► see ─┐
//	heads that moved, now and then ─► look ─► counts ─► metrics
//
// Reading the counts folds nothing. To bring them up to date a run is folded only where its head moved, this process
// does not drive it and did not read it anyway, or it was queued. A run that is driven here counts as running, also while
// it waits for a timer of the next minute. Runs of sub-workflows are parts of others and do not count.
type census struct {
	s      store.Store
	fold   func(context.Context, protocol.RunID) (*rules.State, error)
	drives func(protocol.RunID) bool
	log    *slog.Logger

	looking sync.Mutex                                    // held by look
	usage   *cas.Usage                                    // nil for a database, which tells its size itself
	count   func(context.Context) ([]cas.RunCount, error) // of a store that counts its runs itself: then nothing is kept of each; else nil

	mu      sync.Mutex
	runs    map[protocol.RunID]standing
	counts  map[counted]int
	oldest  map[protocol.RunStatus]int64 // unix µs of the last event of the run that moved least lately
	disk    cas.Disk
	moved   bool      // a run was seen since it was counted
	changes uint64    // commit counter of the store, as it was counted
	since   time.Time // when that was; zero before the first look
}

// standing is where a run stood after its event seq.
type standing struct {
	seq      protocol.Seq
	status   protocol.RunStatus
	workflow string
	moved    int64 // unix µs
	child    bool
}

// counted are runs that count together.
type counted struct {
	workflow string
	status   protocol.RunStatus
}

// unreadable is the status of a run that cannot be read.
const unreadable protocol.RunStatus = "unreadable"

// censusEvery is how often the store is looked at; less often where a look takes long, so that all of them take a part of the time in censusPart.
const (
	censusEvery = 5 * time.Second
	censusPart  = 100
)

func newCensus(s store.Store, e *engine.Engine, drives func(protocol.RunID) bool, log *slog.Logger) *census {
	c := &census{s: s, fold: e.State, drives: drives, log: log, runs: map[protocol.RunID]standing{}}
	if dir, ok := s.(*cas.Store); ok {
		c.usage = &cas.Usage{Store: dir}
	}
	if counts, ok := s.(interface {
		CountRuns(context.Context) ([]cas.RunCount, error)
	}); ok {
		c.count = counts.CountRuns
	}
	return c
}

// see notes where a run stands.
func (c *census) see(run protocol.RunID, st *rules.State) {
	if c.count != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs[run], c.moved = standingOf(st), true
}

func standingOf(st *rules.State) standing {
	return standing{seq: st.Seq, status: st.Status(), workflow: st.Program().Workflow.Name, moved: st.TS, child: st.Info.Parent != nil}
}

// run looks until ctx ends; the first time once ready is closed.
func (c *census) run(ctx context.Context, ready <-chan struct{}) {
	select {
	case <-ready:
	case <-ctx.Done():
		return
	}
	next := time.NewTimer(censusEvery)
	defer next.Stop()
	for told := false; ; {
		began := time.Now()
		if err := c.look(ctx); err != nil && ctx.Err() == nil {
			if !told {
				c.log.Error("the runs of the store cannot be counted", "why", describe(err))
			}
			told = true
		} else {
			told = false
		}
		next.Reset(max(censusEvery, censusPart*time.Since(began)))
		select {
		case <-next.C:
		case <-ctx.Done():
			return
		}
	}
}

// look brings the counts up to date.
func (c *census) look(ctx context.Context) error {
	c.looking.Lock()
	defer c.looking.Unlock()
	now := time.Now()
	changes, err := c.s.Changes(ctx) // first: what is committed from here on is seen by the next look
	if err != nil {
		return err
	}
	var disk cas.Disk
	if c.usage != nil {
		if disk, err = c.usage.Read(ctx); err != nil {
			return err
		}
	}
	c.mu.Lock()
	same := changes == c.changes && !c.moved && !c.since.IsZero()
	c.moved = false
	c.mu.Unlock()
	recount := c.recount
	if c.count != nil {
		recount = c.ask
	}
	if !same {
		if err := recount(ctx); err != nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.moved = true // what was seen is still to be counted
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes, c.since, c.disk = changes, now, disk
	return nil
}

// recount looks at the runs with heads that moved.
func (c *census) recount(ctx context.Context) error {
	heads, err := c.s.Newest(ctx)
	if err != nil {
		return err
	}
	there := make(map[protocol.RunID]bool, len(heads))
	for _, h := range heads {
		run := protocol.RunOf(h.Name)
		there[run] = true
		c.mu.Lock()
		old, known := c.runs[run]
		c.mu.Unlock()
		if known && (old.seq == h.Seq || old.child) {
			continue
		}
		x, err := c.standing(ctx, run, h, old)
		if err != nil {
			return err
		}
		c.mu.Lock()
		if newer := c.runs[run]; newer == old { // else it was seen meanwhile
			c.runs[run] = x
		}
		c.mu.Unlock()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.runs, func(run protocol.RunID, _ standing) bool { return !there[run] })
	c.counts, c.oldest = map[counted]int{}, map[protocol.RunStatus]int64{}
	for _, x := range c.runs {
		if x.child {
			continue
		}
		c.counts[counted{x.workflow, x.status}]++
		if at, ok := c.oldest[x.status]; !ok || x.moved < at {
			c.oldest[x.status] = x.moved
		}
	}
	return nil
}

// ask has the store count.
func (c *census) ask(ctx context.Context) error {
	all, err := c.count(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts, c.oldest = map[counted]int{}, map[protocol.RunStatus]int64{}
	for _, x := range all {
		c.counts[counted{x.Workflow, x.State}] += x.Runs
		if at, ok := c.oldest[x.State]; x.Moved > 0 && (!ok || x.Moved < at) {
			c.oldest[x.State] = x.Moved
		}
	}
	return nil
}

// standing finds out where a run stands that moved to h; old is where it stood.
func (c *census) standing(ctx context.Context, run protocol.RunID, h cas.Head, old standing) (standing, error) {
	if old.workflow != "" && old.status != protocol.Queued && c.drives(run) {
		old.seq, old.status, old.moved = h.Seq, protocol.Running, h.TS
		return old, nil
	}
	if old.seq == 0 {
		if began, err := query.Started(ctx, c.s, run); err == nil && began.Parent != nil {
			return standing{seq: h.Seq, child: true}, nil
		}
	}
	st, err := c.fold(ctx, run)
	switch {
	case err == nil:
		return standingOf(st), nil
	case ctx.Err() != nil, protocol.OfStore(err):
		return standing{}, err
	}
	return standing{seq: h.Seq, status: unreadable, workflow: old.workflow, moved: h.TS}, nil
}

// age is how old the counts are; false before the first look.
func (c *census) age() (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.since), !c.since.IsZero()
}

// register has the counts among the metrics.
func (c *census) register(m *meters) {
	status := m.statuses(string(unreadable))
	m.GaugeFunc("wf_runs", "Runs of the store by workflow and status, without those of sub-workflows.", func(emit func(float64, ...string)) {
		c.mu.Lock()
		defer c.mu.Unlock()
		for x, n := range c.counts {
			emit(float64(n), x.workflow, string(x.status))
		}
	}, m.workflow, status)
	m.GaugeFunc("wf_run_unmoved_seconds", "How long ago the run had its last event that moved least lately of all of a status.", func(emit func(float64, ...string)) {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, x := range []protocol.RunStatus{protocol.Queued, protocol.Running, protocol.Waiting, protocol.Suspended} {
			if at, ok := c.oldest[x]; ok {
				emit(max(0, time.Since(time.UnixMicro(at)).Seconds()), string(x))
			}
		}
	}, status)
	disk := func(f func(cas.Disk, func(float64, ...string))) func(func(float64, ...string)) {
		return func(emit func(float64, ...string)) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if !c.since.IsZero() {
				f(c.disk, emit)
			}
		}
	}
	m.GaugeFunc("wf_store_bytes", "What the store takes on disk.", disk(func(d cas.Disk, emit func(float64, ...string)) {
		emit(float64(d.Database), "database")
		emit(float64(d.Blobs), "blobs")
	}), m.class("database", "blobs"))
	m.GaugeFunc("wf_store_free_bytes", "What is left on the file system of the store.", disk(func(d cas.Disk, emit func(float64, ...string)) { emit(float64(d.Free)) }))
	m.GaugeFunc("wf_store_age_seconds", "How old wf_runs, wf_run_unmoved_seconds and the bytes of the store are: more than 15 where it cannot be read, or is so large that counting takes long.", func(emit func(float64, ...string)) {
		if d, ok := c.age(); ok {
			emit(d.Seconds())
		}
	})
}
