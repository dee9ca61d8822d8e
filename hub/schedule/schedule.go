// Package schedule starts what is due by the clock: the workflows with on: {schedule: …}.
//
//	jobs ─► newest firing that is due ─► Start ─► wait for the next, or for a minute
//	          ▲ known since (Seen)
//
// # Words
//
//	job      a workflow with its cron expression and zone
//	firing   a minute at which a job is due; its request id names it for ever
//	since    when a job was first seen: what was due before was not missed
//
// # Promised
//
// A firing is started once: its request id is made from the workflow and the minute, and a
// service starts each request id once. So a restart, or a second daemon of the same store, does
// no harm. Of the firings that passed while no daemon ran, or while the machine slept, only the
// newest is started.
//
// # Not promised
//
// That one run of a workflow has ended before the next begins.
package schedule

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"time"

	"wf/protocol"
)

// Job is something that is due again and again.
type Job struct {
	Workflow string // name, for people
	File     string // path: with the name it tells jobs apart
	Schedule protocol.Schedule
}

// Firing is a job at a minute it is due.
type Firing struct {
	Job Job
	Due time.Time
	// RequestID is the same for the same workflow and minute, on every machine and in every
	// process: schedule/NAME/…/2026-01-05T09:00:00Z.
	RequestID string
}

// firing names a firing. The schedule is no part of the name: where an old and a new one agree
// about a minute, it is still one.
func firing(j Job, due time.Time) Firing {
	return Firing{j, due, "schedule/" + j.Workflow + "/" + short(j.File) + "/" + due.UTC().Format(time.RFC3339)}
}

// key names a job with its schedule: a new schedule begins anew.
func (j Job) key() string {
	return j.Workflow + "/" + short(j.File+"\x00"+j.Schedule.Cron+"\x00"+j.Schedule.Timezone)
}

func short(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:5])
}

// Runner starts firings until its context ends. The fields are set before Run.
type Runner struct {
	// Jobs lists what there is to start; it is asked before every wait, so that changed files
	// are seen.
	Jobs func(context.Context) ([]Job, error)
	// Start starts a firing; one that was started before is no error. After an error it is
	// tried again, as long as no newer one is due.
	Start func(context.Context, Firing) error
	// Seen remembers since when jobs are known, over restarts.
	Seen *Seen
	Log  *slog.Logger

	fired map[string]time.Time // by key: the newest firing that needs no start any more
	told  map[string]string    // by key: the error that was logged last
}

// look is how often jobs are listed anew while none is due.
const look = time.Minute

// Run starts firings until ctx ends, and returns why it ended.
func (r *Runner) Run(ctx context.Context) error {
	r.fired, r.told = map[string]time.Time{}, map[string]string{}
	for {
		wait := time.NewTimer(r.round(ctx))
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return context.Cause(ctx)
		}
	}
}

// round starts what is due and tells how long to wait.
func (r *Runner) round(ctx context.Context) time.Duration {
	jobs, err := r.Jobs(ctx)
	if err != nil {
		r.tell("", err)
		return look
	}
	r.tell("", nil)
	now := time.Now()
	wait := look
	for _, j := range jobs {
		next, err := r.serve(ctx, j, now)
		r.tell(j.key(), err)
		if err == nil && !next.IsZero() {
			wait = min(wait, max(0, next.Sub(now)))
		}
	}
	return wait
}

// serve starts the newest firing of a job that is due and was not started, and gives the next.
func (r *Runner) serve(ctx context.Context, j Job, now time.Time) (next time.Time, err error) {
	cron, err := protocol.ParseCron(j.Schedule.Cron)
	if err != nil {
		return next, err
	}
	zone, err := time.LoadLocation(j.Schedule.Timezone)
	if err != nil {
		return next, err
	}
	key := j.key()
	from, ok := r.fired[key]
	if !ok {
		if from, err = r.Seen.Since(key, now); err != nil {
			return next, err
		}
	}
	var due time.Time
	for next = cron.Next(from.In(zone)); !next.IsZero() && !next.After(now); next = cron.Next(next) {
		due = next
	}
	if !due.IsZero() {
		f := firing(j, due)
		if err := r.Start(ctx, f); err != nil {
			return next, err
		}
		r.Log.Info("started by schedule", "workflow", j.Workflow, "due", due.UTC().Format(time.RFC3339), "request_id", f.RequestID)
		from = due
	}
	r.fired[key] = from
	return next, nil
}

// tell logs what went wrong, once for as long as it stays the same.
func (r *Runner) tell(key string, err error) {
	if err == nil {
		delete(r.told, key)
		return
	}
	if errors.Is(err, context.Canceled) || r.told[key] == err.Error() {
		return
	}
	r.told[key] = err.Error()
	r.Log.Error("the schedule was not served; it is tried again", "job", key, "why", err)
}
