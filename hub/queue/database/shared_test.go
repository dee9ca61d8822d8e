package database_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"wf/hub/queue"
	"wf/hub/queue/database"
	"wf/pgstore/pgtest"
	"wf/protocol"
)

var sealed = queue.Sealed{Box: []byte("box"), Keys: []queue.Key{{Worker: "x", To: "k", Sealed: []byte("key")}}}

// open opens the queue of a database as another hub does.
func open(t testing.TB, dsn string, o database.Options) *database.Store {
	t.Helper()
	s := must(database.Open(t.Context(), dsn, o))(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// two are two hubs over one new database.
func two(t testing.TB) (a, b *database.Store, dsn string) {
	t.Helper()
	dsn = must(pgtest.Shared(t).Database(t.Context()))(t)
	return open(t, dsn, database.Options{}), open(t, dsn, database.Options{}), dsn
}

func submit(t testing.TB, s *database.Store, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if _, _, err := s.Queue.Submit(t.Context(), queue.Job{ID: id, Workflow: "w"}, sealed); err != nil {
			t.Fatal(err)
		}
	}
}

func lease(t testing.TB, s *database.Store, id string, ttl time.Duration) queue.Lease {
	t.Helper()
	l := must(s.Queue.Lease(t.Context(), "x", nil, ttl))(t)
	if l.Entry().ID != id {
		t.Fatalf("leased %s, want %s", l.Entry().ID, id)
	}
	return l
}

func wants(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("have error %v, want %v", err, want)
	}
}

// Workers of two hubs take jobs that both hubs were given: each job is leased once.
func TestTwoHubsLeaseEachJobOnce(t *testing.T) {
	a, b, _ := two(t)
	const jobs, workers = 60, 4
	hubs := []*database.Store{a, b}
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	had, epochs := map[string]int{}, map[uint64]bool{}
	var all, submitting sync.WaitGroup
	for i, s := range hubs {
		submitting.Go(func() {
			for n := range jobs / 2 {
				if _, _, err := s.Queue.Submit(ctx, queue.Job{ID: fmt.Sprint("job", i, "-", n), Workflow: "w"}, sealed); err != nil {
					t.Error(err)
				}
			}
		})
		for w := range workers {
			all.Go(func() {
				for {
					l, err := s.Queue.Lease(ctx, fmt.Sprint("worker", i, w), nil, time.Minute)
					if err != nil {
						return
					}
					mu.Lock()
					had[l.Entry().ID]++
					if epochs[l.Entry().Epoch] {
						t.Errorf("two leases have the epoch %d", l.Entry().Epoch)
					}
					epochs[l.Entry().Epoch] = true
					mu.Unlock()
					if err := l.Done(t.Context(), "R"); err != nil {
						t.Error(err)
					}
					mu.Lock()
					if len(had) == jobs {
						cancel()
					}
					mu.Unlock()
				}
			})
		}
	}
	submitting.Wait()
	all.Wait()
	cancel()
	if len(had) != jobs {
		t.Errorf("%d jobs were leased, of %d", len(had), jobs)
	}
	for id, n := range had {
		if n != 1 {
			t.Errorf("%s was leased %d times", id, n)
		}
	}
}

