package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"wf/api"
	"wf/engine"
	"wf/engine/rules"
	"wf/protocol"
	"wf/service/compose"
)

// trial has a trial performed and checked. An error is one that ends the sweep; what came of the trial is in s.out.
func (s *sweep) trial(ctx context.Context, i int) error {
	fill := copyOf(s.Launch.Workspace)
	if s.state != nil {
		fill = func(ctx context.Context, dir string) error {
			_, err := s.Engine.LayTree(ctx, s.Origin, s.tree, dir)
			return err
		}
	}
	place, err := s.notes.place(ctx, s.Store, s.names[i], fill)
	if err != nil {
		return err
	}
	run, err := s.begin(ctx, i, place)
	if err != nil {
		if err = errors.Join(err, place.drop()); !ofDefinition(err) {
			return err
		}
		s.change(i, func(t *api.SweepTrial) {
			t.State, t.Why = api.SweepError, "it cannot begin: "+strings.Join(strings.Fields(protocol.Flat(err).Message), " ")
		})
		return nil
	}
	s.change(i, func(t *api.SweepTrial) {
		t.State, t.Run = api.SweepRuns, run
		s.told(t)
	})
	v, err := s.drive(ctx, i, run)
	if v == nil {
		return err
	}
	err = errors.Join(err, s.measure(ctx, i, v))
	if err != nil || ctx.Err() != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	if state, why := unfinishedTrial(v); state != "" {
		s.change(i, func(t *api.SweepTrial) { t.State, t.Why = state, why })
		return nil
	}
	return s.judged(ctx, i, v, place)
}

// begin finds the run of a trial, or begins it.
func (s *sweep) begin(ctx context.Context, i int, place trialPlace) (protocol.RunID, error) {
	t := &s.trials[i]
	c := &s.cells[t.cell]
	d := s.Definitions[c.definition]
	given := map[string]any{}
	for name, value := range c.inputs {
		if _, declared := d.Program.Workflow.Inputs[name]; declared {
			given[name] = value
		}
	}
	trial := s.notes.name + "/" + s.names[i]
	tags := slices.Concat(s.Launch.Tags, []string{"sweep", s.out.Tag})
	models, _, err := s.ResolveModels(ctx, d.Program, s.modelsOf(c))
	if err != nil {
		return "", err
	}
	if len(models) == 0 {
		models = nil
	}
	if s.state != nil {
		o := engine.ForkOptions{At: s.at, Dir: place.dir, Note: "a trial of " + s.out.Tag, By: compose.User(), RequestID: place.request, Tags: tags, Trial: trial}
		if len(given) > 0 {
			o.Inputs = given
		}
		other := d.Source != nil // not the definition that the run has
		if other {
			o.With, o.Source, o.File = d.Program, d.Source, d.Path
		}
		if other || len(c.models) > 0 {
			o.Models = models
		}
		run, err := s.Engine.Fork(ctx, s.Origin, o)
		if err == nil {
			s.Note(ctx, s.Store, run)
		}
		return run, err
	}
	l := s.Launch
	if l.Inputs, err = d.Program.Inputs(given); err != nil {
		return "", err
	}
	if err := s.SecretsSet(d.Program); err != nil {
		return "", err
	}
	l.Models = models
	l.Program, l.Source, l.File, l.Description, l.Title = d.Program, d.Source, d.Path, d.Program.Workflow.Description, d.Program.Workflow.Name
	l.RequestID, l.Workspace, l.Tags, l.Trial, l.Origin = place.request, place.dir, tags, trial, s.Engine.RequestRun("sweep/"+s.notes.name)
	run, _, err := s.Begin(ctx, l)
	return run, err
}

