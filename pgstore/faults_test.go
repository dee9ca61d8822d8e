package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"wf/cas"
	"wf/cas/castest"
	"wf/pgstore"
	"wf/pgstore/pgtest"
	"wf/protocol"
)

// proxy lies before a server until the test has ended.
func proxy(t *testing.T, s *pgtest.Server) *pgtest.Proxy {
	t.Helper()
	p := must(pgtest.NewProxy(s))(t)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// proxied is a store that is reached through a proxy, and its address without one.
func proxied(t *testing.T) (p *pgtest.Proxy, s *pgstore.Store, direct string) {
	t.Helper()
	direct = fresh(t, running(t))
	p = proxy(t, server)
	return p, open(t, p.DSN(nameOf(direct))), direct
}

var draft = []cas.Draft{{Step: "a#1", Data: protocol.ResumedBy{By: "someone"}}}

// until waits for a number in the database.
func until(t *testing.T, dsn, sql string, want int64) {
	t.Helper()
	for ask(t, dsn, sql) != want {
		if t.Context().Err() != nil {
			t.Fatal("it never came")
		}
	}
}

const moved = `select count(*) from wf.reflog where head = (select id from wf.heads where name = 'run/r1')`

// The commit is done, and the answer is lost: the same bytes are sent again, and it is stored once.
func TestCommitWhoseAnswerIsLost(t *testing.T) {
	p, s, direct := proxied(t)
	j := must(s.Journal(t.Context(), "r1"))(t)
	castest.Append(t, j, 3)
	before := ask(t, direct, moved)
	p.HoldAnswers()
	done := make(chan error, 1)
	go func() {
		_, err := j.Append(t.Context(), castest.Now, draft, nil)
		done <- err
	}()
	until(t, direct, moved, before+1)
	p.Cut()
	p.Release()
	if err := <-done; err != nil {
		t.Fatalf("it is stored, and the error is %v", err)
	}
	if n := ask(t, direct, moved); n != before+1 {
		t.Errorf("%d moves, want %d", n, before+1)
	}
	if got := castest.Append(t, j, 1); got[0].Seq != 5 {
		t.Errorf("then event %d, want 5", got[0].Seq)
	}
}

// As above, and another process goes on before the outcome is known: what was stored is in the chain.
func TestCommitThatWasOvertakenWhileUnclear(t *testing.T) {
	p, s, direct := proxied(t)
	other, ctx := open(t, direct), t.Context()
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
	castest.Append(t, must(other.Journal(ctx, "r1"))(t), 2)
	p.Cut()
	p.Release()
	if err := <-done; err != nil {
		t.Fatalf("it is in the chain, and the error is %v", err)
	}
	if got := must(castest.Events(ctx, s, "r1", 0))(t); len(got) != 6 {
		t.Errorf("%d events, want 6", len(got))
	}
}

// A head of no journal that was moved, moved back, and moved again by others: the reflog tells which move was whose.
func TestUnclearMoveOfAHeadThatCameBack(t *testing.T) {
	p, s, direct := proxied(t)
	other, ctx := open(t, direct), t.Context()
	a, b := cas.Raw([]byte("a")), cas.Raw([]byte("b"))
	move := func(s *pgstore.Store, ts int64, old, to protocol.Link) error {
		return s.Commit(ctx, cas.Batch{Blocks: []cas.Block{a, b}, Moves: []cas.Move{{Name: "group/g", Old: old, New: to, TS: ts}}})
	}
	if err := move(s, 1, protocol.Link{}, a.Link); err != nil {
		t.Fatal(err)
	}
	p.HoldAnswers()
	done := make(chan error, 1)
	go func() { done <- move(s, 2, a.Link, b.Link) }()
	until(t, direct, `select count(*) from wf.reflog where head = (select id from wf.heads where name = 'group/g')`, 2)
	if err := move(other, 3, b.Link, a.Link); err != nil {
		t.Fatal(err)
	}
	p.Cut()
	p.Release()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if h := must(s.Head(ctx, "group/g"))(t); h.Link != a.Link {
		t.Error("the move was made twice")
	}
}

// The request is held on its way, the client gives the connection up and sends it again; what was held comes later, and
// changes nothing.
func TestCommitThatLandsAfterItWasSettled(t *testing.T) {
	for _, overtaken := range []bool{false, true} {
		t.Run(fmt.Sprint("overtaken ", overtaken), func(t *testing.T) {
			p, s, direct := proxied(t)
			other, ctx := open(t, direct), t.Context()
			j := must(s.Journal(ctx, "r1"))(t)
			castest.Append(t, j, 3)
			if overtaken {
				castest.Append(t, must(other.Journal(ctx, "r1"))(t), 1)
			}
			before := ask(t, direct, moved)
			p.HoldRequests()
			done := make(chan error, 1)
			go func() {
				_, err := j.Append(ctx, castest.Now, draft, nil)
				done <- err
			}()
			p.AwaitHeld()
			p.Cut()
			p.Release() // the held request and the one that is sent again race
			err := <-done
			want := before + 1
			if overtaken {
				want = before
			}
			if overtaken != errors.Is(err, protocol.ErrHeadMoved) || err != nil && !overtaken {
				t.Errorf("error: %v", err)
			}
			if n := ask(t, direct, moved); n != want {
				t.Errorf("%d moves, want %d", n, want)
			}
		})
	}
}

// While the database is away a caller may leave: a batch that was never sent is not stored later, and the outcome of one that was is said to be
// unknown.
func TestLeavingALostDatabase(t *testing.T) {
	srv := started(pgtest.Start())(t)
	dsn := fresh(t, srv)
	s := must(pgstore.Open(t.Context(), dsn, pgstore.Options{}))(t)
	b := cas.Raw([]byte("never sent"))
	if err := srv.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Head(t.Context(), "memory/a"); !errors.Is(err, protocol.ErrUnreachable) {
		t.Errorf("a read: %v", err)
	}
	commit := func(ctx context.Context) error {
		return s.Commit(ctx, cas.Batch{Blocks: []cas.Block{b}, Moves: []cas.Move{{Name: "memory/a", New: b.Link}}})
	}
	// The first batch finds the connection broken, which leaves open whether it arrived.
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := commit(ctx); !errors.Is(err, protocol.ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a batch that was sent: %v", err)
	}
	// The next one waits behind it, and is not sent.
	ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := commit(ctx); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, protocol.ErrUnreachable) {
		t.Errorf("a batch that was not sent: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := srv.Restart(); err != nil {
		t.Fatal(err)
	}
	if hs := must(open(t, dsn).Heads(t.Context(), ""))(t); len(hs) > 0 {
		t.Errorf("heads: %+v", hs)
	}
}

// The primary is killed in the middle of commits, and connections are cut: what was acknowledged is there, in order and once.
func TestKilledPrimary(t *testing.T) {
	srv, dice := started(pgtest.Start())(t), chance(t)
	dsn := fresh(t, srv)
	l := start(t, 8, open(t, dsn), open(t, dsn))
	for range rounds(8) {
		l.await(t, 1+dice.IntN(60))
		if err := srv.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := srv.Restart(); err != nil {
			t.Fatal(err)
		}
		l.await(t, 1+dice.IntN(30))
		if err := srv.Exec(t.Context(), srv.DSN("postgres"), `select pg_terminate_backend(pid) from pg_stat_activity where datname <> 'postgres'`); err != nil {
			t.Fatal(err)
		}
	}
	l.await(t, 20)
	l.finish(t, dsn)
}

// Another program locks rows in another order: the group that is ended for that is sent again.
func TestDeadlock(t *testing.T) {
	dsn, ctx := fresh(t, running(t)), t.Context()
	s := open(t, dsn)
	b := cas.Raw([]byte("b"))
	commit := func(old protocol.Link) error {
		return s.Commit(ctx, cas.Batch{Blocks: []cas.Block{b}, Moves: []cas.Move{{Name: "memory/a", Old: old, New: b.Link}, {Name: "memory/b", Old: old, New: b.Link}}})
	}
	if err := commit(protocol.Link{}); err != nil {
		t.Fatal(err)
	}
	rival := must(pgconn.Connect(ctx, dsn))(t)
	defer rival.Close(context.WithoutCancel(ctx))
	do := func(sql string) {
		t.Helper()
		if _, err := rival.Exec(ctx, sql).ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	do(`set deadlock_timeout = '1h'; begin; select from wf.heads where name = 'memory/b' for update`)
	done := make(chan error, 1)
	go func() { done <- commit(b.Link) }()
	until(t, dsn, `select count(*) from pg_locks where not granted`, 1)
	do(`select from wf.heads where name = 'memory/a' for update; rollback`)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := ask(t, dsn, `select count(*) from wf.reflog`); n != 4 {
		t.Errorf("%d moves, want 4", n)
	}
}
