package service

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"wf/api"
	"wf/engine"
	"wf/engine/lang"
	"wf/engine/rules"
	"wf/protocol"
	"wf/protocol/tree"
	"wf/roles/workspace"
	"wf/service/compose"
)

// A Sweeper tries models, definitions and inputs side by side, each in files of its own, and has what they made checked.
//
//	models × definitions × inputs × N ─► trials ─► forks of one state, or new runs ─► check ─► a cell of the table each
//
// Trials that were completed are remembered under the same origin and check: with the same arguments, or with more models,
// definitions, inputs or trials, the sweep goes on. Runs have request ids of what they try, so that one that had begun is found
// again.
type Sweeper struct {
	*Local
	Origin      protocol.RunID // the run that all trials are forks of; "" begins runs of their own
	Step        string         // of Origin, where they begin
	After       bool           // they keep the step
	Definitions []BisectVersion
	Models      []SweepModel
	Inputs      []SweepInput
	N           int

	Launch engine.Launch // of each run, but for what its cell says; of forks the tags alone
	Check  Check

	Parallel    int
	MaxCost     int64 // of all trials together, in micro-dollars; 0 is no bound
	TrialCost   int64 // of one, behind the fork point
	TrialTokens int64
	Limits      []protocol.LimitChanged // of steps and duration of each run
	Anew        bool

	// Begin begins a run, and Drive drives it until it stops; asked is called when a model has answered in it. Both are called
	// side by side.
	Begin func(context.Context, engine.Launch) (run protocol.RunID, fresh bool, err error)
	Drive func(ctx context.Context, run protocol.RunID, limits []protocol.LimitChanged, asked func()) error
	// Tell is called at the beginning without a trial, then when a trial begins and when it ends; never side by side.
	Tell func(*api.Sweep, *api.SweepTrial)
}

// Failures of a sweep that are not those of a run.
var (
	ErrSweepLimit = &protocol.Error{Code: "limit_reached", Message: "limits cut trials of the sweep", Hint: "the same command with higher limits goes on"}
	ErrSweepOpen  = &protocol.Error{Code: "trials_open", Message: "not all trials were completed", Hint: "the same command tries them again"}
)

// sweep is a sweep under way.
type sweep struct {
	*Sweeper
	out    *api.Sweep
	notes  *trialNotes[sweepNote]
	cells  []sweepCell
	trials []sweepTrial
	names  []string // of the trials, as notes and places have them

	at     protocol.Seq  // fork point
	tree   protocol.Link // of the files there
	state  *rules.State  // there; nil without a fork
	shared usedUntil     // what was used until there

	mu    sync.Mutex // for out, queue and notes
	queue *sweepQueue
	moved *sync.Cond // on mu
}

// sweepNote is a trial that was completed.
type sweepNote struct {
	Name  string         `json:"name"`
	Trial api.SweepTrial `json:"trial"`
}

func (x sweepNote) key() string {
	if x.Trial.Run == "" {
		return ""
	}
	return x.Name
}

// Sweep tries all. Where it is interrupted, or trials were cut or not completed, what there is is in the answer, beside the error.
func (b *Sweeper) Sweep(ctx context.Context) (_ *api.Sweep, err error) {
	s := &sweep{Sweeper: b, out: &api.Sweep{Schema: api.SweepSchema, Check: b.Check.Command, N: b.N, Definitions: []api.SweepDefinition{}}}
	s.moved = sync.NewCond(&s.mu)
	if err := s.from(ctx); err != nil {
		return nil, err
	}
	arguments, err := s.summary()
	if err != nil {
		return nil, err
	}
	if s.notes, err = openNotes[sweepNote]("sweep", arguments, b.Launch.Workspace, false, b.Anew); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.tidy(), s.notes.close(false)) }()
	s.out.Tag = "sweep-" + s.notes.name
	if err := s.plan(ctx); err != nil {
		return nil, err
	}
	if err := s.run(ctx); err != nil {
		return s.out, err
	}
	return s.out, s.ended()
}

// tidy removes the files of trials that were completed, where a process was killed before it had.
func (s *sweep) tidy() error {
	var errs []error
	for i, t := range s.out.Trials {
		if !t.State.Completed() {
			continue
		}
		left, err := filepath.Glob(filepath.Join(s.notes.dir, "work", s.names[i]+"-*"))
		errs = append(errs, err)
		for _, dir := range left {
			errs = append(errs, workspace.RemoveAll(dir))
		}
	}
	return errors.Join(errs...)
}

