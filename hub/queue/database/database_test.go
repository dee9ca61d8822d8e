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
	of := map[string]string{} // databases by the directories of the suite
	queuetest.Exercise(t, func(t *testing.T, dir string) queuetest.Backend {
		if of[dir] == "" {
			of[dir] = must(server.Database(t.Context()))(t)
		}
		s := must(database.OpenAt(t.Context(), of[dir], time.Now))(t)
		return queuetest.Backend{Queue: s.Queue, Registry: s.Registry, Pointers: s.Pointers, Close: s.Close}
	})
}
