package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"wf/cas"
	"wf/cas/castest"
	"wf/pgstore"
	"wf/pgstore/pgtest"
	"wf/protocol"
)

// The primary is killed in the middle of commits, and its synchronous standby is promoted: the same stores go on there by
// themselves. What was acknowledged is there, in order and once.
func TestPromotion(t *testing.T) {
	dice := chance(t)
	for i := range rounds(1) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			primary := started(pgtest.Start())(t)
			fresh(t, primary)
			standby := started(primary.Standby(t.Context(), nil))(t)
			dsn := pgtest.DSN("t1", primary, standby)
			// Two hosts with ports, of which the first is the one that becomes the primary.
			ports := fmt.Sprintf("postgres://wf@%s,%s/t1?sslmode=disable", proxy(t, standby).Addr(), proxy(t, primary).Addr())
			l := start(t, 6, open(t, dsn), open(t, ports))
			l.await(t, 30+dice.IntN(60))
			if err := primary.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := standby.Promote(t.Context()); err != nil {
				t.Fatal(err)
			}
			l.await(t, len(l.acks)+60)
			l.finish(t, standby.DSN("t1"))
		})
	}
}

// A COMMIT that is cut off while it waits for the standby lets its transaction succeed on the primary alone. It is not acknowledged
// before both have it: by the same standby, or by the one that was promoted, where it is stored anew.
func TestCommitCutOffBeforeTheStandbyHasIt(t *testing.T) {
	const waits = `from pg_stat_activity where wait_event = 'SyncRep'`
	for _, by := range []string{"pg_cancel_backend", "pg_terminate_backend"} {
		for _, promoted := range []bool{false, true} {
			t.Run(fmt.Sprint(by, " promoted ", promoted), func(t *testing.T) {
				ctx := t.Context()
				primary := started(pgtest.Start())(t)
				direct, wire := fresh(t, primary), proxy(t, primary)
				standby := started(primary.Standby(ctx, wire))(t)
				s := open(t, pgtest.DSN("t1", primary, standby))
				j := must(s.Journal(ctx, "r1"))(t)
				castest.Append(t, j, 3)
				before := ask(t, direct, moved)
				wire.HoldAnswers() // the standby hears nothing from here on
				done := make(chan error, 1)
				go func() {
					_, err := j.Append(ctx, castest.Now, draft, nil)
					done <- err
				}()
				awaitWaiting := func(besides int64) {
					t.Helper()
					for ask(t, direct, fmt.Sprintf(`select count(*) %s and pid <> %d`, waits, besides)) == 0 {
						select {
						case err := <-done:
							t.Fatalf("it was acknowledged, and the standby does not have it (%v)", err)
						default:
						}
					}
				}
				awaitWaiting(0)
				if n := ask(t, direct, moved); n != before {
					t.Errorf("it is seen before the standby has it: %d moves", n)
				}
				for range 2 { // the second is the one that settles it
					pid := ask(t, direct, `select pid `+waits)
					if n := ask(t, direct, fmt.Sprintf(`select %s(%d)::int`, by, pid)); n != 1 {
						t.Errorf("no backend was asked to end: %d", n)
					}
					awaitWaiting(pid)
					if n := ask(t, direct, moved); n != before+1 {
						t.Errorf("%d moves on the primary alone, want %d", n, before+1)
					}
				}
				if promoted {
					if err := primary.Kill(); err != nil {
						t.Fatal(err)
					}
					wire.Cut() // what the standby was not told is lost
					direct = standby.DSN("t1")
					if err := standby.Promote(ctx); err != nil {
						t.Fatal(err)
					}
				} else {
					wire.Release()
				}
				if err := <-done; err != nil {
					t.Error(err)
				}
				for _, dsn := range []string{direct, standby.DSN("t1")} {
					until(t, dsn, moved, before+1) // a standby shows it a little later than it has it
				}
				if got := castest.Append(t, j, 1); got[0].Seq != 5 {
					t.Errorf("then event %d, want 5", got[0].Seq)
				}
			})
		}
	}
}

