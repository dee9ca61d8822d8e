package main

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/cmd/internal/render"
	"wf/engine"
	"wf/engine/rules"
	"wf/files"
	"wf/protocol"
	"wf/service"
	"wf/service/compose"
)

type sweepFlags struct {
	runFlags
	with      []string
	after     bool
	check     service.Check
	n         int
	parallel  int
	cost      float64
	trialCost float64
	tokens    int64
	limits    []string
	anew      bool
}

func newSweep(a *app) *cobra.Command {
	var f sweepFlags
	cmd := &cobra.Command{
		Use:   "sweep RUN:STEP|FILE",
		Short: "Try models, definitions and inputs, and check each",
		Long: `Try models, definitions and inputs side by side, each -n times, and show what passes a check, what it costs and how long it
takes. Trials are models × definitions × inputs × n.

With a step, all trials are forks of the run before that step (with --after, behind it): they share what came before, and read it
from the cache of the provider. Each has files of its own, as the run recorded them there. With a file, or the name of a workflow,
they are new runs, each in a copy of the workspace, without .git and .wf.

  --model a,b    every agent with a, and with b; coder=a,b for the agent coder alone
  --with a,b     definitions, beside that of the file; of forks in its place (a run stands for its own)
  -i k=1..3      an input with each number from 1 to 3; -i given again for one name is another value

--check is a command. It runs in the files of the trial and reads the run as JSON on stdin; WF_RUN, WF_RUN_STATUS and WF_STORE
are set. Exit 0 passes, 125 cannot tell, anything else fails. Where its last line is a number, or "score: NUMBER", that is the
score. Where an agent could have written what it executes it is confined, as run roles are: --check-sandbox off lets it run as
you. Without --check a run that is done passes, and one that failed does not.

Before a trial begins it reserves what it costs at most: --trial-cost, or what the limit of its workflow leaves, or else its share
of --max-cost. A model without a price needs a bound of tokens in place of that. A limit is looked at before each call of a
model, so a trial can exceed it by one call. Costs count behind the fork point.

The runs are in the store like any other, with the tag sweep and one of the sweep. Ctrl-C ends it: the same command goes on where it
was, also with more trials, models, definitions or inputs, and does not run again what was checked. -1 counts no trials. --anew forgets what was checked.`,
		Example: `  wf sweep -1:coder#2 --model openai/gpt-x,anthropic/claude-y -n 5 --check 'go test ./...'

  # three prompts, with at most two dollars for all trials
  wf sweep 7K3Q:coder#1 --with v1.yaml,v2.yaml,-1 -n 8 --max-cost 2 --check 'go test ./...'

  # new runs of a workflow, over an input
  wf sweep review.yaml -i depth=1..3 -i topic=cats -i topic=dogs --check 'jq .outputs.score'`,
		Args: takes(1, 1, "a step or a workflow"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.atNew(cmd.Context(), func(p *target) error { return a.sweep(cmd.Context(), p, args[0], f) })
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&f.with, "with", nil, "definitions to try")
	flags.BoolVar(&f.after, "after", false, "keep the step, go on behind it")
	flags.StringVar(&f.check.Command, "check", "", "command that tells what passes (exit 0)")
	flags.StringVar(&f.check.Sandbox, "check-sandbox", "", "on or off: whether the check is confined (default: as run roles are)")
	flags.IntVarP(&f.n, "repeat", "n", 1, "so many trials of each model, definition and inputs")
	flags.StringArrayVarP(&f.inputs, "input", "i", nil, "an input: name=value, name=1..3 or name=@file; given again, another value")
	flags.StringVarP(&f.inputsFile, "inputs", "I", "", "inputs as a JSON object from a file, - is stdin")
	flags.StringVar(&f.Context, "context", "", "how every agent of new runs sees its past: conversation, task or fresh")
	a.beginFlags(flags, &f.runFlags)
	flags.Lookup("model").Usage = "models to try, a,b for every agent or role=a,b"
	flags.IntVar(&f.parallel, "parallel", 4, "so many trials at once")
	flags.Float64Var(&f.cost, "max-cost", 0, "what all trials cost together, in dollars (default: no bound)")
	flags.Float64Var(&f.trialCost, "trial-cost", 0, "what one trial costs, in dollars (default: no bound)")
	flags.Int64Var(&f.tokens, "trial-tokens", 0, "how many tokens one trial uses (default: no bound)")
	flags.StringArrayVar(&f.limits, "limit", nil, "a limit of each run: steps=60 or duration=30m; a fork has the steps and time that it shares too")
	flags.BoolVar(&f.anew, "anew", false, "forget what was tried before")
	return cmd
}

func (a *app) sweep(ctx context.Context, p *target, arg string, f sweepFlags) error {
	if err := f.valid(); err != nil {
		return err
	}
	s := &service.Sweeper{Local: p.here.Local, N: f.n, Check: f.check, Parallel: f.parallel, MaxCost: micro(f.cost), TrialCost: micro(f.trialCost), TrialTokens: f.tokens,
		After: f.after, Anew: f.anew}
	for _, given := range f.limits {
		l, err := service.ParseLimit(given, compose.User())
		if err != nil {
			return err
		}
		if l.Limit == rules.LimitCost || l.Limit == rules.LimitTokens {
			return usagef("--limit %s: --trial-cost and --trial-tokens bound that for each trial", given)
		}
		s.Limits = append(s.Limits, l)
	}
	var err error
	if p.here.Catalog, err = a.NewCatalog(nil, p.here.Store.Dir()); err != nil {
		return err
	}
	workspace, _, err := places("-", f.dir)
	if err != nil {
		return err
	}
	s.Launch = engine.Launch{Tags: f.Tags, CreatedBy: compose.User(), Workspace: workspace, Place: workspace, Context: protocol.ContextMode(f.Context), AllowSecretInputs: f.AllowSecretInputs}
	if err := a.sweepOf(ctx, p, s, arg, f, workspace); err != nil {
		return err
	}
	definitions, err := sweptDefinitions(ctx, p, s)
	if err != nil {
		return err
	}
	if s.Models, err = sweptModels(definitions, f.models); err != nil {
		return err
	}
	if s.Inputs, err = a.sweptInputs(definitions, f.runFlags); err != nil {
		return err
	}
	s.Begin = p.here.Begin
	s.Drive = func(ctx context.Context, run protocol.RunID, limits []protocol.LimitChanged, asked func()) error {
		if err := p.here.Keeper.Resume(ctx, run, protocol.Running, engine.DriveOptions{By: compose.User(), Limits: limits}); err != nil {
			return err
		}
		_, seq, err := p.here.Store.Tip(ctx, run)
		if err != nil {
			return err
		}
		return p.Follow(ctx, run, api.Following{From: seq, Until: api.Parked}, func(u api.Update) error {
			if _, answered := u.Data.(protocol.Usage); answered {
				asked()
			}
			return nil
		})
	}
	if a.Verbose && !a.AsJSON() {
		s.Check.Show = a.Said
	}
	screen := render.NewSweepScreen(a.Printer)
	shown := &filling{a: a, ctx: ctx, l: p.here.Local}
	s.Tell = func(s *api.Sweep, t *api.SweepTrial) {
		screen.Tell(s, t)
		shown.put(s.Tag, render.SweepTable(s))
	}
	found, err := s.Sweep(ctx)
	if found != nil && len(found.Cells) > 0 {
		shown.put(found.Tag, render.SweepTable(found))
	}
	shown.close()
	screen.Close()
	return a.sweepEnded(ctx, found, err)
}

func micro(dollars float64) int64 { return int64(math.Round(dollars * 1e6)) }

func (f *sweepFlags) valid() error {
	switch {
	case f.n < 1:
		return usagef("-n %d: want 1 or more", f.n)
	case f.parallel < 1 || f.parallel > 256:
		return usagef("--parallel %d: want 1 to 256", f.parallel)
	case f.tokens < 0:
		return usagef("--trial-tokens %d: want 1 or more", f.tokens)
	case !slices.Contains([]string{"", protocol.SandboxOn, protocol.SandboxOff}, f.check.Sandbox):
		return usagef("--check-sandbox %s: want on or off", f.check.Sandbox)
	}
	for name, x := range map[string]float64{"max-cost": f.cost, "trial-cost": f.trialCost} {
		if x < 0 || x > 1e9 || x != x || x > 0 && micro(x) == 0 {
			return usagef("--%s %v: want an amount in dollars, of a millionth or more", name, x)
		}
	}
	if _, err := protocol.ParseContext(f.Context); err != nil {
		return usagef("--context %s: want conversation, task or fresh", f.Context)
	}
	return nil
}

// sweepOf reads what the trials begin with: the step of a run, or definitions.
func (a *app) sweepOf(ctx context.Context, p *target, s *service.Sweeper, arg string, f sweepFlags, workspace string) error {
	names := []string{written(arg)}
	for _, name := range f.with {
		names = append(names, written(name))
	}
	for i, name := range names {
		if files.Exists(name) {
			continue
		}
		var err error
		if names[i], err = p.here.BesideTrials(ctx, name); err != nil {
			return err
		}
	}
	arg, names = names[0], names[1:]
	ref, err := p.find(ctx, arg)
	switch _, step, _ := strings.Cut(arg, ":"); {
	case err != nil && strings.Contains(step, "#") && !files.Exists(arg):
		return err
	case err == nil && ref.Step != "":
		if f.dir != "" || f.Context != "" {
			return usagef("--dir and --context are for new runs: forks have the files that run %s recorded, and go on as it does", ref.Run)
		}
		s.Origin, s.Step = ref.Run, ref.Step
	default:
		if f.after {
			return usagef("--after needs a step, such as -1:coder#2")
		}
		names = slices.Insert(names, 0, arg)
	}
	sub := subWorkflows(ctx, p, func() []service.BisectVersion { return s.Definitions })
	for _, name := range names {
		v, err := a.bisected(ctx, p, name, workspace, sub)
		if err != nil {
			return err
		}
		if err := a.mayRun(ctx, v.Program, v.Definition); err != nil {
			return err
		}
		for _, was := range s.Definitions {
			same, err := sameDefinition(was, v)
			if err == nil && same {
				err = usagef("%s and %s are the same definition: comments and the order of keys make no difference", was.Name, v.Name)
			}
			if err != nil {
				return err
			}
		}
		s.Definitions = append(s.Definitions, v)
	}
	return nil
}

func sameDefinition(a, b service.BisectVersion) (bool, error) {
	x, err := a.Program.Block()
	if err != nil {
		return false, err
	}
	y, err := b.Program.Block()
	return x.Link == y.Link, err
}

// sweptDefinitions are the definitions, without others that of the run.
func sweptDefinitions(ctx context.Context, p *target, s *service.Sweeper) ([]service.BisectVersion, error) {
	if len(s.Definitions) > 0 {
		return s.Definitions, nil
	}
	st, err := p.here.Engine.State(ctx, s.Origin)
	if err != nil {
		return nil, err
	}
	return []service.BisectVersion{{Name: "run " + string(s.Origin), Definition: compose.Definition{Program: st.Program()}}}, nil
}

// sweepEnded shows what came of a sweep, or how far it came.
func (a *app) sweepEnded(ctx context.Context, found *api.Sweep, err error) error {
	var sig signalled
	stopped := errors.As(context.Cause(ctx), &sig)
	if found != nil && (err == nil || stopped || errors.Is(err, service.ErrSweepLimit) || errors.Is(err, service.ErrSweepOpen)) {
		if err := a.ShowSweep(found); err != nil {
			return err
		}
	}
	if stopped {
		return interrupted{errRunSuspended.With("the same command goes on", "%s; the sweep stopped, nothing is lost", sig), sig}
	}
	return err
}
