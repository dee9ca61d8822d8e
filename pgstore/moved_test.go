package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"

	"wf/cas"
	"wf/pgstore"
	"wf/pgstore/pgtest"
)

// What moved is named once, by whichever process, also by a transaction that became visible late; a look at a store that has not
// moved names nothing.
func TestMovedHeadsAreNamed(t *testing.T) {
	dsn, ctx := fresh(t, running(t)), t.Context()
	s, other := open(t, dsn), open(t, dsn)
	moved := s.Moved()
	look := func(want ...string) {
		t.Helper()
		names, known, err := moved(ctx)
		slices.Sort(names)
		if d := cmp.Diff(want, names); err != nil || !known || d != "" {
			t.Errorf("known: %v, %v\n%s", known, err, d)
		}
	}
	b := cas.Raw([]byte("b"))
	move := func(s *pgstore.Store, names ...string) {
		t.Helper()
		batch := cas.Batch{Blocks: []cas.Block{b}}
		for _, name := range names {
			batch.Moves = append(batch.Moves, cas.Move{Name: name, New: b.Link})
		}
		if err := s.Commit(ctx, batch); err != nil {
			t.Fatal(err)
		}
	}
	move(s, "memory/before")
	if names, known, err := moved(ctx); known || len(names) > 0 || err != nil {
		t.Errorf("the first look knows %q, %v, %v", names, known, err)
	}
	look()
	move(s, "memory/a", "memory/b")
	move(other, "memory/c")
	look("memory/a", "memory/b", "memory/c")
	look()

	late := must(pgconn.Connect(ctx, dsn))(t)
	defer late.Close(context.WithoutCancel(ctx))
	do := func(sql string) {
		t.Helper()
		if _, err := late.Exec(ctx, sql).ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	do(`begin; insert into wf.heads(name) values ('run/late');
		insert into wf.changes(by, heads) select '\x01', int4send(id) from wf.heads where name = 'run/late'`)
	move(other, "memory/d")
	look("memory/d")
	do(`commit`)
	look("run/late")
}

// What a look that failed could not name is named by the next one.
func TestMovedHeadsAreNamedAfterALookThatFailed(t *testing.T) {
	dsn, ctx := fresh(t, running(t)), t.Context()
	s := open(t, dsn)
	moved := s.Moved()
	if _, _, err := moved(ctx); err != nil {
		t.Fatal(err)
	}
	if err := moveMemory(t, s, "a", 0, 1); err != nil {
		t.Fatal(err)
	}
	gate := must(pgconn.Connect(ctx, dsn))(t)
	defer gate.Close(context.WithoutCancel(ctx))
	if err := gate.Exec(ctx, `begin; lock table wf.heads in access exclusive mode`).Close(); err != nil {
		t.Fatal(err)
	}
	looking, stop := context.WithCancel(ctx)
	failed := make(chan error, 1)
	go func() {
		_, _, err := moved(looking)
		failed <- err
	}()
	until(t, dsn, `select count(*) from pg_locks where relation = 'wf.heads'::regclass and not granted`, 1)
	stop()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Fatalf("a look that was cancelled: %v", err)
	}
	if err := gate.Exec(ctx, `rollback`).Close(); err != nil {
		t.Fatal(err)
	}
	if names, known, err := moved(ctx); err != nil || !known || !slices.Equal(names, []string{"memory/a"}) {
		t.Errorf("the next look names %q, known: %v, %v", names, known, err)
	}
}

// A server that was started anew may have given numbers of transactions out again.
func TestWhatMovedIsUnknownAfterARestart(t *testing.T) {
	srv, ctx := started(pgtest.Start())(t), t.Context()
	s := must(pgstore.Open(ctx, fresh(t, srv), pgstore.Options{}))(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	moved := s.Moved()
	for _, want := range []bool{false, true, true} {
		if _, known, err := moved(ctx); err != nil || known != want {
			t.Errorf("known: %v, %v", known, err)
		}
	}
	if err := errors.Join(srv.Kill(), srv.Restart()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{false, true} {
		if _, known, err := moved(ctx); err != nil || known != want {
			t.Errorf("after the restart, known: %v, %v", known, err)
		}
	}
}

// Below, at and beyond what one look names.
func TestWhatMovedIsUnknownWhereItIsTooMuch(t *testing.T) {
	srv := running(t)
	dsn, ctx := fresh(t, srv), t.Context()
	s := open(t, dsn)
	moved := s.Moved()
	if _, _, err := moved(ctx); err != nil {
		t.Fatal(err)
	}
	b := cas.Raw([]byte("b"))
	for i, n := range []int{pgstore.MostMoved - 1, pgstore.MostMoved, pgstore.MostMoved + 1, 1} {
		batch := cas.Batch{Blocks: []cas.Block{b}}
		for j := range n {
			batch.Moves = append(batch.Moves, cas.Move{Name: fmt.Sprintf("memory/%d-%d", i, j), New: b.Link})
		}
		if err := s.Commit(ctx, batch); err != nil {
			t.Fatal(err)
		}
		names, known, err := moved(ctx)
		if want := n <= pgstore.MostMoved; err != nil || known != want || want && len(names) != n {
			t.Errorf("%d: %d names, known: %v, %v", n, len(names), known, err)
		}
	}
}
