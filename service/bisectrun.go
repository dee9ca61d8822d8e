package service

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"wf/api"
	"wf/engine"
	"wf/protocol"
)

// run performs one run of a definition, and has it checked. A run that was interrupted goes on; one that was checked is
// remembered.
func (s *search) run(ctx context.Context, def protocol.Link, n int, l engine.Launch, t *api.Trial) (r api.TrialRun, why string, err error) {
	if ctx.Err() != nil {
		return r, "", context.Cause(ctx)
	}
	if known, ok := s.notes.known[noteKey(def, n)]; ok {
		known.Run.Remembered = true
		s.account(known.Run, 0)
		return known.Run, known.Why, nil
	}
	limits, err := s.bounded(l.Program.Workflow)
	if err != nil {
		return r, "", err
	}
	place, err := s.notes.place(ctx, s.Store, fmt.Sprintf("%s-%d", def, n), copyOf(s.Launch.Workspace))
	if err != nil {
		return r, "", err
	}
	l.RequestID, l.Workspace = place.request, place.dir
	run, fresh, err := s.Begin(ctx, l)
	if err != nil {
		return r, "", errors.Join(err, place.drop())
	}
	r.Run = run
	before := 0
	v, err := s.Engine.View(ctx, run)
	if err != nil {
		return r, "", err
	}
	if !fresh {
		before = v.Count()
	}
	if goesOn(v) {
		told := *t
		told.Runs = append(slices.Clone(t.Runs), r)
		s.Tell(s.out, &told)
		if !fresh && v.Suspended == protocol.ByLimit && limits == nil {
			limits = ownLimit(l.Program.Workflow)
		}
		failed := s.Drive(ctx, run, limits)
		if v, err = s.Engine.View(context.WithoutCancel(ctx), run); err == nil {
			err = failed
		}
		if err != nil {
			return r, "", err
		}
	}
	r.Status, r.Steps, r.CostUSD = v.Status, v.Count(), v.CostUSD
	s.account(r, before)
	if s.Cost > 0 && v.CostUSD == nil {
		return r, "", protocol.ErrPrice.With("set the price of its models (wf cost "+string(run)+" names them), or bound the runs by --max-trials in place of --max-cost", "--max-cost cannot hold: the cost of run %s is not known", run)
	}
	if err := s.stopped(v, limits); err != nil {
		return r, "", err
	}
	if r.Verdict, r.Exit, why, err = s.judge(ctx, v, place.dir); err != nil {
		return r, "", err
	}
	if err := s.notes.add(noted{def, n, r, why}); err != nil {
		return r, "", err
	}
	return r, why, place.drop()
}

// stopped is the error of a run that has not come to what its definition makes of it.
func (s *search) stopped(v *api.Run, limits []protocol.LimitChanged) error {
	const again = "; then the same command goes on"
	switch {
	case v.Status.Final():
		return nil
	case v.Status == protocol.Waiting:
		return protocol.ErrWaiting.With("wf answer "+string(v.ID)+again, "run %s waits, and the bisect with it", v.ID)
	case v.Status != protocol.Suspended, v.Suspended == protocol.ByInterrupt:
		return protocol.ErrNotFinal.With("the same command goes on", "run %s is not over: it is %s", v.ID, v.Status)
	case v.Suspended == protocol.ByLimit && limits != nil && s.Cost > 0 && s.spent >= s.Cost:
		return s.tooDear()
	}
	if err := s.Unfit(v); err != nil {
		return protocol.Hinted(err, protocol.HintOf(err)+again)
	}
	return nil
}

// judge says whether a run that has stopped is good, and why.
func (s *search) judge(ctx context.Context, v *api.Run, dir string) (api.Verdict, *int, string, error) {
	j, err := s.Check.Judge(ctx, s.Local, v, dir, slices.ContainsFunc(s.Versions, func(v BisectVersion) bool { return v.Program.HasAgent() }))
	return j.Verdict, j.Exit, j.Why, err
}

// noted is a run that was checked.
type noted struct {
	Definition protocol.Link `json:"definition"`
	N          int           `json:"n"`
	Run        api.TrialRun  `json:"run"`
	Why        string        `json:"why,omitempty"`
}

func (x noted) key() string {
	if x.Run.Run == "" {
		return ""
	}
	return noteKey(x.Definition, x.N)
}

func noteKey(def protocol.Link, k int) string { return fmt.Sprintf("%s/%d", def, k) }
