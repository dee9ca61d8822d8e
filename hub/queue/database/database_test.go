package database_test

import (
	"os"
	"testing"
	"time"

	"wf/hub/queue/database"
	"wf/hub/queue/queuetest"
	"wf/pgstore/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Tests{M: m}.Run()) }

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestInADatabase(t *testing.T) {
	server := pgtest.Shared(t)
	dsn := must(server.Database(t.Context()))(t)
	last := "" // directory of the suite, each of which is another queue
	queuetest.Exercise(t, func(t *testing.T, dir string) queuetest.Backend {
		if last != dir {
			if err := server.Exec(t.Context(), dsn, "set client_min_messages = warning; drop schema if exists wfhub cascade"); err != nil {
				t.Fatal(err)
			}
			last = dir
		}
		s := must(database.OpenAt(t.Context(), dsn, time.Now))(t)
		return queuetest.Backend{Queue: s.Queue, Registry: s.Registry, Pointers: s.Pointers, Close: s.Close}
	})
}