// What one hub does the other one sees at once, and one that waits hears of it.
func TestAHubSeesWhatAnotherOneDoes(t *testing.T) {
	a, b, dsn := two(t)
	if !slices.Equal(a.DigestKey, b.DigestKey) || len(a.DigestKey) < 32 {
		t.Error("two hubs make different digests")
	}
	submit(t, a, "1", "2", "3", "4")
	if list := must(b.Queue.List(t.Context()))(t); len(list) != 4 || list[0].ID != "1" || list[0].Keys[0].Worker != "x" {
		t.Errorf("listed %+v", list)
	}
	if box := must(b.Queue.Box(t.Context(), "1"))(t); string(box) != "box" {
		t.Errorf("the box is %q", box)
	}
	first := lease(t, a, "1", time.Minute)
	second := lease(t, b, "2", time.Minute)
	if second.Entry().Epoch <= first.Entry().Epoch {
		t.Errorf("epoch %d after %d", second.Entry().Epoch, first.Entry().Epoch)
	}
	got := make(chan queue.Entry, 1)
	go func() {
		e, err := b.Queue.Await(t.Context(), "1")
		if err != nil {
			t.Error(err)
		}
		got <- e
	}()
	if err := first.Done(t.Context(), "R1"); err != nil {
		t.Fatal(err)
	}
	if e := <-got; e.Run != "R1" {
		t.Errorf("awaited %+v", e)
	}
	if err := a.Queue.Settle(t.Context(), queue.Job{ID: "2", Workflow: "w"}, "y", "R2"); err != nil {
		t.Fatal(err)
	}
	<-second.Lost()
	wants(t, second.Done(t.Context(), "R"), queue.ErrLeaseLost)
	if _, err := b.Queue.Cancel(t.Context(), "3"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Queue.Purge(t.Context(), "4"); err != nil {
		t.Fatal(err)
	}
	if e := must(a.Queue.Find(t.Context(), "3"))(t); e.State != queue.Dead || e.Why != queue.WhyCancelled {
		t.Errorf("have %+v", e)
	}
	_, err := a.Queue.Find(t.Context(), "4")
	wants(t, err, queue.ErrUnknownJob)
	submit(t, a, "4") // its id is free again
	if e := must(b.Queue.Find(t.Context(), "4"))(t); e.State != queue.Queued {
		t.Errorf("have %+v", e)
	}
	if boxes := must(pgtest.Shared(t).Ask(t.Context(), dsn, "select count(*) from wfhub.boxes"))(t); boxes[0] != "1" {
		t.Errorf("%s boxes are kept, want that of the job that waits", boxes[0])
	}
}

// The lease of a hub that is gone lapses by the clock of the server, and another hub gives the job.
func TestALeaseOfAHubThatIsGoneLapses(t *testing.T) {
	a, b, _ := two(t)
	submit(t, a, "1")
	l := lease(t, a, "1", 300*time.Millisecond) // never extended
	before := time.Now()
	if l.Until().After(before.Add(300 * time.Millisecond)) {
		t.Error("the lease is said to last longer than it was given for")
	}
	again := lease(t, b, "1", time.Minute) // waits
	if !time.Now().After(l.Until()) {
		t.Errorf("leased again %s before the first lease had ended", time.Until(l.Until()))
	}
	if e := again.Entry(); e.Attempts != 2 || e.Epoch <= l.Entry().Epoch {
		t.Errorf("have %+v after epoch %d", e, l.Entry().Epoch)
	}
	<-l.Lost()
	wants(t, l.Extend(t.Context()), queue.ErrLeaseLost)
	if err := again.Extend(t.Context()); err != nil {
		t.Error(err)
	}
}

// A hub that hangs while it has the row of meta is cut off, and has changed nothing.
func TestAHubThatHangsInItsTurn(t *testing.T) {
	a, b, _ := two(t)
	submit(t, a, "1")
	write, end := database.Hang(t, a)
	defer end()
	submit(t, b, "2") // waits until the server has ended the session
	if err := write(); !errors.Is(err, protocol.ErrUnreachable) {
		t.Errorf("have error %v, want that of a session that was ended", err)
	}
	if list := must(b.Queue.List(t.Context()))(t); len(list) != 2 {
		t.Errorf("listed %+v", list)
	}
}

// A worker lives as long as it is connected to any hub.
func TestAWorkerOfTwoHubs(t *testing.T) {
	a, b, dsn := two(t)
	for _, s := range []*database.Store{a, b} {
		if _, err := s.Registry.Announce(t.Context(), queue.Worker{ID: "1", Name: "ada", Instance: "i"}, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	of := func(s *database.Store) queue.Worker { return must(s.Registry.List(t.Context()))(t)[0] }
	if w := of(a); !w.Live || !w.Elsewhere || w.Instance != "i" {
		t.Errorf("have %+v", w)
	}
	if err := b.Registry.Withdraw(t.Context(), "1"); err != nil {
		t.Fatal(err)
	}
	if w := of(a); !w.Live || w.Elsewhere {
		t.Errorf("have %+v", w)
	}
	if w := of(b); !w.Live || !w.Elsewhere {
		t.Errorf("have %+v", w)
	}
	wants(t, b.Registry.Forget(t.Context(), "1"), queue.ErrWorkerLive)
	if err := b.Registry.Drain(t.Context(), "1", true); err != nil {
		t.Fatal(err)
	}
	if w := of(a); !w.Draining {
		t.Errorf("have %+v", w)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if w := of(b); w.Live {
		t.Errorf("have %+v, and its hub is closed", w)
	}
	announce := func(id string) {
		t.Helper()
		if _, err := b.Registry.Announce(t.Context(), queue.Worker{ID: id, Name: id}, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	announce("2")
	announce("3")
	const week = "8 * 24 * 3600 * 1000000::bigint"
	if err := pgtest.Shared(t).Exec(t.Context(), dsn, "update wfhub.workers set seen = seen - "+week+" where id < '3'; update wfhub.links set until = until - "+week+" where worker = '2'"); err != nil {
		t.Fatal(err)
	}
	database.Sweep(b)
	if left := must(pgtest.Shared(t).Ask(t.Context(), dsn, "select id from wfhub.workers union all select worker from wfhub.links"))(t); !slices.Equal(left, []string{"3", "3"}) {
		t.Errorf("kept %v, want the worker of today", left)
	}
}

// A hub that was away for longer than rows of purged jobs are kept reads all jobs, and so does one whose database was put back.
func TestAHubThatMissedChanges(t *testing.T) {
	dsn := must(pgtest.Shared(t).Database(t.Context()))(t)
	a, b := open(t, dsn, database.Options{}), must(database.OpenAt(t.Context(), dsn, time.Now))(t)
	defer b.Close()
	submit(t, a, "1", "2")
	if list := must(b.Queue.List(t.Context()))(t); len(list) != 2 {
		t.Fatalf("listed %+v", list)
	}
	if _, err := a.Queue.Purge(t.Context(), "1"); err != nil {
		t.Fatal(err)
	}
	database.Sweep(a)
	if rows := must(pgtest.Shared(t).Ask(t.Context(), dsn, "select count(*) from wfhub.jobs"))(t); rows[0] != "1" {
		t.Fatalf("%s rows are left", rows[0])
	}
	if list := must(b.Queue.List(t.Context()))(t); len(list) != 1 || list[0].ID != "2" {
		t.Errorf("listed %+v", list)
	}
	if err := pgtest.Shared(t).Exec(t.Context(), dsn, "delete from wfhub.jobs; update wfhub.meta set version = 1"); err != nil {
		t.Fatal(err)
	}
	if list := must(b.Queue.List(t.Context()))(t); len(list) != 0 {
		t.Errorf("listed %+v", list)
	}
}

// What is no place for a queue is one clear error, and nothing is made.
func TestADatabaseThatIsNotFit(t *testing.T) {
	server := pgtest.Shared(t)
	dsn := must(server.Database(t.Context()))(t)
	if err := server.Exec(t.Context(), dsn, `do $$ begin create role guest login; exception when duplicate_object then end $$; do $$ begin create role owner login; exception when duplicate_object then end $$`); err != nil {
		t.Fatal(err)
	}
	as := func(role string) string { return strings.Replace(dsn, "wf@", role+"@", 1) }
	refused := func(dsn string, kind error, want ...string) {
		t.Helper()
		s, err := database.Open(t.Context(), dsn, database.Options{})
		if err == nil {
			t.Fatal("it was opened", s.Close())
		}
		text := err.Error() + "\n" + protocol.HintOf(err)
		for _, w := range want {
			if !errors.Is(err, kind) || !strings.Contains(text, w) || strings.Contains(text, "hunter2") {
				t.Errorf("%v with the hint %q, want %v with %q", err, protocol.HintOf(err), kind, w)
			}
		}
	}
	refused("postgres://wf:hunter2@localhost/x", protocol.ErrStore, "holds a password", "PGPASSFILE")
	refused("postgres://wf@db.example/x", protocol.ErrStore, "beyond this machine", "sslmode=verify-full")
	refused("postgres://wf@127.0.0.1:1/x", protocol.ErrUnreachable, "postgres://wf@127.0.0.1:1/x")
	refused(as("guest"), protocol.ErrReadOnly, "may not make the tables", "create schema wfhub authorization ROLE")
	if got := must(server.Ask(t.Context(), dsn, "select count(*) from pg_namespace where nspname = 'wfhub'"))(t); got[0] != "0" {
		t.Error("something was made")
	}
	if err := server.Exec(t.Context(), dsn, "create schema wfhub authorization owner"); err != nil {
		t.Fatal(err)
	}
	refused(as("guest"), protocol.ErrReadOnly, "grant usage on schema wfhub")
	submit(t, open(t, as("owner"), database.Options{}), "1")
	refused(as("guest"), protocol.ErrReadOnly, "grant usage on schema wfhub")
	if err := server.Exec(t.Context(), dsn, "grant usage on schema wfhub to guest; grant select, insert, update, delete on all tables in schema wfhub to guest"); err != nil {
		t.Fatal(err)
	}
	submit(t, open(t, as("guest"), database.Options{}), "2")
	if err := server.Exec(t.Context(), dsn, "update wfhub.meta set layout = 2"); err != nil {
		t.Fatal(err)
	}
	refused(dsn, protocol.ErrNewerStore, "layout 2")
	if err := server.Exec(t.Context(), dsn, "alter role guest set synchronous_commit = off"); err != nil {
		t.Fatal(err)
	}
	refused(as("guest"), protocol.ErrStore, "synchronous_commit")
	if err := server.Exec(t.Context(), dsn, "alter role guest reset synchronous_commit"); err != nil {
		t.Fatal(err)
	}
}

// Two hubs that start at once over an empty database make one queue.
func TestTwoHubsMakeOneQueue(t *testing.T) {
	dsn := must(pgtest.Shared(t).Database(t.Context()))(t)
	var all sync.WaitGroup
	var keys [6]string
	for i := range keys {
		all.Go(func() {
			s, err := database.Open(t.Context(), dsn, database.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			keys[i] = string(s.DigestKey)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, k := range keys {
		if k != keys[0] {
			t.Error("they made different ones")
		}
	}
}

// Rows of jobs that are gone are removed while another hub puts one of these jobs anew: neither waits for what the other one holds.
func TestAJobThatComesBackWhileItsRowIsRemoved(t *testing.T) {
	a, b, dsn := two(t)
	srv := pgtest.Shared(t)
	submit(t, a, "late", "gone")
	for _, id := range []string{"late", "gone"} {
		must(a.Queue.Purge(t.Context(), id))(t)
	}
	purged := database.SweepUpTo(a, 0)
	write, end := database.Hang(t, b) // it has the row of meta, and puts the job "late"
	defer end()
	swept := make(chan int64, 1)
	go func() { swept <- database.SweepUpTo(a, purged) }()
	for { // until it waits
		if n := must(srv.Ask(t.Context(), dsn, `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`))(t); n[0] != "0" {
			break
		}
	}
	if err := write(); err != nil {
		t.Errorf("the job is put: %v", err)
	}
	if version := <-swept; version != purged+1 {
		t.Errorf("removed at version %d, want %d", version, purged+1)
	}
	if got := must(srv.Ask(t.Context(), dsn, `select j.id || ' ' || (j.job is not null) || ' ' || (m.swept = `+fmt.Sprint(purged)+`) from wfhub.jobs j, wfhub.meta m`))(t); !slices.Equal(got, []string{"late true true"}) {
		t.Errorf("rows of jobs: %q", got)
	}
	if err := a.Queue.Sync(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := a.Queue.Find(t.Context(), "late"); err != nil {
		t.Error(err)
	}
}
