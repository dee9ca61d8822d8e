// Package schedule starts what is due by the clock: the workflows with on: {schedule: …}.
//
//	jobs ─► due since (Seen) ─► catch up ─► overlap ─► Start ─► wait for the next, or for a minute
//
// # Words
//
//	job      a workflow with its schedule
//	firing   a minute at which a job is due; its request id names it for ever
//	until    up to when the firings of a job are dealt with: started, or left out
//
// # Promised
//
// A firing is started once: its request id is made from the workflow and the minute, and a
// service starts each request id once. So a restart, or a second daemon of the same store, does
// no harm. Nor does a clock that is put back, by up to a day: what was dealt with is not due again. Put back by
// more, the clock was wrong before, and firings are due from then on; those that were started are not started again.
//
// # Not promised
//
// That firings that were left out stay so where the file of Seen is lost.
package schedule

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"wf/protocol"
)

// Job is something that is due again and again.
type Job struct {
	Workflow string // name, for people
	File     string // its path
	Place    string // with the name it tells jobs apart: see protocol.Firings
	Schedule protocol.Schedule
}

// Firing is a job at a minute it is due.
type Firing struct {
	Job Job
	Due time.Time
	// RequestID is protocol.Firing: schedule/NAME/…/2026-01-05T09:00:00Z.
	RequestID string
}

func firing(j Job, due time.Time) Firing {
	return Firing{j, due, protocol.Firing(j.Workflow, j.Place, due)}
}

// id names a job whatever its schedule.
func (j Job) id() string { return j.Workflow + "/" + short(j.Place) }

// key names a job with its schedule: a new schedule begins anew.
func (j Job) key() string {
	return j.Workflow + "/" + short(j.Place+"\x00"+j.Schedule.Cron+"\x00"+j.Schedule.Timezone)
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
	// Start starts a firing, and gives its run; one that was started before is no error, and fresh is
	// false. After an error it is tried again, as long as it is due.
	Start func(context.Context, Firing) (run protocol.RunID, fresh bool, err error)
	// Open reports whether a run has not ended.
	Open func(context.Context, protocol.RunID) (bool, error)
	// Seen remembers what was dealt with, over restarts.
	Seen *Seen
	Log  *slog.Logger
	Now  func() time.Time // default time.Now

	until  map[string]time.Time // by key: up to when firings are dealt with
	queued map[string]time.Time // by key: the newest firing that waits for a run to end
	told   map[string]string    // by key: the error that was logged last

	waits atomic.Bool // a firing waits for a run to end
	once  sync.Once
	woken chan struct{}
}

const (
	look = time.Minute     // jobs are listed anew so often while none is due
	late = 2 * time.Minute // a firing that is later was missed
)

