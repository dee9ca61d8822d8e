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
	"wf/engine/lang"
	"wf/protocol"
	"wf/roles/workspace"
	"wf/service/compose"
)

// An Evaluator runs the cases of a suite in the store of its Local, and judges what became of them.
//
//	case ──n times──► copy of its files ─► run (tape or live model) ─► expectations, check ─► verdict
//	verdicts ─► pass rate of the case ─► compared with a baseline (CompareEval)
//
// The runs are performed side by side, within what they may cost together. What was judged is noted: an evaluation that was
// interrupted can go on.
type Evaluator struct {
	*Local
	Suite      *lang.Suite
	Definition compose.Definition // of its workflow
	File       string             // of the suite, as given
	Dir        string             // of the suite, absolute and without links: what its cases name lies there
	Source     []byte             // of the suite

	Chosen  []int                   // places in Suite.Cases, in their order
	Launch  engine.Launch           // of each run, but for what follows from its case
	Models  map[string][]string     // as Launch.Models, in place of those of the suite; nil leaves them
	Live    bool                    // models answer in place of tapes
	Record  bool                    // so, and what they answer becomes the tape of the case
	Repeat  int                     // runs of each case; 0 is as it says
	Side    int                     // runs at the same time, at least 1
	Cost    int64                   // of all runs, in micro-dollars; 0 is no bound
	Tokens  int64                   // of each run; 0 is as its case says
	Sandbox string                  // of checks: SandboxOff has them run as the user
	Show    func(name, line string) // is called with each line that the check of a case writes; nil is not
	GoesOn  bool                    // with what the last call for this suite left undone

	// Begin begins a run. Follow drives it until it waits, is suspended or has ended.
	Begin  func(context.Context, engine.Launch) (run protocol.RunID, fresh bool, err error)
	Follow func(context.Context, protocol.RunID) error
	// Unfit is the error of a run that stopped for want of a model or of something else around it, which says nothing
	// about its workflow. Fatal are the errors that end the evaluation.
	Unfit func(*api.Run) error
	Fatal func(error) bool
	// Tell is called, by one goroutine at a time, with a run that begins or has ended, or, without one, with a case that is
	// decided.
	Tell func(*api.Eval, *api.EvalCase, *api.EvalRun)
}

// ErrEvalLimit ends an evaluation whose runs cost what they may.
var ErrEvalLimit = &protocol.Error{Code: "limit_reached", Message: "the evaluation reached its limit", Hint: "with --continue and a higher limit it goes on"}

// evaluation is one under way.
type evaluation struct {
	*Evaluator
	out   *api.Eval
	notes *evalNotes
	purse *purse
	live  bool // models answer where no tape does, not scripts
	most  int64

	mu    sync.Mutex // of out, left, decks and Tell
	left  []int      // runs of each chosen case that are not over
	tapes *tapeShelf
}

// Evaluate runs the chosen cases. Where it is interrupted or ends by an error, what it has found so far is in the answer, beside
// the error.
func (e *Evaluator) Evaluate(ctx context.Context) (_ *api.Eval, err error) {
	def, err := e.Definition.Program.Block()
	if err != nil {
		return nil, err
	}
	x := &evaluation{Evaluator: e, out: &api.Eval{Schema: api.EvalSchema, Suite: e.File, Workflow: e.Definition.Program.Workflow.Name, Definition: api.CID(def.Link.String()), Cases: []api.EvalCase{}}}
	if err := x.prepare(ctx); err != nil {
		return nil, err
	}
	if x.notes, err = e.openNotes(def.Link); err != nil {
		return nil, err
	}
	for _, r := range x.notes.before {
		x.purse.spend(r.CostUSD)
	}
	x.tapes = &tapeShelf{x: x, open: map[string]*shelved{}, cases: map[string]int{}}
	err = x.perform(ctx)
	x.sum()
	x.out.Complete = err == nil && !slices.ContainsFunc(x.out.Cases, func(c api.EvalCase) bool { return c.Verdict == api.EvalOpen || c.Verdict == api.EvalCut })
	return x.out, errors.Join(err, x.notes.close(false))
}

