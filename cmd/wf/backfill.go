package main

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/engine"
	"wf/files"
	"wf/protocol"
)

// mostFirings is how many firings one wf backfill looks at.
const mostFirings = 10_000

type backfillFlags struct {
	from, to string
	dry      bool
	parallel int
	dir      string
}

func newBackfill(a *app) *cobra.Command {
	f := backfillFlags{}
	cmd := &cobra.Command{
		Use:   "backfill WORKFLOW",
		Short: "Start the firings of a schedule that were missed",
		Long: `Start the runs that a schedule would have started within a time, --from and --to included. Each has the
request id of its firing, so that a firing that was started before, by wf serve or by another wf backfill, is left
alone, also where its run was deleted. The oldest is started first, and the next one when a run has ended, waits or is
suspended. Ctrl-C suspends what runs: wf resume goes on with it, and the same command with the rest.

WORKFLOW is a file, or the name of a workflow that wf serve would serve here; with --hub a name there.`,
		Example: `  wf backfill nightly --from 2030-01-01 --to 2030-01-31T12:00:00Z --dry-run
  wf backfill nightly.yaml --from 2030-01-01 --parallel 4`,
		Args: takes(1, 1, "a workflow"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.atNew(cmd.Context(), func(p *target) error { return a.backfill(cmd.Context(), p, args[0], f) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "", "firings from this time on: 2030-01-31 (in UTC), or as in RFC 3339")
	flags.StringVar(&f.to, "to", "", "up to this time (default: now)")
	flags.BoolVar(&f.dry, "dry-run", false, "show which were missed, and start nothing")
	flags.IntVar(&f.parallel, "parallel", 1, "so many runs at once")
	flags.StringVar(&f.dir, "dir", "", "workspace in which the runs work (default: here)")
	a.driveFlags(flags)
	return cmd
}

func (a *app) backfill(ctx context.Context, p *target, name string, f backfillFlags) error {
	w, err := a.scheduled(ctx, p, name, f.dir)
	if err != nil {
		return err
	}
	b, err := firingsOf(p, w, f)
	if err != nil {
		return err
	}
	if err := a.lookAt(ctx, p, w, b); err != nil {
		return err
	}
	var failed error
	if !f.dry {
		failed = a.fireAll(ctx, p, w, b, f.parallel)
	}
	return errors.Join(answer(a, b, nil, a.ShowBackfill), failed)
}

// scheduled finds a workflow with a schedule.
func (a *app) scheduled(ctx context.Context, p *target, name, dir string) (w api.Workflow, err error) {
	if err := a.forRunsHere(dir, ""); err != nil {
		return w, err
	}
	if p.here != nil {
		var dirs []string
		if files.Exists(name) && filepath.Ext(name) != "" {
			if name, err = filepath.Abs(name); err != nil {
				return w, err
			}
			dirs = []string{filepath.Dir(name)}
		}
		if p.here.Catalog, err = a.NewCatalog(dirs, p.here.Store.Dir()); err != nil {
			return w, err
		}
		if p.here.Dir, _, err = places("-", dir); err != nil {
			return w, err
		}
	}
	all, err := p.Workflows(ctx)
	if err != nil {
		return w, err
	}
	found := 0
	for _, x := range all {
		if x.Name == name || x.File == name {
			w, found = x, found+1
		}
	}
	switch {
	case found == 0:
		return w, protocol.ErrNotFound.With("name a file, or one of the workflows of wf serve", "no workflow %q is served", name)
	case found > 1:
		return w, protocol.ErrAmbiguous.With("name the file", "%d workflows are called %q", found, name)
	case w.Definition == "" && w.Problem != "":
		return w, protocol.ErrInvalid.With("wf validate "+protocol.ShellWord(w.File), "%s: %s", w.File, w.Problem)
	case w.Schedule == nil:
		return w, usagef("%s has no schedule: on: {schedule: …}", w.Name)
	}
	return w, nil
}

// firingsOf are the firings that the flags name.
func firingsOf(p *target, w api.Workflow, f backfillFlags) (*api.Backfill, error) {
	if f.from == "" {
		return nil, usagef("--from is missing: the time from which on firings were missed, such as --from 2030-01-31")
	}
	if f.parallel < 1 {
		return nil, usagef("--parallel %d: want 1 or more", f.parallel)
	}
	from, err := timeOf("--from", f.from)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	to := now
	if f.to != "" {
		if to, err = timeOf("--to", f.to); err != nil {
			return nil, err
		}
	}
	switch {
	case to.After(now):
		return nil, usagef("--to %s has not come yet: wf serve starts what is due then", f.to)
	case to.Before(from):
		return nil, usagef("--to lies before --from")
	}
	all, err := protocol.Schedule{Cron: *w.Schedule, Timezone: w.Timezone}.Firings(from.Add(-time.Nanosecond), to)
	if err != nil {
		return nil, err
	}
	stamp := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	runOf := engine.RequestRun
	if inDatabase(w) {
		runOf = engine.LongRequestRun
	}
	b := &api.Backfill{Schema: "wf.backfill/v1", Workflow: w.Name, From: stamp(from), To: stamp(to), Firings: []api.Firing{}}
	for due := range all {
		if len(b.Firings) == mostFirings {
			return nil, usagef("there are more than %d firings: name a shorter time", mostFirings)
		}
		b.Firings = append(b.Firings, api.Firing{Due: stamp(due), Run: runOf(protocol.FiringAt(firings(w), due)), State: api.FiringMissed})
	}
	return b, nil
}

// firings is how the request ids of the firings of a workflow begin; an older server does not say it.
func firings(w api.Workflow) string { return cmp.Or(w.Firings, protocol.Firings(w.Name, w.File)) }

// inDatabase reports whether a workflow is served for a store that several machines share: its firings are not named by the file.
func inDatabase(w api.Workflow) bool { return firings(w) != protocol.Firings(w.Name, w.File) }

func timeOf(flag, text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usagef("%s %q: want a day such as 2030-01-31, or a time such as 2030-01-31T09:00:00Z", flag, text)
}

// lookAt finds the firings that were started before.
func (a *app) lookAt(ctx context.Context, p *target, w api.Workflow, b *api.Backfill) error {
	for i := range b.Firings {
		f := &b.Firings[i]
		v, err := p.Run(ctx, f.Run, api.Window{Limit: 1})
		if due, bad := time.Parse(time.RFC3339, f.Due); errors.Is(err, protocol.ErrUnknownRun) && bad == nil && inDatabase(w) {
			before := engine.RequestRun(protocol.Firing(w.Name, w.File, due)) // it may have run in a directory that was copied
			if v, err = p.Run(ctx, before, api.Window{Limit: 1}); err == nil || errors.Is(err, protocol.ErrRunDeleted) {
				f.Run = before
			}
		}
		switch {
		case err == nil:
			f.State, f.Status = api.FiringBefore, v.Status
		case errors.Is(err, protocol.ErrRunDeleted):
			f.State = api.FiringDeleted
		case !errors.Is(err, protocol.ErrUnknownRun):
			return err
		}
	}
	return nil
}

// fireAll starts the firings that were missed, so many at once, and follows each until it stops. One that cannot be
// started is the last; a run that fails is not.
func (a *app) fireAll(ctx context.Context, p *target, w api.Workflow, b *api.Backfill, parallel int) error {
	var work sync.WaitGroup
	slots := make(chan struct{}, parallel)
	var mu sync.Mutex // of failed, and of the lines written
	var failed error
	stopped := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return failed != nil || ctx.Err() != nil
	}
	for i := range b.Firings {
		f := &b.Firings[i]
		if f.State != api.FiringMissed {
			continue
		}
		slots <- struct{}{}
		if stopped() {
			break
		}
		work.Go(func() {
			defer func() { <-slots }()
			err := a.fire(ctx, p, w, f)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = errors.Join(failed, err)
				return
			}
			a.Progress("%s  run %s  %s", f.Due, f.Run, cmp.Or(string(f.Status), string(f.State)))
		})
	}
	work.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, f := range b.Firings {
		if failed == nil && f.State == api.FiringStarted && f.Status != protocol.Done {
			failed = errRunFailed.With("wf log "+string(f.Run)+" shows why", "not all runs are done: that of %s is %s", f.Due, f.Status)
		}
	}
	return failed
}

// fire starts a firing and follows its run until it stops.
func (a *app) fire(ctx context.Context, p *target, w api.Workflow, f *api.Firing) error {
	due, err := time.Parse(time.RFC3339, f.Due)
	if err != nil {
		return err
	}
	run, fresh, err := p.Start(ctx, api.Start{Workflow: w.File, Firing: f.Due, RequestID: protocol.FiringAt(firings(w), due)})
	switch {
	case errors.Is(err, protocol.ErrRunDeleted):
		f.State = api.FiringDeleted
		return nil
	case err != nil && ctx.Err() != nil:
		return err // the same command tries it again
	case err != nil:
		f.State, f.Error = api.FiringFailed, protocol.Flat(err)
		return err
	case !fresh:
		f.State, f.Run = api.FiringBefore, run // meanwhile
		return nil
	}
	f.State, f.Run = api.FiringStarted, run
	err = p.Follow(ctx, run, api.Following{Until: api.Parked}, func(api.Update) error { return nil })
	v, look := p.Run(context.WithoutCancel(ctx), run, api.Window{Limit: 1})
	if look == nil {
		f.Status = v.Status
	}
	return errors.Join(err, look)
}