// limits are what is to change of the limits of a run, so that they are those of its trial. They count from the beginning of the
// run; an earlier call may have set others.
func (s *sweep) limits(i int, now protocol.Limits) (all []protocol.LimitChanged) {
	own := s.limitsOf(s.program(s.trials[i].cell))
	cost, tokens := own.Cost, own.Tokens
	if most := s.trials[i].most; most > 0 {
		cost = s.shared.micro() + most
	}
	if s.TrialTokens > 0 {
		tokens = s.shared.tokens + s.TrialTokens
		if own.Tokens > 0 {
			tokens = min(tokens, own.Tokens)
		}
	}
	for _, l := range s.Limits {
		if rules.Raised(now, l) != now {
			all = append(all, l)
		}
	}
	for _, l := range []struct {
		name       string
		is, wanted int64
	}{{rules.LimitCost, now.Cost, cost}, {rules.LimitTokens, now.Tokens, tokens}} {
		if l.wanted == 0 && l.is > 0 {
			l.wanted = mostOfALimit
		}
		if l.wanted = min(l.wanted, mostOfALimit); l.wanted != l.is {
			all = append(all, protocol.LimitChanged{Limit: l.name, Max: l.wanted, By: compose.User()})
		}
	}
	return all
}

// drive goes on with the run of a trial until it stops. Without a view there is an error.
func (s *sweep) drive(ctx context.Context, i int, run protocol.RunID) (*api.Run, error) {
	v, err := s.Engine.View(ctx, run)
	if err != nil {
		return nil, err
	}
	// What stopped by an error is tried again: most are of models that could not be reached.
	if v.Status.Final() || v.Suspended == protocol.ByStall {
		return v, nil
	}
	now, err := s.Engine.State(ctx, run)
	if err != nil {
		return nil, err
	}
	asked := sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.queue.ask(i)
		s.moved.Broadcast()
	})
	failed := s.Drive(ctx, run, s.limits(i, now.Limits), asked)
	if v, err = s.Engine.View(context.WithoutCancel(ctx), run); err != nil {
		return nil, errors.Join(failed, err)
	}
	return v, failed
}

// measure notes what a trial used.
func (s *sweep) measure(ctx context.Context, i int, v *api.Run) error {
	used, err := s.usedBy(context.WithoutCancel(ctx), v.ID, s.at, 0)
	if err != nil {
		return err
	}
	s.change(i, func(t *api.SweepTrial) {
		t.Status, t.Usage, t.Scripted, t.MS = v.Status, used.usage, used.scripted, max(0, v.ActiveMS-s.shared.ms)
	})
	return nil
}

// unfinishedTrial is how a trial stands whose run has not come to an end of its own; "" for any other.
func unfinishedTrial(v *api.Run) (api.SweepState, string) {
	why := "the run is " + string(v.Status)
	if v.Reason != "" {
		why += ": " + v.Reason
	}
	switch {
	case v.Status == protocol.Done, v.Status == protocol.Failed, v.Suspended == protocol.ByStall:
		return "", ""
	case v.Suspended == protocol.ByLimit:
		return api.SweepCut, why
	case v.Status == protocol.Waiting:
		return api.SweepError, fmt.Sprintf("the run waits: wf answer %s", v.ID)
	}
	return api.SweepError, why
}

// judged has a run checked that has come to its end, and notes what the check said.
func (s *sweep) judged(ctx context.Context, i int, v *api.Run, place trialPlace) error {
	j, err := s.Check.Judge(ctx, s.Local, v, place.dir, s.anyAgent())
	if err != nil {
		return err
	}
	var note api.SweepTrial
	s.change(i, func(t *api.SweepTrial) {
		t.Exit, t.Why = j.Exit, j.Why
		switch j.Verdict {
		case api.Good:
			t.State = api.SweepPassed
		case api.Bad:
			t.State = api.SweepFailed
		default:
			t.State = api.SweepError
		}
		if t.State.Completed() && s.Check.Command != "" {
			t.Score = scoreOf(j.Last)
		}
		note = *t
	})
	if !note.State.Completed() {
		return nil
	}
	s.mu.Lock()
	err = s.notes.add(sweepNote{s.names[i], note})
	s.mu.Unlock()
	return errors.Join(err, place.drop())
}
