package line

import (
	"context"
	"fmt"
	"sync"
	"time"

	"wf/hub/queue"
	"wf/protocol"
)

// A lease is a queue.Lease.
type lease struct {
	q     *Queue
	entry queue.Entry
	ttl   time.Duration
	lost  <-chan struct{}

	mu    sync.Mutex
	until time.Time
}

func (l *lease) Entry() queue.Entry { return l.entry }

func (l *lease) Lost() <-chan struct{} { return l.lost }

func (l *lease) Until() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until
}

func (l *lease) Extend(ctx context.Context) error {
	asked := time.Now() // the Keeper's time of the turn is later
	err := l.move(ctx, "extend", func(j *job, now time.Time) { j.Until = now.Add(j.TTL) })
	if err == nil {
		l.mu.Lock()
		l.until = asked.Add(l.ttl)
		l.mu.Unlock()
	}
	return err
}

func (l *lease) Done(ctx context.Context, run protocol.RunID) error {
	return l.move(ctx, "finish", func(j *job, now time.Time) {
		j.State, j.Since, j.Run, j.Why, j.Keys = queue.Done, now, run, "", nil
	})
}

func (l *lease) Retry(ctx context.Context, delay time.Duration, why string) error {
	return l.move(ctx, "put back", func(j *job, now time.Time) { j.putBack(now, delay, why) })
}

func (l *lease) Dead(ctx context.Context, why string) error {
	return l.move(ctx, "bury", func(j *job, now time.Time) {
		j.State, j.Since, j.Why = queue.Dead, now, queue.Code(why)
	})
}

// move changes the job, if the lease still holds.
func (l *lease) move(ctx context.Context, what string, change func(*job, time.Time)) error {
	err := l.q.turn(ctx, true, func(t Turn) error {
		j, known := l.q.byID[l.entry.ID]
		if !known || j.State != queue.Leased || j.Epoch != l.entry.Epoch {
			return queue.ErrLeaseLost
		}
		next := *j
		change(&next, t.Now())
		return l.q.replace(t, j, &next)
	})
	if err != nil {
		return fmt.Errorf("%s job %s: %w", what, l.entry.ID, err)
	}
	return nil
}
