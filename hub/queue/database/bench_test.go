package database_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"wf/hub/queue"
	"wf/hub/queue/database"
	"wf/hub/queue/embedded"
	"wf/pgstore/pgtest"
)

// One job from its submission to its end, in a database and in a file.
func BenchmarkJob(b *testing.B) {
	of := map[string]func(b *testing.B) queue.Queue{
		"database": func(b *testing.B) queue.Queue {
			return open(b, must(pgtest.Shared(b).Database(b.Context()))(b), database.Options{}).Queue
		},
		"file": func(b *testing.B) queue.Queue {
			s := must(embedded.Open(filepath.Join(b.TempDir(), "hub.db")))(b)
			b.Cleanup(func() { _ = s.Close() })
			return s.Queue
		},
	}
	for _, name := range []string{"database", "file"} {
		b.Run(name, func(b *testing.B) {
			q, n := of[name](b), 0
			for b.Loop() {
				n++
				if _, _, err := q.Submit(b.Context(), queue.Job{ID: fmt.Sprint(n), Workflow: "w"}, sealed); err != nil {
					b.Fatal(err)
				}
				l := must(q.Lease(b.Context(), "x", nil, time.Minute))(b)
				if err := l.Done(b.Context(), "R"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
