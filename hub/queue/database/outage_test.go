package database_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"wf/hub/queue"
	"wf/hub/queue/database"
	"wf/pgstore/pgtest"
	"wf/protocol"
)

// A database that is lost and comes back is told of once each. What is asked meanwhile fails with a code that says so, and then all goes on.
func TestTheDatabaseIsLost(t *testing.T) {
	server := pgtest.Own(t)
	dsn := must(server.Database(t.Context()))(t)
	told := make(chan error, 100)
	s := open(t, dsn, database.Options{Poll: 50 * time.Millisecond, Outage: func(err error) { told <- err }})
	submit(t, s, "1")
	held := lease(t, s, "1", time.Hour)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	wants(t, <-told, protocol.ErrUnreachable)
	_, _, err := s.Queue.Submit(t.Context(), queue.Job{ID: "2", Workflow: "w"}, sealed)
	wants(t, err, protocol.ErrUnreachable)
	wants(t, held.Extend(t.Context()), protocol.ErrUnreachable)
	_, err = s.Registry.List(t.Context())
	wants(t, err, protocol.ErrUnreachable)
	_, err = s.Pointers.Get(t.Context(), "R")
	wants(t, err, protocol.ErrUnreachable)
	select {
	case <-held.Lost():
		t.Error("the lease was lost with the database")
	default:
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := <-told; err != nil {
		t.Errorf("told of %v, want that it is back", err)
	}
	submit(t, s, "2")
	if err := held.Done(t.Context(), "R1"); err != nil {
		t.Error(err)
	}
	if e := must(s.Queue.Find(t.Context(), "1"))(t); e.State != queue.Done {
		t.Errorf("have %+v", e)
	}
	if len(told) > 0 {
		t.Errorf("told of it again: %v", <-told)
	}
}

// The connection is cut while a COMMIT is under way: whether it was done is not known, and the hub finds out.
func TestACommitThatIsNotAnswered(t *testing.T) {
	server := pgtest.Shared(t)
	dsn := must(server.Database(t.Context()))(t)
	wire := must(pgtest.NewProxy(server))(t)
	t.Cleanup(func() {
		if err := wire.Close(); err != nil {
			t.Error(err)
		}
	})
	name := must(server.Ask(t.Context(), dsn, "select current_database()"))(t)[0]
	s := must(database.OpenAt(t.Context(), wire.DSN(name), time.Now))(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	submit(t, s, "1")
	gate := must(pgconn.Connect(t.Context(), dsn))(t)
	defer gate.Close(context.Background())
	do := func(sql string) {
		t.Helper()
		if err := gate.Exec(t.Context(), sql).Close(); err != nil {
			t.Fatal(err)
		}
	}
	do(`create function wfhub.wait() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(1); return null; end $$;
		create constraint trigger wait after insert or update on wfhub.jobs deferrable initially deferred for each row execute function wfhub.wait()`)
	unclear := func(write func() error) {
		t.Helper()
		do("select pg_advisory_lock(1)")
		ended := make(chan error, 1)
		go func() { ended <- write() }()
		for must(server.Ask(t.Context(), dsn, "select count(*) from pg_locks where locktype = 'advisory' and not granted"))(t)[0] == "0" {
			runtime.Gosched() // until COMMIT waits
		}
		wire.HoldAnswers()
		do("select pg_advisory_unlock(1)")
		wire.AwaitHeld()
		wire.Cut()
		wire.Release()
		if err := <-ended; !errors.Is(err, protocol.ErrUnreachable) {
			t.Fatalf("have error %v", err)
		}
	}
	unclear(func() error {
		_, _, err := s.Queue.Submit(t.Context(), queue.Job{ID: "2", Workflow: "w"}, sealed)
		return err
	})
	unclear(func() error {
		_, err := s.Queue.Lease(t.Context(), "x", nil, 300*time.Millisecond)
		return err
	})
	if _, fresh, err := s.Queue.Submit(t.Context(), queue.Job{ID: "2", Workflow: "w"}, sealed); err != nil || fresh {
		t.Errorf("submitted again: fresh %v, %v; it was stored", fresh, err)
	}
	if e := must(s.Queue.Find(t.Context(), "1"))(t); e.Attempts != 1 {
		t.Errorf("have %+v, want that it was leased", e)
	}
	lease(t, s, "2", time.Minute)
	lease(t, s, "1", time.Minute) // when the other lease has lapsed
}
