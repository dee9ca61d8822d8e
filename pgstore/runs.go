package pgstore

import (
	"context"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"time"

	"wf/cas"
	"wf/protocol"
)

// wf.runs says where each run is, by what comes with its events: see cas.Standing. Which runs are due is one look at an index
// of those that no worker has, and costs the same beside any number of runs that wait.

// mostNeeds bounds what one run can need, in bytes.
const mostNeeds = 1 << 10

// stand has a batch note where runs are. Each row of wf.runs is written under the lock of the head of its run.
func (r *request) stand(runs []cas.Standing) {
	r.runs = runs
	moved := map[string]bool{}
	for _, x := range r.rows {
		moved[x.name] = moved[x.name] || x.kind == moves
	}
	for _, x := range runs {
		switch name := protocol.RunHead(x.Run); {
		case x.State == "":
			r.rows = append(r.rows, row{kind: guards, name: name})
		case !moved[name]:
			r.rows = append(r.rows, row{kind: stands, name: name, old: linkBytes(x.At)})
		}
	}
}

func (r *request) checkRuns() error {
	seen := map[string]bool{}
	for _, x := range r.runs {
		key := fmt.Sprint(x.Run, " ", x.State == "")
		needs := strings.Join(x.Needs, ",")
		switch {
		case seen[key]:
			return fmt.Errorf("where run %s is: the batch says it twice: %w", x.Run, protocol.ErrUsage)
		case !storable(string(x.Run)) || !storable(string(x.Parent)) || !storable(string(x.State)) || !storable(needs) || !storable(x.Home) || !storable(x.Workflow):
			return fmt.Errorf("where run %q is: not all of it is text: %w", x.Run, protocol.ErrUsage)
		case len(needs)+len(x.Home) > mostNeeds || strings.Count(needs, ",") > max(0, len(x.Needs)-1):
			return fmt.Errorf("what run %s needs: %q: at most %d bytes, without commas: %w", x.Run, x.Needs, mostNeeds, protocol.ErrUsage)
		}
		seen[key] = true
	}
	return nil
}

// standings are the last parameters of commit.sql.
func standings(group []*request) []param {
	var at []int32
	var all []cas.Standing
	for i, r := range group {
		for _, x := range r.runs {
			at, all = append(at, int32(i)), append(all, x)
		}
	}
	texts := func(of func(cas.Standing) string, null bool) param {
		return array(oidTexts, oidText, len(all), func(i int) []byte {
			if s := of(all[i]); s != "" || !null {
				return append([]byte{}, s...)
			}
			return nil
		})
	}
	return []param{
		ints(len(at), func(i int) int32 { return at[i] }),
		texts(func(x cas.Standing) string { return string(x.Run) }, false),
		texts(func(x cas.Standing) string { return string(x.State) }, false),
		longs(len(all), func(i int) (int64, bool) { return all[i].Due, all[i].Due == 0 }),
		texts(func(x cas.Standing) string { return string(x.Parent) }, true),
		texts(func(x cas.Standing) string { return strings.Join(x.Needs, ",") }, false),
		texts(func(x cas.Standing) string { return x.Home }, true),
		texts(func(x cas.Standing) string { return x.Workflow }, false),
	}
}

// takeDue gives out runs of those that some condition is about, each for a moment: the process claims it then, or it is given out again.
// That is not worth a wait for the disk. Rows that others look at are passed over, so that it waits for none.
const (
	takeDue = `with clock as materialized (select (extract(epoch from statement_timestamp()) * 1000000)::bigint as now, set_config('synchronous_commit', 'off', true)),
d as materialized (
	select run from wf.runs where %s and due <= (extract(epoch from statement_timestamp()) * 1000000)::bigint and needs <@ $1
		and (home is null or home = any($1) or due <= (extract(epoch from statement_timestamp()) * 1000000)::bigint - $4
			and not exists (select from wf.workers w where home = any(w.has) and w.id <> all($5::bytea[])))
	order by due limit $2 for no key update skip locked)
update wf.runs r set due = clock.now + $3, woken = false from clock where r.run = any(array(select run from d)) returning r.run`

	free   = `worker is null and due is not null`
	orphan = `worker is not null and (worker = any($5::bytea[]) or not exists (select from wf.workers w where w.id = runs.worker))`
)

// freeEnded releases what dead workers have of runs that have ended, such as one that was cancelled after its worker was killed: none of
// them is ever due again, so that no other worker takes it over.
const freeEnded = `with d as materialized (select run, worker from wf.runs where worker is not null and state in ('done', 'failed', 'cancelled')
	and (worker = any($1::bytea[]) or not exists (select from wf.workers w where w.id = runs.worker)) limit $2 for no key update skip locked),
	c as (update wf.heads h set token = null, worker = null from d where h.name = 'run/' || d.run and h.worker = d.worker returning d.run)
	update wf.runs set worker = null where run = any(array(select run from c))`

