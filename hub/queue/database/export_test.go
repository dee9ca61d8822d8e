package database

import (
	"context"
	"testing"
	"time"

	"wf/hub/queue"
	"wf/hub/queue/line"
)

// OpenAt opens a queue whose clock is now, and which hears of other hubs only in its turns.
func OpenAt(ctx context.Context, dsn string, now func() time.Time) (*Store, error) {
	return Open(ctx, dsn, Options{now: now})
}

// Hang begins a turn of a hub that hangs then; write is what it does when it goes on.
func Hang(t testing.TB, s *Store) (write func() error, end func()) {
	turn, err := (&keeper{s: s}).Begin(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	job := line.Record{Entry: queue.Entry{Job: queue.Job{ID: "late", Workflow: "w"}, State: queue.Queued}, Number: 1 << 40}
	return func() error { return turn.Write(line.Change{Jobs: []line.Record{job}}) }, turn.End
}

// SweepUpTo removes what was gone at a version, and gives that of now, or the same where it failed.
func SweepUpTo(s *Store, version int64) int64 { return s.sweep(version) }

// Sweep removes what was gone when it is called.
func Sweep(s *Store) { s.sweep(s.sweep(0)) }
