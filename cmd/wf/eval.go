package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/cmd/internal/render"
	"wf/engine"
	"wf/engine/lang"
	"wf/files"
	"wf/protocol"
	"wf/service"
	"wf/service/compose"
)

type evalFlags struct {
	list      bool
	cases     []string
	tags      []string
	models    []string
	baseline  string
	update    string
	increase  float64
	junit     string
	repeat    int
	parallel  int
	cost      float64
	tokens    int64
	live      bool
	record    bool
	goesOn    bool
	sandbox   string
	context   string
	secretsOK []string
}

func newEval(a *app) *cobra.Command {
	var f evalFlags
	cmd := &cobra.Command{
		Use:   "eval SUITE",
		Short: "Run the cases of a suite, and fail on a regression",
		Long: `Run the cases of a suite against a workflow, each in its own copy of its files, and judge each run by what its case expects
and by its check. Tapes answer for the models where a case has one: then an evaluation costs nothing and needs no network.

With --baseline, an earlier result (-o json) or a run, what is worse than there is a regression. The exit status is 0
where every case passed, or with a baseline where nothing got worse and every new case passed. docs/eval.md describes suites.`,
		Example: `  wf eval evals/suite.yaml
  wf eval evals/suite.yaml --case 'refund-*' --tag fast

  # in CI: fail on what got worse since the baseline was written
  wf eval evals/suite.yaml --baseline evals/baseline.json --junit report.xml
  wf eval evals/suite.yaml --update-baseline evals/baseline.json

  # record the tapes anew, by live models
  wf eval evals/suite.yaml --record --max-cost 2

  # another model, ten times each
  wf eval evals/suite.yaml --live --model openai/gpt-5 -n 10 --parallel 4 --max-cost 5`,
		Args: takes(1, 1, "a suite"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("max-cost-increase") {
				f.increase = service.NoIncrease
			}
			return a.eval(cmd.Context(), args[0], f)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.list, "list", false, "list the cases, and run none")
	flags.StringArrayVar(&f.cases, "case", nil, "only cases whose name matches, such as 'refund-*'")
	flags.StringArrayVar(&f.tags, "tag", nil, "only cases with this tag")
	flags.StringArrayVar(&f.models, "model", nil, "model for every role, or role=model, in place of those of the suite; several are tried in order")
	flags.StringVar(&f.baseline, "baseline", "", "compare with an earlier result (a file of -o json), or with a run")
	flags.StringVar(&f.update, "update-baseline", "", "write the result to a file, for --baseline")
	flags.Float64Var(&f.increase, "max-cost-increase", 0, "with a baseline: the cost and tokens of a run may grow by so many percent (default: by any)")
	flags.StringVar(&f.junit, "junit", "", "write the result to a file as JUnit XML")
	flags.IntVarP(&f.repeat, "repeat", "n", 0, "so many runs of each case (default: as the suite says)")
	flags.IntVar(&f.parallel, "parallel", 0, "so many runs at the same time (default: as the suite says, else 1)")
	flags.Float64Var(&f.cost, "max-cost", 0, "stop when the runs cost so many dollars together (default: as the suite says)")
	flags.Int64Var(&f.tokens, "max-tokens", 0, "limit of the tokens of each run (default: as the suite and the workflow say)")
	flags.BoolVar(&f.live, "live", false, "ask the models, though cases have tapes")
	flags.BoolVar(&f.record, "record", false, "ask the models, once for each case, and keep what they answer as its tape")
	flags.BoolVar(&f.goesOn, "continue", false, "go on with an evaluation that was interrupted, or reached a limit (default: begin anew)")
	flags.StringVar(&f.sandbox, "check-sandbox", protocol.SandboxOn, "on or off: whether checks are confined; off wants trust in the suite")
	flags.StringVar(&f.context, "context", "", "how every agent sees its past: conversation, task or fresh")
	flags.StringArrayVar(&f.secretsOK, "allow-secret-input", nil, "an input that may hold a secret, which is then stored, shown and sent to models")
	a.driveFlags(flags)
	cmd.MarkFlagsMutuallyExclusive("live", "record")
	return cmd
}

// usable refuses flags that say nothing.
func (f *evalFlags) usable() error {
	switch {
	case f.repeat < 0 || f.repeat > 1000:
		return usagef("-n %d: want 1 to 1000", f.repeat)
	case f.parallel < 0 || f.parallel > 64:
		return usagef("--parallel %d: want 1 to 64", f.parallel)
	case f.cost < 0 || f.cost > 1e9 || f.cost != f.cost:
		return usagef("--max-cost %v: want an amount in dollars", f.cost)
	case f.tokens < 0:
		return usagef("--max-tokens %d: want more than 0", f.tokens)
	case f.increase != service.NoIncrease && (f.increase < 0 || f.increase > 1e6 || f.increase != f.increase):
		return usagef("--max-cost-increase %v: want percent, 0 or more", f.increase)
	case f.increase != service.NoIncrease && f.baseline == "":
		return usagef("--max-cost-increase compares with a baseline: give --baseline")
	case f.record && f.repeat > 1:
		return usagef("--record runs each case once: leave -n out")
	case f.update != "" && len(f.cases)+len(f.tags) > 0:
		return usagef("--update-baseline would drop the cases that --case and --tag leave out: run all of them")
	case !slices.Contains([]string{protocol.SandboxOn, protocol.SandboxOff}, f.sandbox):
		return usagef("--check-sandbox %s: want on or off", f.sandbox)
	}
	if _, err := protocol.ParseContext(f.context); err != nil {
		return usagef("--context %s: want conversation, task or fresh", f.context)
	}
	for _, glob := range f.cases {
		if _, err := path.Match(glob, ""); err != nil {
			return usagef("--case %s: no such pattern: %v", glob, err)
		}
	}
	return nil
}

// suiteMax bounds the text of a suite.
const suiteMax = 4 << 20

func (a *app) eval(ctx context.Context, file string, f evalFlags) error {
	if err := f.usable(); err != nil {
		return err
	}
	e, err := a.suite(file)
	if err != nil {
		return err
	}
	if e.Chosen, err = f.chosen(e.Suite); err != nil {
		return err
	}
	if f.list {
		return a.listCases(e)
	}
	if err := f.into(e); err != nil {
		return err
	}
	for role := range e.Models {
		if !service.HasAgent(e.Definition.Program, role) {
			return usagef("--model %s=…: the workflow has no agent %q", role, role)
		}
	}
	if err := a.mayEvaluate(ctx, e); err != nil {
		return err
	}
	junit, err := outFile(f.junit)
	if err != nil {
		return err
	}
	defer junit.close()
	update, err := outFile(f.update)
	if err != nil {
		return err
	}
	defer update.close()
	return a.atNew(ctx, func(p *target) error {
		e.Local = p.here.Local
		base, err := a.baselineOf(ctx, p, e, f.baseline)
		if err != nil {
			return err
		}
		found, err := a.evaluate(ctx, p, e, func(found *api.Eval) {
			if base != nil {
				found.Baseline = f.baseline
				found.Regressions, found.Changes = service.CompareEval(base, found, f.increase, len(f.cases)+len(f.tags) == 0 && len(base.Cases) > 1)
			}
		})
		return a.evalEnded(ctx, found, err, evalFiles{junit, update, f.update})
	})
}

// suite reads a suite and its workflow.
func (a *app) suite(file string) (*service.Evaluator, error) {
	source, err := files.ReadNamed(file, suiteMax)
	if err != nil {
		if p, ok := errors.AsType[*os.PathError](err); ok {
			err = p.Err
		}
		return nil, protocol.ErrInvalid.With("check the path; docs/eval.md describes suites", "%s: %v", file, err)
	}
	dir, err := filepath.Abs(filepath.Dir(files.Real(file)))
	if err != nil {
		return nil, err
	}
	e := &service.Evaluator{File: file, Dir: files.Real(dir), Source: source}
	broken := false
	suite, ds := lang.ReadSuite(source, file, func(name string) (*lang.Program, error) {
		d, err := a.ReadBeside(e.Dir, name)
		if err != nil {
			return nil, err
		}
		if d.Program == nil {
			broken = true
			_, err := a.valid(d)
			return nil, err
		}
		e.Definition = d
		return d.Program, nil
	})
	if len(ds) > 0 {
		lang.Render(a.Err, source, ds, a.Err.Color)
		if render.InActions() {
			for _, d := range ds {
				fmt.Fprintln(a.Err, annotation(d))
			}
		}
	}
	if suite == nil {
		hint := "correct what is named above; docs/eval.md describes suites"
		if broken {
			hint = "correct what is named above; wf validate checks the workflow again"
		}
		return nil, protocol.ErrInvalid.With(hint, "%s is not a valid suite; nothing ran", file)
	}
	e.Suite = suite
	return e, nil
}

// chosen are the cases that --case and --tag choose.
func (f *evalFlags) chosen(s *lang.Suite) (out []int, err error) {
	matched := map[string]bool{}
	for i, c := range s.Cases {
		named := len(f.cases) == 0
		for _, glob := range f.cases {
			if ok, _ := path.Match(glob, c.Name); ok || glob == c.Name {
				named, matched[glob] = true, true
			}
		}
		if named && (len(f.tags) == 0 || slices.ContainsFunc(f.tags, func(t string) bool { return slices.Contains(c.Tags, t) })) {
			out = append(out, i)
		}
	}
	for _, glob := range f.cases {
		if !matched[glob] {
			return nil, protocol.ErrUsage.With("wf eval SUITE --list shows the cases", "--case %s: no case has such a name", glob)
		}
	}
	if len(out) == 0 {
		return nil, protocol.ErrUsage.With("wf eval SUITE --list shows the cases and their tags", "no case is left to run")
	}
	return out, nil
}

func (a *app) listCases(e *service.Evaluator) error {
	out := api.EvalList{Schema: "wf.evallist/v1", Suite: e.File, Workflow: e.Definition.Program.Workflow.Name, Cases: []api.EvalListed{}}
	for _, i := range e.Chosen {
		c := &e.Suite.Cases[i]
		out.Cases = append(out.Cases, api.EvalListed{Name: c.Name, Line: c.Line, Tags: append([]string{}, c.Tags...), N: c.N, Pass: c.Pass, Tape: c.Tape, Files: c.Files, Check: c.Check})
	}
	if a.AsJSON() {
		return render.AnswerAll(a.Printer, out, out.Cases)
	}
	return a.ShowCases(out.Cases)
}

// into puts the flags into an evaluation.
func (f *evalFlags) into(e *service.Evaluator) error {
	e.Repeat, e.Live, e.Record, e.GoesOn, e.Sandbox, e.Tokens = f.repeat, f.live, f.record, f.goesOn, f.sandbox, f.tokens
	e.Side = max(f.parallel, e.Suite.Parallel, 1)
	if f.parallel > 0 {
		e.Side = f.parallel
	}
	if e.Cost = int64(math.Round(f.cost * 1e6)); e.Cost == 0 {
		e.Cost = e.Suite.MaxCost
	}
	if len(f.models) > 0 {
		e.Models = chosenLists(f.models)
	}
	if f.record {
		seen := map[string]string{}
		for _, i := range e.Chosen {
			c := &e.Suite.Cases[i]
			if c.Tape == "" {
				return protocol.ErrUsage.With("add to the case, at line "+fmt.Sprint(c.Line)+":  tape: tapes/NAME.jsonl; or leave the case out with --case", "--record: case %q names no tape", c.Name)
			}
			if other, twice := seen[path.Clean(c.Tape)]; twice {
				return protocol.ErrUsage.With("give each case a tape of its own, or record one of the two with --case", "--record: the cases %q and %q have the same tape", other, c.Name)
			}
			seen[path.Clean(c.Tape)] = c.Name
		}
	}
	here, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find the directory: %w", err)
	}
	e.Launch = engine.Launch{Tags: []string{"eval"}, CreatedBy: compose.User(), Place: here, Context: protocol.ContextMode(f.context), AllowSecretInputs: f.secretsOK}
	return nil
}

