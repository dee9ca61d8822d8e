package pgstore_test

import (
	"errors"
	"testing"

	"wf/cas"
	"wf/cas/castest"
	"wf/pgstore"
	"wf/pgstore/pgtest"
	"wf/protocol"
)

// moveMemory moves a head that is no journal from one block to another; 0 is none.
func moveMemory(t *testing.T, s *pgstore.Store, name string, old, to int) error {
	b := cas.Batch{Blocks: []cas.Block{value(to)}, Moves: []cas.Move{{Name: "memory/" + name, New: value(to).Link}}}
	if old > 0 {
		b.Moves[0].Old = value(old).Link
	}
	return s.Commit(t.Context(), b)
}

// The database is put back to an older copy, and goes on from there: its counters, of events, moves and transactions, come to the same
// values again. A store that was told of more notices it, and writes and reads nothing.
func TestRestoreWithCountersThatRepeat(t *testing.T) {
	srv, ctx := started(pgtest.Start())(t), t.Context()
	dsn := fresh(t, srv)
	told, early, silent := open(t, dsn), open(t, dsn), open(t, dsn)
	j := must(told.Journal(ctx, "r1"))(t)
	castest.Append(t, j, 3)
	if err := moveMemory(t, early, "a", 0, 1); err != nil {
		t.Fatal(err)
	}
	if err := srv.Backup(); err != nil {
		t.Fatal(err)
	}
	must(j.Append(ctx, castest.Now, draft, nil))(t)
	if err := srv.Restore(); err != nil {
		t.Fatal(err)
	}
	// Another one goes on: event 4 is another one now, and the counters are past where they were.
	s := open(t, dsn)
	other := must(s.Journal(ctx, "r1"))(t)
	castest.Append(t, other, 12)

	// The connection breaks under this one, so it learns besides that its outcome was open.
	if _, err := j.Append(ctx, castest.Now, draft, nil); !errors.Is(err, protocol.ErrRolledBack) {
		t.Errorf("the first commit of a store that was told of more: %v", err)
	}
	for what, err := range map[string]error{
		"a commit": moveMemory(t, told, "b", 0, 1),
		"a head":   func() error { _, err := told.Head(ctx, "run/r1"); return err }(),
		"events":   func() error { _, err := castest.Events(ctx, told, "r1", 0); return err }(),
		"changes":  func() error { _, err := told.Changes(ctx); return err }(),
	} {
		if !errors.Is(err, protocol.ErrRolledBack) || errors.Is(err, protocol.ErrUnreachable) {
			t.Errorf("%s of a store that was told of more: %v", what, err)
		}
	}
	if h := must(s.Head(ctx, "memory/b"))(t); h.Link.Defined() {
		t.Error("it was written")
	}
	// Those that were told of nothing that is missing go on.
	if err := moveMemory(t, early, "a", 1, 2); err != nil {
		t.Error(err)
	}
	if err := moveMemory(t, silent, "c", 0, 1); err != nil {
		t.Error(err)
	}
	if h := must(silent.Head(ctx, "run/r1"))(t); h.Seq != 15 {
		t.Errorf("the head is at %d, want 15", h.Seq)
	}
}

// A commit whose outcome is open when the database is put back: it is not stored again, and its caller is told both.
func TestRestoreWhileACommitIsUnclear(t *testing.T) {
	srv, ctx := started(pgtest.Start())(t), t.Context()
	direct := fresh(t, srv)
	p := proxy(t, srv)
	s := open(t, p.DSN(nameOf(direct)))
	if err := srv.Backup(); err != nil {
		t.Fatal(err)
	}
	j := must(s.Journal(ctx, "r1"))(t)
	castest.Append(t, j, 3)
	before := ask(t, direct, moved)
	p.HoldAnswers()
	done := make(chan error, 1)
	go func() {
		_, err := j.Append(ctx, castest.Now, draft, nil)
		done <- err
	}()
	until(t, direct, moved, before+1)
	p.Cut()
	if err := srv.Restore(); err != nil {
		t.Fatal(err)
	}
	p.Release()
	if err := <-done; !errors.Is(err, protocol.ErrRolledBack) || !errors.Is(err, protocol.ErrUnreachable) {
		t.Errorf("its outcome: %v", err)
	}
	if n := ask(t, direct, moved); n != 0 {
		t.Errorf("%d moves were stored", n)
	}
}
