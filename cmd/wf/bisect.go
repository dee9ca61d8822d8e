package main

import (
	"context"
	"errors"
	"maps"
	"math"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/cas"
	"wf/cmd/internal/render"
	"wf/engine"
	"wf/engine/lang"
	"wf/files"
	"wf/protocol"
	"wf/service"
	"wf/service/compose"
)

type bisectFlags struct {
	runFlags
	good, bad string
	versions  []string
	check     service.Check
	repeat    int
	trials    int
	cost      float64
	inPlace   bool
	anew      bool
	carry     []string
}

func newBisect(a *app) *cobra.Command {
	var f bisectFlags
	cmd := &cobra.Command{
		Use:   "bisect [RUN|FILE...]",
		Short: "Find the edits, or the step of a run, that broke a check",
		Long: `Find the edits of a workflow that broke it, or the step of a run.

Of a workflow: a definition that passes a check and one that fails it are taken apart into
edits: one for each key of a role, each edge, input, limit or other key. Mixtures of both are run and checked, until a
set of edits is left that breaks the check, and does not with any single one of them left out.

A definition is a file, the name of a workflow of this project, a run (such as -1, for the definition that it has), or the
CID of a definition. Several, or --versions, are bisected in their order first: the first is good, the last bad.

--check is a command. It runs in the workspace of the run and reads the run as JSON on stdin; WF_RUN, WF_RUN_STATUS and
WF_STORE are set. Exit 0 is good, 125 cannot tell, anything else is bad. Where a version has an agent it is confined, as run
roles are: --check-sandbox off lets it run as you. Without --check a run that is done is good, and one that failed bad.

Each run works in a copy of the workspace, without .git and .wf; --in-place lets them work in it, one after the other. The
runs are in the store like any other, with the tag bisect.

Of a run: with one run, or a step, and --check, the step is found behind which its files fail the check, and the tool call where one
is known. The files that the run recorded are laid out elsewhere, step by step, and checked there; nothing is performed, and the
workspace is not touched. --good and --bad name steps whose files pass and fail; without them these are the start of the run and
its last step. Ignored files were not recorded: --carry brings them from the workspace. Of a run from elsewhere the check is always
confined.

Ctrl-C, or a limit, ends the search: the same command goes on where it was, and does not run again what was checked. --anew
forgets that.`,
		Example: `  # which of the edits since yesterday makes the tests fail?
  wf bisect --good yesterday.yaml --bad workflow.yaml --check 'go test ./...'

  # the definition of an earlier run was good; each mixture is run three times
  wf bisect --good 7K3Q --bad review.yaml -i topic=cats -n 3 --check 'jq -e ".outputs.score > 7"'

  # several versions, in their order
  wf bisect v1.yaml v2.yaml v3.yaml v4.yaml --max-cost 2.50

  # which step of the latest run broke the tests, and which of its tool calls?
  wf bisect -1 --check 'go test ./...'
  wf bisect -1 --good 'coder#1' --bad 'coder#4' --check 'npm test' --carry node_modules
  wf bisect '-1:coder#3' --check ./smoke.sh -n 3`,
		Args: takes(0, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.bisectsFiles(args) {
				return a.at(cmd.Context(), func(p *target) error { return a.bisectFiles(cmd.Context(), p, cmd, args, f) })
			}
			if len(f.carry) > 0 {
				return usagef("--carry belongs to a bisect of the steps of a run")
			}
			return a.atNew(cmd.Context(), func(p *target) error { return a.bisect(cmd.Context(), p, args, f) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.good, "good", "", "a definition that passes the check; of a run: a step whose files do")
	flags.StringVar(&f.bad, "bad", "", "a definition that fails it; of a run: a step whose files do")
	flags.StringSliceVar(&f.versions, "versions", nil, "definitions in their order, from good to bad")
	flags.StringVar(&f.check.Command, "check", "", "command that tells good (exit 0) from bad")
	flags.StringVar(&f.check.Sandbox, "check-sandbox", "", "on or off: whether the check is confined (default: as run roles are)")
	flags.IntVarP(&f.repeat, "repeat", "n", 1, "so many runs of each definition, or checks of each step; where they do not agree it is neither good nor bad")
	flags.StringArrayVarP(&f.inputs, "input", "i", nil, "an input of the runs: name=value, or name=@file")
	flags.StringVarP(&f.inputsFile, "inputs", "I", "", "inputs as a JSON object from a file, - is stdin")
	flags.StringVar(&f.Context, "context", "", "how every agent sees its past: conversation, task or fresh")
	a.beginFlags(flags, &f.runFlags)
	flags.IntVar(&f.trials, "max-trials", 0, "stop before more runs, or checks of steps, than this (default: no bound)")
	flags.Float64Var(&f.cost, "max-cost", 0, "stop when the runs cost so many dollars together (default: no bound)")
	flags.BoolVar(&f.inPlace, "in-place", false, "let the runs work in the workspace, where each finds what the others left")
	flags.StringArrayVar(&f.carry, "carry", nil, "of the steps of a run: files that it did not record, such as node_modules, which come from the workspace")
	flags.BoolVar(&f.anew, "anew", false, "forget what was tried before with the same arguments")
	return cmd
}

func (a *app) bisect(ctx context.Context, p *target, args []string, f bisectFlags) error {
	names, err := f.names(args)
	if err != nil {
		return err
	}
	b := &service.Bisector{Local: p.here.Local, Check: f.check, Repeat: f.repeat, Trials: f.trials, Cost: int64(math.Round(f.cost * 1e6)), Anew: f.anew, InPlace: f.inPlace,
		Models: chosenLists(f.models), Unfit: unfit, Tell: a.TellTrial, TellEdits: a.TellEdits}
	if p.here.Catalog, err = a.NewCatalog(nil, p.here.Store.Dir()); err != nil {
		return err
	}
	workspace, _, err := places("-", f.dir)
	if err != nil {
		return err
	}
	b.Sub = subWorkflows(ctx, p, func() []service.BisectVersion { return b.Versions })
	for _, name := range names {
		v, err := a.bisected(ctx, p, name, workspace, b.Sub)
		if err != nil {
			return err
		}
		b.Versions = append(b.Versions, v)
	}
	bad := b.Versions[len(b.Versions)-1]
	if b.Given, err = a.givenToAny(b.Versions, f.runFlags); err != nil {
		return err
	}
	for role := range b.Models {
		if !slices.ContainsFunc(b.Versions, func(v service.BisectVersion) bool { return service.HasAgent(v.Program, role) }) {
			return usagef("--model %s=…: no version has an agent %q", role, role)
		}
	}
	mixed, err := a.mayMix(ctx, b.Versions)
	if err != nil {
		return err
	}
	b.Launch = engine.Launch{Title: bad.Program.Workflow.Name, Tags: append(f.Tags, "bisect"), CreatedBy: compose.User(), Workspace: workspace, Place: workspace,
		Context: protocol.ContextMode(f.Context), AllowSecretInputs: f.AllowSecretInputs}
	b.Begin = func(ctx context.Context, l engine.Launch) (protocol.RunID, bool, error) {
		if mixed {
			def, err := l.Program.Block()
			if err != nil {
				return "", false, err
			}
			a.Trusted = append(a.Trusted, def.Link.String())
		}
		return p.here.Begin(ctx, l)
	}
	b.Drive = func(ctx context.Context, run protocol.RunID, limits []protocol.LimitChanged) error {
		if err := p.here.Keeper.Resume(ctx, run, protocol.Running, engine.DriveOptions{By: compose.User(), Limits: limits}); err != nil {
			return err
		}
		return a.followAndAsk(ctx, p, run, 1, a.trialReporter())
	}
	if a.Verbose && !a.AsJSON() {
		b.Check.Show = a.Said
	}
	found, err := b.Find(ctx)
	return a.bisectEnded(ctx, found, err)
}

// names are the definitions from good to bad.
func (f *bisectFlags) names(args []string) ([]string, error) {
	names := slices.Clone(f.versions)
	for _, arg := range args {
		names = append(names, written(arg))
	}
	if f.good != "" {
		names = slices.Insert(names, 0, f.good)
	}
	if f.bad != "" {
		names = append(names, f.bad)
	}
	switch {
	case len(f.versions) > 0 && len(args) > 0:
		return nil, usagef("--versions and arguments both say which versions there are: give one of the two")
	case (f.good == "") != (f.bad == "") && len(names) < 2, len(names) < 2:
		return nil, usagef("wf bisect needs a definition that is good and one that is bad: --good DEF --bad DEF")
	case f.repeat < 1:
		return nil, usagef("-n %d: want 1 or more", f.repeat)
	case f.trials < 0:
		return nil, usagef("--max-trials %d: want 1 or more", f.trials)
	case f.cost < 0 || f.cost > 1e9 || f.cost != f.cost:
		return nil, usagef("--max-cost %v: want an amount in dollars", f.cost)
	case !slices.Contains([]string{"", protocol.SandboxOn, protocol.SandboxOff}, f.check.Sandbox):
		return nil, usagef("--check-sandbox %s: want on or off", f.check.Sandbox)
	}
	_, err := protocol.ParseContext(f.Context)
	if err != nil {
		return nil, usagef("--context %s: want conversation, task or fresh", f.Context)
	}
	return names, nil
}

// chosenLists are the models that the flags name, by role.
func chosenLists(flags []string) map[string][]string {
	out := map[string][]string{}
	for role, list := range chosenModels(flags) {
		out[role] = list
	}
	return out
}

// trialReporter shows the runs of a bisect if the user asks for more detail.
func (a *app) trialReporter() func(render.Backdrop) render.Reporter {
	if a.Verbose && !a.AsJSON() {
		return a.Reporter
	}
	return render.Silent
}

// unfit is the error of a run that stopped for want of a model, a sandbox or a store.
func unfit(v *api.Run) error {
	if err := outcome(v); statusOf(err) == 4 || statusOf(err) == 5 {
		return err
	}
	return nil
}

// bisectEnded shows what a bisect found, or how far it came.
func (a *app) bisectEnded(ctx context.Context, found *api.Bisect, err error) error {
	if err == nil {
		return answer(a, found, nil, a.ShowBisect)
	}
	var sig signalled
	stopped := errors.As(context.Cause(ctx), &sig)
	if found != nil && (stopped || errors.Is(err, service.ErrBisectLimit) || errors.Is(err, protocol.ErrWaiting)) {
		if err := answer(a, found, nil, a.ShowBisect); err != nil {
			return err
		}
	}
	if stopped {
		return interrupted{errRunSuspended.With("the same command goes on", "%s; the bisect stopped, nothing is lost", sig), sig}
	}
	return err
}

// bisected finds a definition by what the user wrote.
func (a *app) bisected(ctx context.Context, p *target, name, workspace string, sub lang.Subs) (v service.BisectVersion, err error) {
	v.Name = name
	if name == "-" || files.Exists(name) {
		v.Definition, _, err = a.readValid(name)
		if err == nil {
			_, v.Path, err = places(name, workspace)
		}
		return v, err
	}
	served, err := p.here.Catalog.List()
	if err != nil {
		return v, err
	}
	for _, f := range served {
		if f.Name == name {
			v.Definition, _, err = a.readValid(f.Path)
			return v, err
		}
	}
	ref, err := p.besideTrials(ctx, name, p.find)
	if err == nil && ref.Step != "" {
		err = usagef("%s is a step: name its run", name)
	}
	if err != nil {
		return v, protocol.Hinted(err, "a definition is a file, the name of a workflow, a run or the CID of a definition")
	}
	def, file := ref.Block, filepath.Join(workspace, "definition.yaml")
	if ref.Run != "" {
		if err := p.here.Engine.Own(ctx, ref.Run); err != nil {
			return v, err
		}
		run, err := p.Run(ctx, ref.Run, api.Window{Limit: 1})
		if err != nil {
			return v, err
		}
		if def, err = protocol.ParseLink(run.Definition); err != nil {
			return v, err
		}
		if run.Info.File != "" {
			file = run.Info.File
		}
	}
	w, err := sub(def)
	if err != nil {
		return v, err
	}
	v.Definition, err = a.Reload(w, sub)
	v.Path = file
	return v, err
}

// subWorkflows finds the definition of a CID among the sub-workflows of the versions, else in the store.
func subWorkflows(ctx context.Context, p *target, versions func() []service.BisectVersion) lang.Subs {
	return func(l protocol.Link) (*protocol.Workflow, error) {
		for _, v := range versions() {
			if w := below(v.Program, l); w != nil {
				return w, nil
			}
		}
		raw, err := p.Block(ctx, l)
		if err != nil {
			return nil, err
		}
		var w protocol.Workflow
		if err := cas.Decode(raw, &w); err != nil || w.Kind != protocol.KindWorkflow {
			return nil, usagef("%s is no definition of a workflow", l)
		}
		return &w, nil
	}
}

func below(p *lang.Program, l protocol.Link) *protocol.Workflow {
	for link, child := range p.Children {
		if link == l {
			return child.Workflow
		}
		if w := below(child, l); w != nil {
			return w
		}
	}
	return nil
}

// givenToAny gathers the inputs, each of which a version declares.
func (a *app) givenToAny(versions []service.BisectVersion, f runFlags) (map[string]any, error) {
	declares := func(name string) *lang.Program {
		for _, v := range slices.Backward(versions) {
			if _, ok := v.Program.Workflow.Inputs[name]; ok {
				return v.Program
			}
		}
		return nil
	}
	bad := versions[len(versions)-1].Program
	given, err := a.given(func(name, text string) (any, error) {
		if p := declares(name); p != nil {
			return p.Coerce(name, text)
		}
		return text, nil
	}, f)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if declares(name) == nil {
			_, err := bad.Inputs(map[string]any{name: given[name]})
			return nil, protocol.Hinted(err, "no version declares it")
		}
	}
	return given, nil
}

// mayMix asks the person at the terminal about versions of which one has no walls. mixed reports whether one has none.
func (a *app) mayMix(ctx context.Context, versions []service.BisectVersion) (mixed bool, err error) {
	all := make([]compose.Definition, len(versions))
	for i, v := range versions {
		all[i] = v.Definition
	}
	x, mixed, err := a.AskMixed(all)
	if err != nil || len(x) == 0 {
		return mixed, err
	}
	if !a.interactive() {
		return mixed, x.MissingMixed()
	}
	return mixed, a.askTrust(ctx, "all versions, with any mixture of them running without a sandbox", x, false)
}
