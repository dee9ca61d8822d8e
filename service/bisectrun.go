package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"wf/api"
	"wf/engine"
	"wf/protocol"
	"wf/roles"
)

// Check is a command that tells whether a run is good. It runs in the workspace of the run as a run role would, confined
// where an agent could have written what it executes, and reads the run as JSON (wf.run/v1).
type Check struct {
	Command string // what sh -c runs; "" lets the outcome of the run decide
	Sandbox string // SandboxOn, SandboxOff, or "" as for run roles of the versions
	// Show is called with what the command writes; nil is not.
	Show func(text string)
}

// The exit status of a check that cannot tell, as git bisect has it.
const cannotTell = 125

// run performs one run of a definition, and has it checked. A run that was interrupted goes on; one that was checked is
// remembered.
func (s *search) run(ctx context.Context, def protocol.Link, n int, l engine.Launch, t *api.Trial) (r api.TrialRun, why string, err error) {
	if ctx.Err() != nil {
		return r, "", context.Cause(ctx)
	}
	if known, ok := s.notes.find(def, n); ok {
		known.Run.Remembered = true
		s.account(known.Run, 0)
		return known.Run, known.Why, nil
	}
	limits, err := s.bounded(l.Program.Workflow)
	if err != nil {
		return r, "", err
	}
	place, err := s.place(ctx, def, n)
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
	if err := s.notes.add(def, n, r, why); err != nil {
		return r, "", err
	}
	return r, why, place.drop()
}

// goesOn reports whether a run is to be driven: it has begun, or was interrupted, or waits, or a limit may be another
// now. What stopped by an error did so by its definition.
func goesOn(v *api.Run) bool {
	return !v.Status.Final() && (v.Status != protocol.Suspended || v.Suspended == protocol.ByInterrupt || v.Suspended == protocol.ByLimit)
}

// ownLimit takes a limit of an earlier call back.
func ownLimit(w *protocol.Workflow) []protocol.LimitChanged {
	most := w.Limits.Cost
	if most == 0 {
		most = mostOfALimit
	}
	return []protocol.LimitChanged{{Limit: "cost_usd", Max: most}}
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
	if s.Check.Command == "" {
		why := "the run is " + string(v.Status)
		if v.Reason != "" {
			why += ": " + v.Reason
		}
		switch v.Status {
		case protocol.Done:
			return api.Good, nil, why, nil
		case protocol.Cancelled:
			return api.Unresolved, nil, why, nil
		}
		return api.Bad, nil, why, nil
	}
	code, last, err := s.check(ctx, v, dir)
	if err != nil {
		return "", nil, "", err
	}
	why := fmt.Sprintf("the check ended with %d", code)
	if last != "" {
		why += ": " + last
	}
	switch code {
	case 0:
		return api.Good, &code, why, nil
	case cannotTell:
		return api.Unresolved, &code, why, nil
	}
	return api.Bad, &code, why, nil
}

// check runs the command as a role of the workflow would, and gives its exit status and the last line it wrote.
func (s *search) check(ctx context.Context, v *api.Run, dir string) (code int, last string, err error) {
	of, err := json.Marshal(v)
	if err != nil {
		return 0, "", err
	}
	command := *s.Engine.Performers[protocol.ActRun].(*roles.Run)
	command.Messages = nil
	role := protocol.Role{Name: "check", Action: protocol.ActRun, Run: s.Check.Command, ContinueOnError: true, Stdin: &protocol.Stdin{Text: "-"}}
	turn := protocol.Turn{Run: v.ID, Workflow: v.Workflow, Step: protocol.StepID{Role: role.Name, N: 1, Index: -1}, Visit: 1, Attempt: 1, Key: string(v.ID) + "/check",
		Role: role, Inputs: protocol.JSON("{}"), Stdin: &protocol.Stdin{Text: string(of) + "\n"}, Workspace: dir, Confined: s.confinesCheck(),
		Env: map[string]string{"WF_RUN": string(v.ID), "WF_RUN_STATUS": string(v.Status), "WF_STORE": s.Store.Dir()}}
	c, err := command.Perform(ctx, turn, func(_ context.Context, data ...protocol.Data) error {
		for _, x := range data {
			if d, ok := x.(protocol.Delta); ok && s.Check.Show != nil {
				s.Check.Show(d.Text)
			}
		}
		return nil
	})
	if err != nil {
		return 0, "", fmt.Errorf("the check of run %s: %w", v.ID, err)
	}
	var ended struct {
		Code *int `json:"exit_code"`
	}
	if err := json.Unmarshal(c.Data, &ended); err != nil || ended.Code == nil {
		return 0, "", fmt.Errorf("the check of run %s told no exit status: %w", v.ID, errors.Join(err, protocol.ErrCorrupt))
	}
	if c.Text != nil {
		lines := strings.Split(strings.TrimSpace(*c.Text), "\n")
		last = lines[len(lines)-1]
	}
	return *ended.Code, last, nil
}

// confinesCheck reports whether the check runs in the sandbox: where an agent of any version may have written what it
// executes.
func (s *search) confinesCheck() bool {
	switch s.Check.Sandbox {
	case protocol.SandboxOn:
		return true
	case protocol.SandboxOff:
		return false
	}
	return s.Engine.ConfineAll || slices.ContainsFunc(s.Versions, func(v BisectVersion) bool { return v.Program.HasAgent() })
}