// mayEvaluate asks the person at the terminal about what wants trust.
func (a *app) mayEvaluate(ctx context.Context, e *service.Evaluator) error {
	if err := a.mayRun(ctx, e.Definition.Program, e.Definition); err != nil {
		return err
	}
	checks := slices.ContainsFunc(e.Chosen, func(i int) bool { return e.Suite.Cases[i].Check != "" })
	if e.Sandbox != protocol.SandboxOff || !checks {
		return nil
	}
	x, err := a.AskSuite(e.File, e.Source)
	if err != nil || len(x) == 0 {
		return err
	}
	if !a.interactive() {
		return x.MissingSuite()
	}
	return a.askTrust(ctx, "the checks of this suite", x, false)
}

// baselineMax bounds a file that is compared with.
const baselineMax = 256 << 20

// baselineOf is what an evaluation is compared with; nil is nothing.
func (a *app) baselineOf(ctx context.Context, p *target, e *service.Evaluator, given string) (*api.Eval, error) {
	if given == "" {
		return nil, nil
	}
	if !files.Exists(given) {
		ref, err := p.besideTrials(ctx, given, p.find)
		if err == nil {
			err = ref.MustBeRun(given)
		}
		if err != nil {
			return nil, protocol.Hinted(err, "a baseline is a file that wf eval -o json or --update-baseline wrote, or a run")
		}
		return e.Baseline(ctx, ref.Run)
	}
	b, err := files.ReadNamed(given, baselineMax)
	if err != nil {
		return nil, protocol.ErrUsage.With("", "--baseline %s: %v", given, err)
	}
	var base api.Eval
	if err := json.Unmarshal(b, &base); err != nil || base.Schema != api.EvalSchema {
		if err == nil {
			err = fmt.Errorf("its schema is %q, not %s", base.Schema, api.EvalSchema)
		}
		return nil, protocol.ErrUsage.With("write one with --update-baseline", "--baseline %s is no result of wf eval: %v", given, err)
	}
	return &base, nil
}

