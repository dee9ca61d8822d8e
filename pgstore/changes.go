package pgstore

import (
	"context"
	mathrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Each group leaves a row in wf.changes under the number of its transaction. Numbers are given out at the beginning of
// transactions and become visible at their end, so "greater than the last one seen" would miss those that ended late: a poll
// asks for what its own snapshot shows and that of the poll before did not. A server that crashed, or was put back to an earlier state,
// gives numbers out again that the poll before took for those of ended transactions, and in another database or another history of it
// they mean nothing: so a change is also that a connection was lost, or that the last column differs, which names when the server started, the
// cluster and its timeline.
const readChanges = `select pg_current_snapshot()::text,
	pg_snapshot_xmax(pg_current_snapshot()) < pg_snapshot_xmax($1::pg_snapshot) or exists(select 1 from wf.changes
		where x >= pg_snapshot_xmin($1::pg_snapshot) and not pg_visible_in_snapshot(x, $1::pg_snapshot) and by <> $2),
	` + ofHistory

const ofHistory = `pg_postmaster_start_time()::text || ' ' || (select system_identifier::text from pg_control_system()) || ' ' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)`

// Rows of wf.changes are kept for an hour. A follower that did not look for half of it takes for granted that something changed.
const (
	// Of many processes one removes them at a time.
	dropChanges = `with one as materialized (select pg_try_advisory_xact_lock(2003203687, 1) as ours)
	delete from wf.changes using one where ours and at < (extract(epoch from statement_timestamp()) / 60)::int - 60`
	changesKnown = 30 * time.Minute
	dropEvery    = 10 * time.Minute
)

// follower counts changes for those who wait for them in this process. One of them asks the database at a time.
type follower struct {
	turn chan struct{} // of the one that polls

	snapshot string // of the last poll; held by turn, as are the next two
	history  string // in which that was
	dropped  time.Time

	lost atomic.Bool // a connection was, since the last poll

	mu    sync.Mutex
	polls time.Time // the last one
	count uint64
	ch    chan struct{} // closed when count grows
}

// signal wakes those who wait.
func (f *follower) signal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count++
	close(f.ch)
	f.ch = make(chan struct{})
}

// now is the count, the signal of the next one, and when the database was last asked.
func (f *follower) now() (count uint64, next <-chan struct{}, polled time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count, f.ch, f.polls
}

// Changes is a counter that grows with every commit, of any process: of others it does so when they are looked for,
// after Options.Poll.
func (s *Store) Changes(ctx context.Context) (uint64, error) {
	f := &s.follows
	fresh := func() bool {
		_, _, polled := f.now()
		return !polled.IsZero() && time.Since(polled) < s.o.Poll
	}
	if !fresh() {
		select {
		case f.turn <- struct{}{}:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
		defer func() { <-f.turn }()
		if !fresh() { // nobody polled while this one queued
			if err := s.poll(ctx); err != nil {
				return 0, err
			}
		}
	}
	n, _, _ := f.now()
	return n, nil
}

// poll asks the database for changes; the caller has the turn.
func (s *Store) poll(ctx context.Context) error {
	f := &s.follows
	_, _, last := f.now()
	asked := time.Now()
	since := f.snapshot
	if since == "" {
		since = "1:1:"
	}
	got, err := s.query(ctx, readChanges, text(since), bytea(s.by))
	if err != nil {
		return err
	}
	if asked.Sub(f.dropped) > dropEvery {
		if _, err := s.query(ctx, dropChanges); err != nil {
			return err
		}
		f.dropped = asked
	}
	changed := len(got[0][1]) == 1 && got[0][1][0] == 1 || asked.Sub(last) > changesKnown
	changed = f.lost.Swap(false) || changed
	first := f.snapshot == ""
	changed = changed || f.history != string(got[0][2])
	f.snapshot, f.history = string(got[0][0]), string(got[0][2])
	f.mu.Lock()
	f.polls = asked
	f.mu.Unlock()
	if changed && !first {
		f.signal()
	}
	return nil
}

// AwaitChange returns the counter as soon as it is not since; see protocol.Feed.
func (s *Store) AwaitChange(ctx context.Context, since uint64) (uint64, error) {
	for {
		_, next, _ := s.follows.now()
		n, err := s.Changes(ctx)
		if err != nil || n != since {
			return n, err
		}
		tick := time.NewTimer(s.o.Poll + mathrand.N(s.o.Poll/8+1))
		select {
		case <-next:
		case <-tick.C:
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-s.life.Done():
			err = context.Cause(s.life)
		}
		tick.Stop()
		if err != nil {
			return n, err
		}
	}
}
