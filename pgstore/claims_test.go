package pgstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"wf/cas/castest"
	"wf/pgstore"
	"wf/pgstore/pgtest"
	"wf/protocol"
)

// lease is that of tests in which claims are taken over: long enough for a machine with other things to do.
const lease = 1500 * time.Millisecond

// stoppable opens a store behind a proxy that can hold back all that it says.
func stoppable(t *testing.T, dsn string) castest.Stoppable {
	t.Helper()
	p := must(pgtest.NewProxy(server))(t)
	name, _, _ := strings.Cut(strings.TrimPrefix(dsn, "postgres://wf@/"), "?")
	s := must(pgstore.Open(t.Context(), p.DSN(name), pgstore.Options{Poll: 50 * time.Millisecond, Lease: lease}))(t)
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), p.Close()); err != nil {
			t.Error(err)
		}
	})
	return castest.Stoppable{Store: s, Stop: func() func() {
		p.HoldRequests()
		return p.Release
	}}
}

func TestTakeover(t *testing.T) {
	running(t)
	dsns := map[string]string{}
	castest.ExerciseTakeover(t, func(t *testing.T) castest.Stoppable {
		if dsns[t.Name()] == "" {
			dsns[t.Name()] = fresh(t, server)
		}
		return stoppable(t, dsns[t.Name()])
	})
}