// prepare chooses the models, and refuses what cannot be kept to.
func (x *evaluation) prepare(ctx context.Context) (err error) {
	p := x.Definition.Program
	models := x.Models
	if models == nil {
		models = x.Suite.Models
	}
	if models, err = x.usable(ctx, models); err != nil {
		return err
	}
	if len(models) == 0 {
		models = nil
	}
	x.Launch.Models = models
	if err := x.SecretsSet(p); err != nil {
		return err
	}
	known, err := x.PurseOf(p, models)
	if err != nil {
		return err
	}
	x.live, x.most = known.Live, known.Dearest
	x.purse = newPurse(x.Cost, x.Side)
	if x.Cost == 0 || len(known.Unpriced) == 0 {
		return nil
	}
	for _, i := range x.Chosen {
		if c := &x.Suite.Cases[i]; !x.taped(c) && x.tokens(c) == 0 {
			return protocol.ErrPrice.With("set the price of the model (prices: in the config), or bound the tokens of each run: --max-tokens N, or max_tokens: in the suite",
				"the cost limit cannot hold: %s has no price, and case %q no limit of tokens", strings.Join(known.Unpriced, ", "), c.Name)
		}
	}
	return nil
}

// usable resolves the models of the workflow, where a case asks them.
func (x *evaluation) usable(ctx context.Context, given map[string][]string) (map[string][]string, error) {
	if !slices.ContainsFunc(x.Chosen, func(i int) bool { return !x.taped(&x.Suite.Cases[i]) }) {
		return given, nil
	}
	copied := map[string][]string{}
	for role, list := range given {
		copied[role] = list
	}
	models, _, err := x.ResolveModels(ctx, x.Definition.Program, copied)
	return models, err
}

// taped reports whether a tape answers for the models of a case.
func (x *evaluation) taped(c *lang.SuiteCase) bool { return c.Tape != "" && !x.Live && !x.Record }

// tokens is the limit of the tokens of a run of a case that it or the evaluation sets, 0 where neither does, nor its
// workflow.
func (x *evaluation) tokens(c *lang.SuiteCase) int64 {
	most := x.Definition.Program.Workflow.Limits.Tokens
	for _, n := range []int64{x.Tokens, c.MaxTokens} {
		if n > 0 && (most == 0 || n < most) {
			most = n
		}
	}
	return most
}

func (x *evaluation) repeats(c *lang.SuiteCase) int {
	switch {
	case x.Record:
		return 1
	case x.Repeat > 0:
		return x.Repeat
	}
	return c.N
}

// job is one run of a case.
type job struct {
	c    *lang.SuiteCase
	at   int // of the case in out.Cases
	k    int // of the run
	name string
}