// from finds the state that all trials begin with.
func (s *sweep) from(ctx context.Context) (err error) {
	if s.Origin == "" {
		return nil
	}
	if err := s.Engine.Own(ctx, s.Origin); err != nil {
		return err
	}
	if s.at, err = ForkPoint(ctx, s.Store, s.Origin, s.Step, s.After); err != nil {
		return err
	}
	if s.tree, err = s.forkFiles(ctx, s.Origin, api.Fork{Step: s.Step, After: s.After}, s.at); err != nil {
		return err
	}
	if err := s.tellOmitted(ctx); err != nil {
		return err
	}
	if s.state, err = s.Engine.StateAt(ctx, s.Origin, s.at); err != nil {
		return err
	}
	if s.shared, err = s.usedBy(ctx, s.Origin, 0, s.at); err != nil {
		return err
	}
	v, err := s.Engine.ViewWindow(ctx, s.Origin, api.Window{Limit: 1, At: s.at})
	if err != nil {
		return err
	}
	s.shared.ms = v.ActiveMS
	s.out.Of = &api.SweepOrigin{Run: s.Origin, Step: s.Step, After: s.After, Seq: s.at, Shared: s.shared.usage}
	if len(s.Definitions) == 0 {
		p := s.state.Program()
		s.Definitions = []BisectVersion{{Name: string(s.Origin), Definition: compose.Definition{Program: p}}}
	}
	return nil
}

// tellOmitted names the files that the run could not record: no trial has them.
func (s *sweep) tellOmitted(ctx context.Context) error {
	var all []string
	for it, err := range tree.Walk(func(l protocol.Link) ([]byte, error) { return s.Store.Block(ctx, l) }, s.tree) {
		if err != nil {
			return api.NotKept(s.Origin, s.tree, err)
		}
		if it.Mode == tree.Omitted {
			all = append(all, fmt.Sprintf("no trial has %q: it was not recorded: %s", it.Path, it.Why))
		}
	}
	for _, what := range cut(all) {
		s.Tellf("warning: %s", what)
	}
	return nil
}

// summary is what completed trials are remembered under.
func (s *sweep) summary() ([]byte, error) {
	x := struct {
		Store, Dir, Check, Of string
		Context               protocol.ContextMode
		Secrets               []string
	}{Store: s.Store.Dir(), Check: strings.TrimSpace(s.Check.Command) + "\n" + s.Check.Sandbox, Context: s.Launch.Context, Secrets: s.Launch.AllowSecretInputs}
	if s.Origin != "" {
		x.Of = fmt.Sprintf("%s:%s %v", s.Origin, s.Step, s.After)
	} else {
		x.Dir, x.Of = s.Launch.Workspace, "workflow "+s.Definitions[0].Program.Workflow.Name
	}
	return json.Marshal(x)
}

// plan makes the cells and the trials, and refuses what no limit can hold.
func (s *sweep) plan(ctx context.Context) error {
	for _, d := range s.Definitions {
		def, err := d.Program.Block()
		if err != nil {
			return err
		}
		s.out.Definitions = append(s.out.Definitions, api.SweepDefinition{Name: d.Name, Definition: api.CID(def.Link.String())})
	}
	s.cells = sweepCells(s.Models, len(s.Definitions), s.Inputs)
	if n := len(s.cells) * s.N; n > sweepMostTrials {
		return protocol.ErrUsage.With("name fewer models, definitions, inputs or trials", "%d trials, and a sweep has at most %d", n, sweepMostTrials)
	}
	for i := range s.cells {
		c := &s.cells[i]
		inputs, err := json.Marshal(c.inputs)
		if err != nil {
			return err
		}
		canonical, err := protocol.CanonicalizeJSON(inputs)
		if err != nil {
			return err
		}
		s.out.Cells = append(s.out.Cells, api.SweepCell{Models: c.models, Definition: c.definition, Inputs: canonical})
		if err := s.admitted(c); err != nil {
			return err
		}
	}
	s.trials = sweepTrials(s.cells, s.N, func(cell int) bool { return s.program(cell).HasAgent() })
	for i := range s.trials {
		t := &s.trials[i]
		t.most = sweepMost(s.limitsOf(s.program(t.cell)).Cost, s.shared.micro(), s.TrialCost, s.MaxCost, len(s.trials))
		s.names = append(s.names, s.nameOf(t))
		s.out.Trials = append(s.out.Trials, api.SweepTrial{Cell: t.cell, N: t.n, State: api.SweepOpen, Usage: api.SweepUsage{CostUSD: new(0.0)}})
	}
	if all := slices.Sorted(slices.Values(s.names)); len(slices.Compact(all)) < len(s.names) {
		return protocol.ErrUsage.With("name each value of an input once", "some of the trials are the same")
	}
	s.queue = newSweepQueue(s.trials, s.Parallel, s.MaxCost)
	for i, name := range s.names {
		if known, ok := s.notes.known[name]; ok {
			was := known.Trial
			was.Cell, was.N, was.Remembered = s.trials[i].cell, s.trials[i].n, true
			s.out.Trials[i] = was
			s.queue.known(i, microOf(was.Usage))
		}
	}
	s.out.Sum()
	return nil
}

// sweepMostTrials bounds the trials of one sweep.
const sweepMostTrials = 2000

func (s *sweep) program(cell int) *lang.Program {
	return s.Definitions[s.cells[cell].definition].Program
}

// limitsOf are the limits of a run of a definition; those of a fork are as its origin has them.
func (s *sweep) limitsOf(p *lang.Program) protocol.Limits {
	if s.state != nil {
		return s.state.Limits
	}
	return p.Workflow.Limits
}

