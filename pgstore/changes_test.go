package pgstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"wf/cas"
	"wf/pgstore"
	"wf/pgstore/pgtest"
	"wf/protocol"
)

// A transaction that began before another one, and ended after it, is heard of too.
func TestAChangeThatBecomesVisibleLate(t *testing.T) {
	dsn, ctx := fresh(t, running(t)), t.Context()
	s, other := open(t, dsn), open(t, dsn)
	late := must(pgconn.Connect(ctx, dsn))(t)
	defer late.Close(context.WithoutCancel(ctx))
	do := func(sql string) {
		t.Helper()
		if _, err := late.Exec(ctx, sql).ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	n := must(s.Changes(ctx))(t)
	await := func() {
		t.Helper()
		n = must(s.AwaitChange(ctx, n))(t)
	}
	do(`begin; insert into wf.changes(by) values ('\x01')`)
	b := cas.Raw([]byte("b"))
	if err := other.Commit(ctx, cas.Batch{Blocks: []cas.Block{b}, Moves: []cas.Move{{Name: "memory/a", New: b.Link}}}); err != nil {
		t.Fatal(err)
	}
	await()
	do(`commit`)
	await()
	if err := s.Commit(ctx, cas.Batch{Blocks: []cas.Block{b}, Moves: []cas.Move{{Name: "memory/a", Old: b.Link, New: b.Link}}}); err != nil {
		t.Fatal(err)
	}
	await() // its own
	gone, cancel := context.WithCancelCause(ctx)
	why := errors.New("enough")
	cancel(why)
	if _, err := s.AwaitChange(gone, n); !errors.Is(err, why) {
		t.Errorf("a wait that was ended: %v", err)
	}
}

// One that is not stored wakes nobody elsewhere.
func TestARefusedBatchIsNoChange(t *testing.T) {
	dsn, ctx := fresh(t, running(t)), t.Context()
	s := open(t, dsn)
	b := cas.Raw([]byte("b"))
	if err := s.Commit(ctx, cas.Batch{Blocks: []cas.Block{b}, Moves: []cas.Move{{Name: "memory/a", Old: b.Link, New: b.Link}}}); !errors.Is(err, protocol.ErrHeadMoved) {
		t.Fatal(err)
	}
	if err := s.Commit(ctx, cas.Batch{Blocks: []cas.Block{b}}); err != nil {
		t.Fatal(err)
	}
	if n := ask(t, dsn, `select count(*) from wf.changes`); n != 0 {
		t.Errorf("%d changes", n)
	}
}

// A server that crashed gives the numbers of transactions out again that left nothing behind: a follower took them for ended, and hears
// of those that have them now.
func TestAChangeUnderANumberThatWasGivenOutBefore(t *testing.T) {
	srv, ctx := started(pgtest.Start("wal_writer_delay='10s'", "autovacuum=off"))(t), t.Context()
	dsn := fresh(t, srv)
	s := must(pgstore.Open(ctx, dsn, pgstore.Options{Poll: 1}))(t) // each look asks the database
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	next := func() int64 { return ask(t, dsn, `select pg_snapshot_xmax(pg_current_snapshot())::text`) }
	burn := `begin; select pg_current_xact_id(); rollback;`
	var n uint64
	var seen, again int64
	for tries := 0; again >= seen; tries++ { // a server that happened to write down how far it was gives out others
		if tries == 20 {
			t.Fatalf("the numbers before %d were not given out again: from %d", seen, again)
		}
		// In a new file, since a page of the log that is full is written at once.
		if err := errors.Join(srv.Exec(ctx, dsn, `select pg_switch_wal()`), srv.Exec(ctx, dsn, strings.Repeat(burn, 50))); err != nil {
			t.Fatal(err)
		}
		n, seen = must(s.Changes(ctx))(t), next()
		if err := errors.Join(srv.Kill(), srv.Restart()); err != nil {
			t.Fatal(err)
		}
		again = next()
	}
	b := cas.Raw([]byte("b"))
	if err := open(t, dsn).Commit(ctx, cas.Batch{Blocks: []cas.Block{b}, Moves: []cas.Move{{Name: "memory/a", New: b.Link}}}); err != nil {
		t.Fatal(err)
	}
	if after := next(); after > seen {
		t.Fatalf("the commit has no number before %d: the next one is %d", seen, after)
	}
	if err := srv.Exec(ctx, dsn, strings.Repeat(burn, 100)); err != nil {
		t.Fatal(err)
	}
	if got := must(s.Changes(ctx))(t); got == n {
		t.Error("the commit was not heard of")
	}
}

// On another timeline, or in another cluster, what was seen of the numbers of transactions says nothing: all counts as changed. A role
// without rights of its own may ask for that.
func TestAnotherHistoryIsAChange(t *testing.T) {
	dsn, ctx := fresh(t, running(t)), t.Context()
	s := open(t, dsn)
	n := must(s.Changes(ctx))(t)
	s.Elsewhere()
	if after := must(s.AwaitChange(ctx, n))(t); after <= n {
		t.Errorf("the counter went from %d to %d", n, after)
	}
	if err := server.Exec(ctx, dsn, `create role follows; set role follows; select pg_walfile_name(pg_current_wal_lsn()), system_identifier from pg_control_system()`); err != nil {
		t.Error(err)
	}
}