var takeFree, takeOrphans = fmt.Sprintf(takeDue, free), fmt.Sprintf(takeDue, orphan)

// handover is how long a run that was given out is given to no other process, before it is claimed.
const handover = 5 * time.Second

// leavesHome is for how many leases a run is due before it is given to a process of another machine than that of its files, where none
// of that machine is there: one that is started anew comes first.
const leavesHome = 2

// mostDue is how many runs are given out at once at most.
const mostDue = 32

// Due gives out runs that are due; see engine.Queue. They come with those of workers that are dead.
func (s *Store) Due(ctx context.Context, have []string, limit int) (out []protocol.RunID, err error) {
	s.worker.having(have)
	if err := s.worker.join(ctx); err != nil { // who is dead is known to those that listen
		return nil, err
	}
	dead := byteas(s.worker.deadOnes())
	take := func(sql string) error {
		got, err := s.query(ctx, sql, texts(have), long(int64(min(limit, mostDue)-len(out))), long(handover.Microseconds()), long((leavesHome * s.o.Lease).Microseconds()), dead)
		for _, r := range got {
			out = append(out, protocol.RunID(r[0]))
		}
		return err
	}
	if err = take(takeFree); err == nil && len(out) < min(limit, mostDue) && s.orphans.due(s.o.Lease) {
		if err = take(takeOrphans); err == nil {
			_, err = s.query(ctx, freeEnded, dead, long(mostDue))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("runs that are due: %w", err)
	}
	return out, nil
}

// readOffers is for people, as what it compares are clocks that may be set.
const readOffers = `select array_to_string(has, ',') from wf.workers where has <> '{}' and at > statement_timestamp() - 2 * lease * interval '1 ms'`

// Offers is what each process has that asked for runs; see engine.Queue.
func (s *Store) Offers(ctx context.Context) (out [][]string, err error) {
	got, err := s.query(ctx, readOffers)
	if err != nil {
		return nil, fmt.Errorf("what workers have: %w", err)
	}
	for _, r := range got {
		out = append(out, strings.Split(string(r[0]), ","))
	}
	return out, nil
}

// Heads are looked at of runs alone that have not ended.
const countRuns = `select r.workflow, r.state, count(*), coalesce(min(h.ts), 0) from wf.runs r
	left join wf.heads h on r.state not in ('done', 'failed', 'cancelled') and h.name = 'run/' || r.run
	where r.parent is null and r.state <> '' group by r.workflow, r.state`

// CountRuns counts the runs of the store, by what was noted with their events.
func (s *Store) CountRuns(ctx context.Context) (out []cas.RunCount, err error) {
	got, err := s.query(ctx, countRuns)
	if err != nil {
		return nil, fmt.Errorf("count runs: %w", err)
	}
	for _, r := range got {
		out = append(out, cas.RunCount{Workflow: string(r[0]), State: protocol.RunStatus(r[1]), Runs: int(readLong(r[2])), Moved: readLong(r[3])})
	}
	return out, nil
}

// orphans says when runs of workers that are dead are looked for: as often as workers beat, since none dies faster.
type orphans struct {
	mu   sync.Mutex
	last time.Time
}

func (o *orphans) due(lease time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if time.Since(o.last) < lease/beatsPerLease {
		return false
	}
	o.last = time.Now()
	return true
}

// putOff has a run that is due be due later.
const putOff = `update wf.runs set due = (extract(epoch from statement_timestamp()) * 1000000)::bigint + $2
	where run = $1 and due is not null and due < (extract(epoch from statement_timestamp()) * 1000000)::bigint + $2`

// PutOff has a run that cannot be driven here be due later; see engine.Queue.
func (s *Store) PutOff(ctx context.Context, run protocol.RunID, seconds int) error {
	if _, err := s.query(ctx, putOff, text(string(run)), long(int64(seconds)*1_000_000)); err != nil {
		return fmt.Errorf("put off run %s: %w", run, err)
	}
	return nil
}

// makesDue reports whether a batch makes a run due at once that no process has claimed, or that is to be driven once more.
func (r *request) makesDue() bool {
	if r.fence != (cas.Fence{}) {
		return false
	}
	for _, x := range r.runs {
		if x.State == "" || x.Due == cas.DueNow {
			return true
		}
	}
	return false
}

// hint has AwaitDue return, now or when it is called next.
func (s *Store) hint() {
	select {
	case s.due <- struct{}{}:
	default: // it will already
	}
}

// AwaitDue returns when runs may be due; see engine.Queue.
func (s *Store) AwaitDue(ctx context.Context) error {
	s.bell.listens.Do(func() { s.bell.loop.Go(s.listen) })
	tick := time.NewTimer(s.o.Poll - s.o.Poll/8 + mathrand.N(s.o.Poll/4+1)) // processes that began together look at other times
	defer tick.Stop()
	select {
	case <-s.due:
	case <-tick.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.life.Done():
		return context.Cause(s.life)
	}
	return nil
}
