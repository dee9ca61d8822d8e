package embedded

import (
	"context"
	"fmt"
	"time"

	"wf/hub/queue"
	"wf/protocol"
)

// A lease is a queue.Lease.
type lease struct {
	q     *Queue
	entry queue.Entry
	lost  <-chan struct{}
}

func (l *lease) Entry() queue.Entry { return l.entry }

func (l *lease) Lost() <-chan struct{} { return l.lost }

func (l *lease) Extend(ctx context.Context) error {
	return l.move(ctx, "extend", func(j *job, now time.Time) { j.Until = now.Add(j.TTL) })
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
	q := l.q
	q.mu.Lock()
	defer q.mu.Unlock()
	err := q.ready(ctx)
	j, known := q.byID[l.entry.ID]
	if err == nil && (!known || j.State != queue.Leased || j.Epoch != l.entry.Epoch) {
		err = queue.ErrLeaseLost
	}
	if err == nil {
		next := *j
		change(&next, time.Now())
		err = q.replace(j, &next)
	}
	if err != nil {
		return fmt.Errorf("%s job %s: %w", what, l.entry.ID, err)
	}
	return nil
}
