package pgstore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"wf/cas"
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
	do(`begin; insert into wf.changes(by, names) values ('\x01', '{run/late}')`)
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