// admitted refuses a cell that cannot be what it promises: one whose models have no price, where money is bounded and no limit of
// tokens holds in its place, or whose definition wants trust or a sandbox.
func (s *sweep) admitted(c *sweepCell) error {
	d := s.Definitions[c.definition]
	limits := s.limitsOf(d.Program)
	if s.MaxCost > 0 || s.TrialCost > 0 {
		limits.Cost = cmp.Or(limits.Cost, s.TrialCost, s.MaxCost)
	}
	if s.TrialTokens > 0 {
		limits.Tokens = s.TrialTokens
	}
	err := s.Engine.Admit(engine.Candidate{Program: d.Program, File: s.file(d), Workspace: s.Launch.Workspace, Models: s.modelsOf(c), Limits: limits, New: s.state == nil, Fork: s.state != nil, Run: s.Origin})
	switch {
	case errors.Is(err, protocol.ErrPrice):
		return protocol.Hinted(err, "set the price of the model (wf help config), or bound tokens in place of money: --trial-tokens 500000")
	case errors.Is(err, protocol.ErrModel): // others may be reached: its trials say so
		return nil
	}
	return err
}

func (s *sweep) file(d BisectVersion) string {
	if d.Path == "" && s.state != nil {
		return s.state.Info.File
	}
	return d.Path
}

// modelsOf are the models of a cell, as a run has them.
func (s *sweep) modelsOf(c *sweepCell) map[string][]string {
	out := map[string][]string{}
	if s.state != nil {
		maps.Copy(out, s.state.Info.Models)
	} else {
		maps.Copy(out, s.Launch.Models)
	}
	if _, every := c.models[""]; every {
		clear(out)
	}
	for role, m := range c.models {
		if HasAgent(s.Definitions[c.definition].Program, role) {
			out[role] = []string{m}
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// nameOf tells a trial from all others under the same summary, whatever else is swept.
func (s *sweep) nameOf(t *sweepTrial) string {
	c := &s.cells[t.cell]
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\x00%s\x00%s", s.out.Definitions[c.definition].Definition, sweepModels(c.models), s.out.Cells[t.cell].Inputs)
	return fmt.Sprintf("%s-%d", hex.EncodeToString(sum.Sum(nil)[:10]), t.n)
}

// run has trials begin as the queue says, until all have ended.
func (s *sweep) run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	release := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.moved.Broadcast()
	})
	defer release()
	var failed error
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Tell(s.out, nil)
	for {
		i, more := s.queue.next()
		switch {
		case ctx.Err() != nil && s.queue.under == 0:
			if failed == nil {
				failed = context.Cause(ctx)
			}
			return failed
		case ctx.Err() != nil, i < 0 && more:
			s.moved.Wait()
			continue
		case i < 0:
			for _, k := range s.queue.left() {
				t := &s.out.Trials[k]
				t.State, t.Why = api.SweepCut, "the other trials left too little of --max-cost"
				s.told(t)
			}
			return nil
		}
		s.queue.begin(i)
		s.out.Performed++
		go func() {
			err := s.trial(ctx, i)
			s.mu.Lock()
			defer s.mu.Unlock()
			t := &s.out.Trials[i]
			s.queue.end(i, microOf(t.Usage))
			if err != nil {
				if t.State == api.SweepRuns {
					t.State = api.SweepOpen
				}
				if failed == nil {
					failed = err
				}
				stop(err)
			}
			s.told(t)
			s.moved.Broadcast()
		}()
	}
}

// told tells of a trial; s.mu is held.
func (s *sweep) told(t *api.SweepTrial) {
	s.out.Sum()
	s.Tell(s.out, t)
}

// change changes a trial.
func (s *sweep) change(i int, how func(*api.SweepTrial)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how(&s.out.Trials[i])
}

// ended is the error of a sweep of which trials are missing.
func (s *sweep) ended() error {
	errs, cuts := 0, 0
	why := ""
	for _, t := range s.out.Trials {
		switch t.State {
		case api.SweepError:
			errs++
			why = cmp.Or(why, t.Why)
		case api.SweepCut:
			cuts++
			why = cmp.Or(why, t.Why)
		}
	}
	all := protocol.Plural(len(s.out.Trials), "trial")
	switch {
	case errs > 0:
		return ErrSweepOpen.With("", "%d of %s ended with an error, %d were cut by a limit: %s", errs, all, cuts, why)
	case cuts > 0:
		return ErrSweepLimit.With("the same command with a higher --max-cost, --trial-cost, --trial-tokens or --limit goes on", "%d of %s were cut by a limit: %s", cuts, all, why)
	}
	return nil
}

// anyAgent reports whether an agent may have written what the check of a trial executes.
func (s *sweep) anyAgent() bool {
	return s.state != nil && s.state.Program().HasAgent() || slices.ContainsFunc(s.Definitions, func(d BisectVersion) bool { return d.Program.HasAgent() })
}