// Run starts firings until ctx ends, and returns why it ended.
func (r *Runner) Run(ctx context.Context) error {
	r.until, r.queued, r.told = map[string]time.Time{}, map[string]time.Time{}, map[string]string{}
	for {
		select {
		case <-time.After(r.round(ctx)):
		case <-r.wakes():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Wake has a firing that waits for a run looked at again: one has ended.
func (r *Runner) Wake() {
	if r.waits.Load() {
		select {
		case r.wakes() <- struct{}{}:
		default:
		}
	}
}

func (r *Runner) wakes() chan struct{} {
	r.once.Do(func() { r.woken = make(chan struct{}, 1) })
	return r.woken
}

// round starts what is due and tells how long to wait.
func (r *Runner) round(ctx context.Context) time.Duration {
	jobs, err := r.Jobs(ctx)
	if err != nil {
		r.tell("", err)
		return look
	}
	r.tell("", nil)
	now := r.now()
	wait := look
	for _, j := range jobs {
		next, err := r.serve(ctx, j, now)
		r.tell(j.key(), err)
		if err == nil && !next.IsZero() {
			wait = min(wait, max(0, next.Sub(now)))
		}
	}
	r.waits.Store(len(r.queued) > 0)
	return wait
}

func (r *Runner) now() time.Time {
	if r.Now != nil {
		return r.Now()
	}
	return time.Now()
}

// serve deals with the firings of a job that are due, and gives the next.
func (r *Runner) serve(ctx context.Context, j Job, now time.Time) (next time.Time, err error) {
	key := j.key()
	from, ok := r.until[key]
	if !ok || from.Sub(now) > putBack {
		if from, err = r.Seen.Until(key, now); err != nil {
			return next, err
		}
		r.until[key] = from
	}
	if next, err = j.Schedule.Next(latest(from, now)); err != nil {
		return next, err
	}
	due, err := j.due(from, now)
	if err != nil || len(due) == 0 {
		return next, err
	}
	if from, err = r.Seen.Until(key, now); err != nil { // another process may have dealt with them
		return next, err
	}
	r.until[key] = from
	due = slices.DeleteFunc(due, func(t time.Time) bool { return !t.After(from) })
	wanted := r.wanted(j, due, now)
	if n := len(due) - len(wanted); n > 0 && j.Schedule.Overlap != protocol.OverlapQueue {
		r.Log.Info("firings that were missed are left out", "workflow", j.Workflow, "firings", n, "catch_up", j.Schedule.CatchUp)
	}
	for _, t := range wanted {
		waits, err := r.fire(ctx, firing(j, t))
		if err != nil || waits {
			return next, err
		}
	}
	delete(r.queued, key)
	if len(due) > len(wanted) && len(wanted) == 0 {
		return next, r.dealt(firing(j, due[len(due)-1]), "")
	}
	return next, nil
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// due are the newest firings of a job after from that are due, the oldest first: no more than are caught up with.
func (j Job) due(from, now time.Time) ([]time.Time, error) {
	all, err := j.Schedule.Firings(from, now)
	if err != nil {
		return nil, err
	}
	var out []time.Time
	for t := range all {
		if out = append(out, t); len(out) > 2*protocol.MaxCatchUp {
			out = append(out[:0], out[len(out)-protocol.MaxCatchUp:]...)
		}
	}
	return out[max(0, len(out)-protocol.MaxCatchUp):], nil
}

// wanted are those of the due firings that the job wants caught up with.
func (r *Runner) wanted(j Job, due []time.Time, now time.Time) []time.Time {
	if len(due) == 0 || j.Schedule.CatchUp == protocol.CatchUpAll {
		return due
	}
	newest := due[len(due)-1]
	if j.Schedule.CatchUp == protocol.CatchUpNone && now.Sub(newest) > late && !newest.Equal(r.queued[j.key()]) {
		return nil
	}
	return due[len(due)-1:]
}

// fire starts a firing, or leaves it out; waits is true for one that does so, until a run has ended.
func (r *Runner) fire(ctx context.Context, f Firing) (waits bool, err error) {
	log := r.Log.With("workflow", f.Job.Workflow, "due", f.Due.UTC().Format(time.RFC3339))
	if f.Job.Schedule.Overlap != "" {
		open, err := r.openRun(ctx, f.Job)
		switch {
		case err != nil:
			return false, err
		case open == "":
		case f.Job.Schedule.Overlap == protocol.OverlapQueue:
			key := f.Job.key()
			if !f.Due.Equal(r.queued[key]) {
				log.Info("the firing waits until a run has ended", "run", open)
			}
			r.queued[key] = f.Due
			return true, nil
		default:
			log.Warn("the firing is left out: a run of the schedule has not ended", "run", open)
			return false, r.dealt(f, "")
		}
	}
	run, fresh, err := r.Start(ctx, f)
	if err != nil {
		return false, err
	}
	if fresh {
		log.Info("started by schedule", "run", run, "request_id", f.RequestID)
	}
	return false, r.dealt(f, run)
}

// dealt notes that a firing and those before it are dealt with; run is what it started, "" for none.
func (r *Runner) dealt(f Firing, run protocol.RunID) error {
	key := f.Job.key()
	x := Dealt{Key: key, Job: f.Job.id(), Due: f.Due}
	if f.Job.Schedule.Overlap != "" {
		x.Run = run
	}
	if err := r.Seen.Dealt(x); err != nil {
		return err
	}
	r.until[key] = f.Due
	return nil
}

// openRun is a run of a job that has not ended, "" where there is none.
func (r *Runner) openRun(ctx context.Context, j Job) (protocol.RunID, error) {
	runs, err := r.Seen.Runs(j.id())
	if err != nil {
		return "", err
	}
	var over []protocol.RunID
	for _, run := range runs {
		open, err := r.Open(ctx, run)
		if err != nil {
			return "", err
		}
		if open {
			return run, nil
		}
		over = append(over, run)
	}
	return "", r.Seen.Over(j.id(), over)
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