// evaluate runs the cases, and has what was found compared.
func (a *app) evaluate(ctx context.Context, p *target, e *service.Evaluator, compare func(*api.Eval)) (*api.Eval, error) {
	if e.Record {
		a.Tap()
	}
	wide := 0
	for _, i := range e.Chosen {
		wide = max(wide, len([]rune(e.Suite.Cases[i].Name)))
	}
	table := a.NewEvalTable(len(e.Chosen), wide)
	defer table.Close()
	e.Begin = p.here.Begin
	e.Follow = func(ctx context.Context, run protocol.RunID) error {
		return p.Follow(ctx, run, api.Following{Until: api.Parked}, func(api.Update) error { return nil })
	}
	shown := &filling{a: a, ctx: ctx, l: p.here.Local, anew: !e.GoesOn}
	defer shown.close()
	name := filepath.Join(e.Dir, filepath.Base(e.File))
	e.Unfit, e.Fatal = unfit, func(err error) bool { return statusOf(err) == 5 }
	e.Tell = func(all *api.Eval, c *api.EvalCase, r *api.EvalRun) {
		table.Tell(all, c, r)
		shown.put(name, render.EvalPage(all))
	}
	if a.Verbose && !a.AsJSON() {
		e.Show = table.Said
	}
	found, err := e.Evaluate(ctx)
	if found != nil {
		compare(found)
		shown.put(name, render.EvalPage(found))
	}
	return found, err
}