// perform performs all runs, so many at the same time.
func (x *evaluation) perform(ctx context.Context) error {
	var jobs []job
	for at, i := range x.Chosen {
		c := &x.Suite.Cases[i]
		n := x.repeats(c)
		x.tapes.cases[c.Tape]++
		out := api.EvalCase{Name: c.Name, Line: c.Line, Tags: c.Tags, Verdict: api.EvalOpen, Pass: c.Pass, Runs: make([]api.EvalRun, n), CostUSD: new(0.0)}
		for k := range n {
			out.Runs[k].Verdict = api.EvalOpen
			jobs = append(jobs, job{c, at, k, fmt.Sprintf("%d-%d", i, k)})
		}
		x.out.Cases, x.left = append(x.out.Cases, out), append(x.left, n)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	next := make(chan job)
	go func() {
		defer close(next)
		for _, j := range jobs {
			select {
			case next <- j:
			case <-ctx.Done():
				return
			}
		}
	}()
	var work sync.WaitGroup
	for range min(x.Side, len(jobs)) {
		work.Go(func() {
			for j := range next {
				if ctx.Err() != nil {
					return
				}
				if err := x.job(ctx, j); err != nil {
					stop(err)
				}
			}
		})
	}
	work.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// job performs a run, and tells of it. Its error ends the evaluation.
func (x *evaluation) job(ctx context.Context, j job) error {
	if r, known := x.notes.known[j.name]; known {
		r.Remembered = true
		x.tell(j, r, true)
		return nil
	}
	x.tell(j, api.EvalRun{Verdict: api.EvalOpen}, false)
	r, dir, err := x.run(ctx, j)
	switch {
	case err == nil && (ctx.Err() == nil || r.Verdict == api.EvalPassed):
	case ctx.Err() != nil:
		r.Verdict, r.Wrong, r.Exit, r.Why = api.EvalOpen, nil, nil, "" // it goes on another time
	case x.Fatal(err):
		return err
	default:
		r = withError(r, err)
	}
	if err = x.notes.write(evalNote{j.name, r}); err == nil && r.Verdict == api.EvalPassed {
		err = workspace.RemoveAll(dir)
	}
	x.tell(j, r, true)
	return err
}

// whyKept is how much of an error stands in the answer, in bytes.
const whyKept = 4 << 10

// withError is a run with an error that says nothing about its workflow.
func withError(r api.EvalRun, err error) api.EvalRun {
	if r.Run == "" {
		r.CostUSD = new(0.0) // nothing ran
	}
	flat := protocol.Flat(err)
	r.Verdict, r.Why, r.Code, r.Hint = api.EvalError, lang.CutText(flat.Message, whyKept), flat.Code, lang.CutText(protocol.HintOf(err), whyKept)
	return r
}

// tell puts a run into the answer.
func (x *evaluation) tell(j job, r api.EvalRun, over bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	c := &x.out.Cases[j.at]
	c.Runs[j.k] = r
	x.Tell(x.out, c, &c.Runs[j.k])
	if !over {
		return
	}
	if x.left[j.at]--; x.left[j.at] == 0 {
		x.tapes.drop(j.c.Tape)
		x.decide(c)
		x.Tell(x.out, c, nil)
	}
}

// decide says what became of a case.
func (x *evaluation) decide(c *api.EvalCase) {
	c.Verdict, c.Why, c.Code, c.Hint, c.Tape, c.Tokens, c.CostUSD = "", "", "", "", nil, 0, new(0.0)
	passed, n, chance := 0, 0, x.live
	worst := map[api.EvalVerdict]*api.EvalRun{}
	for i := range c.Runs {
		r := &c.Runs[i]
		c.Tokens += r.Tokens
		if r.Run != "" { // else nothing ran
			c.CostUSD = added(c.CostUSD, r.CostUSD)
		}
		if r.Tape != nil {
			chance = false
			c.Tape = mergedTape(c.Tape, r.Tape)
		}
		switch r.Verdict {
		case api.EvalPassed:
			passed, n = passed+1, n+1
		case api.EvalFailed:
			n++
		}
		if worst[r.Verdict] == nil {
			worst[r.Verdict] = r
		}
	}
	c.Rate = api.NewPassRate(passed, n, chance)
	for _, v := range []api.EvalVerdict{api.EvalOpen, api.EvalError, api.EvalCut} {
		if r := worst[v]; r != nil {
			c.Verdict, c.Why, c.Code, c.Hint = v, r.Why, r.Code, r.Hint
			return
		}
	}
	c.Verdict = api.EvalPassed
	if float64(passed) < c.Pass*float64(n)-1e-9 {
		c.Verdict = api.EvalFailed
	}
	if r := worst[api.EvalFailed]; r != nil {
		c.Why = strings.Join(r.Wrong, "\n")
	}
}

func added(sum, more *float64) *float64 {
	if sum == nil || more == nil {
		return nil
	}
	return new(*sum + *more)
}

func mergedTape(a, b *api.EvalTape) *api.EvalTape {
	if a == nil {
		return new(*b)
	}
	out := *a
	out.Requests, out.Differed, out.Missed = a.Requests+b.Requests, a.Differed+b.Differed, a.Missed+b.Missed
	if b.Match == tapeSequence {
		out.Match = tapeSequence
	}
	return &out
}

// sum counts the cases and runs.
func (x *evaluation) sum() {
	o := x.out
	o.CostUSD = new(0.0)
	for i := range o.Cases {
		c := &o.Cases[i]
		if x.left[i] > 0 { // it was interrupted
			x.decide(c)
			c.Verdict = api.EvalOpen
			c.Runs = slices.DeleteFunc(c.Runs, func(r api.EvalRun) bool { return r.Run == "" && r.Verdict == api.EvalOpen })
		}
		switch c.Verdict {
		case api.EvalPassed:
			o.Passed++
		case api.EvalFailed:
			o.Failed++
		case api.EvalError:
			o.Errors++
		case api.EvalCut:
			o.Cut++
		}
		for _, r := range c.Runs {
			if r.Run != "" {
				o.Runs++
			}
		}
		o.Tokens, o.CostUSD = o.Tokens+c.Tokens, added(o.CostUSD, c.CostUSD)
	}
}