// A process that was killed, as it leaves its row and its claim: another one takes over after it has listened for a lease.
func TestClaimOfAProcessThatWasKilled(t *testing.T) {
	dsn, ctx := fresh(t, running(t)), t.Context()
	if err := server.Exec(ctx, dsn, `insert into wf.workers values ('\x01', 7, now() - interval '1 day', 'elsewhere', 4711, 1, 1000);
		insert into wf.heads(name, token, worker) values ('run/r1', '\x02', '\x01'), ('run/r2', '\x02', '\x03')`); err != nil {
		t.Fatal(err)
	}
	s := must(pgstore.Open(ctx, dsn, pgstore.Options{Lease: lease}))(t)
	if err := s.Undriven(ctx, "r1"); !errors.Is(err, protocol.ErrRunLive) || !strings.Contains(err.Error(), "process 4711 on elsewhere") {
		t.Errorf("before it was listened to: %v", err)
	}
	begun := time.Now()
	for _, run := range []protocol.RunID{"r1", "r2"} { // the second is claimed by a process without a row
		c := must(s.Claim(ctx, run))(t)
		if run == "r1" && time.Since(begun) < lease {
			t.Errorf("it was taken over after %s", time.Since(begun))
		}
		if err := c.Release(ctx); err != nil {
			t.Error(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if n := ask(t, dsn, `select count(*) from wf.heads where worker is not null`); n != 0 {
		t.Errorf("%d claims are left", n)
	}
	if n := ask(t, dsn, `select count(*) from wf.workers`); n != 1 {
		t.Errorf("%d workers are left, want the one that was killed", n)
	}
}

// A process that lives keeps its claims, however far the clock of the database goes.
func TestNoClockTakesAClaim(t *testing.T) {
	dsn, ctx := fresh(t, running(t)), t.Context()
	s, other := stoppable(t, dsn), stoppable(t, dsn)
	claim := must(s.Claim(ctx, "r1"))(t)
	if err := server.Exec(ctx, dsn, `create function old() returns trigger language plpgsql as $$ begin new.at = '2000-01-01'; return new; end $$;
		create trigger old before update on wf.workers for each row execute function old(); update wf.workers set beat = beat`); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Claim(ctx, "r1"); !errors.Is(err, protocol.ErrRunLive) {
		t.Errorf("a worker whose beats move is taken for dead: %v", err)
	}
	if err := claim.Release(ctx); err != nil {
		t.Error(err)
	}
}

// While the database was away no beat could move: that is held against nobody.
func TestOutageKillsNoWorker(t *testing.T) {
	srv := started(pgtest.Start())(t)
	dsn, ctx := fresh(t, srv), t.Context()
	told := make(chan error, 10)
	s := must(pgstore.Open(ctx, dsn, pgstore.Options{Lease: lease, Outage: func(err error) { told <- err }}))(t)
	other := must(pgstore.Open(ctx, dsn, pgstore.Options{Lease: lease}))(t)
	claim, idle := must(s.Claim(ctx, "r1"))(t), must(other.Claim(ctx, "r2"))(t)
	acting, end, err := claim.Acting(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	if err := srv.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-told; !errors.Is(err, protocol.ErrUnreachable) || !strings.Contains(err.Error(), pgstore.Redact(dsn)) {
		t.Errorf("told of the outage: %v", err)
	}
	<-acting.Done()
	if _, err := s.Claim(ctx, "r3"); !errors.Is(err, protocol.ErrUnreachable) {
		t.Errorf("a claim of a database that is away: %v", err)
	}
	if err := srv.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := <-told; err != nil {
		t.Errorf("told of its end: %v", err)
	}
	if _, end, err := claim.Acting(ctx); err != nil {
		t.Errorf("the claim is lost: %v", err)
	} else {
		end()
	}
	if _, err := other.Claim(ctx, "r1"); !errors.Is(err, protocol.ErrRunLive) && !errors.Is(err, protocol.ErrUnreachable) {
		t.Errorf("it was taken over: %v", err)
	}
	j := must(s.Journal(ctx, "r1"))(t)
	j.Under(claim.Fence())
	castest.Append(t, j, 2)
	if err := errors.Join(claim.Release(ctx), idle.Release(ctx), s.Close(), other.Close()); err != nil {
		t.Error(err)
	}
	if len(told) > 0 {
		t.Errorf("and then: %v", <-told)
	}
}

// A store that needs a later program is not written any more, from the next beat on.
func TestBeatSeesTheStoreOfALaterProgram(t *testing.T) {
	dsn, ctx := fresh(t, running(t)), t.Context()
	s := stoppable(t, dsn)
	claim := must(s.Claim(ctx, "r1"))(t)
	j := must(s.Journal(ctx, "r1"))(t)
	j.Under(claim.Fence())
	castest.Append(t, j, 2)
	if err := server.Exec(ctx, dsn, `update wf.meta set min_writer = 99`); err != nil {
		t.Fatal(err)
	}
	var err error
	for err == nil {
		_, err = j.Append(ctx, castest.Now, draft, nil)
	}
	if !errors.Is(err, protocol.ErrNewerStore) {
		t.Errorf("a commit: %v", err)
	}
	if _, err := s.Claim(ctx, "r2"); !errors.Is(err, protocol.ErrNewerStore) {
		t.Errorf("a claim: %v", err)
	}
}

// What is no run is claimed by its name.
func TestClaimName(t *testing.T) {
	dsn, ctx := fresh(t, running(t)), t.Context()
	s, other := open(t, dsn), open(t, dsn)
	claim := must(s.ClaimName(ctx, "sink/s"))(t)
	if _, err := other.ClaimName(ctx, "sink/s"); !errors.Is(err, protocol.ErrRunLive) || !strings.Contains(err.Error(), "sink/s is held by process") {
		t.Errorf("a second one: %v", err)
	}
	if err := claim.Release(ctx); err != nil {
		t.Error(err)
	}
	if err := must(other.ClaimName(ctx, "sink/s"))(t).Release(ctx); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "run/r1", "\x00", "\xff"} {
		if _, err := s.ClaimName(ctx, bad); !errors.Is(err, protocol.ErrUsage) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if hs := must(s.Heads(ctx, ""))(t); len(hs) > 0 {
		t.Errorf("claims are heads: %+v", hs)
	}
}

// A worker that comes to life while its claim is being taken over keeps it.
func TestABeatThatRacesWithATakeover(t *testing.T) {
	dsn, ctx := fresh(t, running(t)), t.Context()
	if err := server.Exec(ctx, dsn, `insert into wf.workers values ('\x01', 7, now() - interval '1 day', 'elsewhere', 4711, 1, 1000);
		insert into wf.heads(name, token, worker) values ('run/r1', '\x02', '\x01')`); err != nil {
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
	s := stoppable(t, dsn)
	do(`begin; update wf.workers set beat = 8 where id = '\x01'`) // which nobody sees yet
	claimed := make(chan error, 1)
	go func() {
		_, err := s.Claim(ctx, "r1")
		claimed <- err
	}()
	until(t, dsn, `select count(*) from pg_locks where not granted`, 1)
	do(`commit`)
	if err := <-claimed; !errors.Is(err, protocol.ErrRunLive) {
		t.Errorf("it was taken over: %v", err)
	}
	if n := ask(t, dsn, `select count(*) from wf.heads where worker = '\x01' and token = '\x02'`); n != 1 {
		t.Error("the claim is another one now")
	}
}