// Where the primary is gone and the standby is not promoted, nothing is written to it, and nothing is read that it may lack.
func TestAStandbyIsNotUsed(t *testing.T) {
	ctx := t.Context()
	primary := started(pgtest.Start())(t)
	fresh(t, primary)
	standby := started(primary.Standby(ctx, nil))(t)
	if _, err := pgstore.Open(ctx, standby.DSN("t1"), pgstore.Options{}); err == nil {
		t.Error("a standby was opened")
	}
	r := must(pgstore.Check(ctx, standby.DSN("t1")))(t)
	if got := strings.Join(fatal(r), " "); got != "pg_is_in_recovery" {
		t.Errorf("findings about a standby: %s", got)
	}
	s := open(t, pgtest.DSN("t1", primary, standby))
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	if h, err := s.Head(ctx, "run/r1"); err == nil {
		t.Errorf("a standby was read: %+v", h)
	}
	b, left := cas.Raw([]byte("b")), make(chan error, 1)
	gone, cancel := context.WithCancel(ctx)
	go func() { left <- s.Commit(gone, cas.Batch{Blocks: []cas.Block{b}}) }()
	if err := standby.Promote(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-left; err != nil {
		t.Errorf("a commit that waited for the promotion: %v", err)
	}
	cancel()
}

// A primary that was left behind by a promotion still answers, and takes writes: it stands first in the address, and is passed over. While
// the new one is away nothing is read of the old one, and all goes on when it is back.
func TestAPrimaryThatWasLeftBehind(t *testing.T) {
	ctx := t.Context()
	old := started(pgtest.Start())(t)
	direct := fresh(t, old)
	standby := started(old.Standby(ctx, nil))(t)
	s := open(t, pgtest.DSN(nameOf(direct), old, standby))
	j := must(s.Journal(ctx, "r1"))(t)
	castest.Append(t, j, 3)
	if err := errors.Join(old.Kill(), standby.Promote(ctx)); err != nil {
		t.Fatal(err)
	}
	must(j.Append(ctx, castest.Now, draft, nil))(t)
	if err := errors.Join(old.Set("synchronous_standby_names=''"), old.Restart()); err != nil {
		t.Fatal(err)
	}
	breaks := func(srv *pgtest.Server) {
		t.Helper()
		if err := srv.Exec(ctx, srv.DSN("postgres"), fmt.Sprintf(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '%s'`, nameOf(direct))); err != nil {
			t.Fatal(err)
		}
	}
	breaks(standby)
	must(j.Append(ctx, castest.Now, draft, nil))(t)
	if h := must(s.Head(ctx, "run/r1"))(t); h.Seq != 5 {
		t.Errorf("the head is at %d, want 5", h.Seq)
	}
	if err := standby.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Head(ctx, "run/r1"); !errors.Is(err, protocol.ErrUnreachable) {
		t.Errorf("a read while the primary is away: %v", err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := j.Append(ctx, castest.Now, draft, nil)
		done <- err
	}()
	if err := standby.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := ask(t, old.DSN(nameOf(direct)), `select max(seq) from wf.reflog where head = (select id from wf.heads where name = 'run/r1')`); n != 3 {
		t.Errorf("the primary that was left behind has event %d, want 3", n)
	}
}

// The net parts the primary from its clients and from its standby, which is promoted. A store waits no longer for the primary than its address says,
// goes on at the standby, and stays there when the net is whole again and the former primary answers first.
func TestAPrimaryThatWasCutOff(t *testing.T) {
	ctx := t.Context()
	old := started(pgtest.Start())(t)
	direct, wire := fresh(t, old), proxy(t, old)
	standby := started(old.Standby(ctx, wire))(t)
	first, second := proxy(t, old), proxy(t, standby)
	s := open(t, fmt.Sprintf("postgres://wf@%s,%s/%s?sslmode=disable&connect_timeout=1", first.Addr(), second.Addr(), nameOf(direct)))
	j := must(s.Journal(ctx, "r1"))(t)
	castest.Append(t, j, 3)
	for _, p := range []*pgtest.Proxy{wire, first} {
		p.HoldAnswers()
		p.Cut()
	}
	done := make(chan error, 1)
	go func() {
		_, err := j.Append(ctx, castest.Now, draft, nil)
		done <- err
	}()
	if err := standby.Promote(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	wire.Release()
	first.Release()
	second.Cut()
	must(j.Append(ctx, castest.Now, draft, nil))(t)
	if h := must(s.Head(ctx, "run/r1"))(t); h.Seq != 5 {
		t.Errorf("the head is at %d, want 5", h.Seq)
	}
	if n := ask(t, standby.DSN(nameOf(direct)), `select max(seq) from wf.reflog where head = (select id from wf.heads where name = 'run/r1')`); n != 5 {
		t.Errorf("the new primary has event %d, want 5", n)
	}
}
