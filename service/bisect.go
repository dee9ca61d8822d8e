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
	"wf/engine/lang"
	"wf/protocol"
	"wf/service/compose"
)

// A Bisector finds the edits of a workflow that break a check. It tries versions of the workflow, and mixtures of a good
// and a bad one, each by runs in the store of its Local.
//
//	versions ──first good? last bad?──► turning point ──edits between the two──► a minimal set that is bad
//
// What was tried is remembered under the same arguments: a search that was interrupted goes on. Runs have request ids of the
// arguments and the definition, so that one that had begun is found again.
type Bisector struct {
	*Local
	Versions []BisectVersion // the first is good, the last bad
	// Sub gives the definitions of their sub-workflows.
	Sub lang.Subs

	Launch engine.Launch       // of each run, but for what follows from its definition
	Given  map[string]any      // inputs; a definition gets those that it declares
	Models map[string][]string // as Launch.Models; a definition gets those of its agents

	Check  Check
	Repeat int   // runs of each definition; they have to agree
	Trials int   // at most so many runs; 0 is no bound
	Cost   int64 // of all runs, in micro-dollars; 0 is no bound
	Anew   bool  // what was tried before is forgotten

	InPlace bool // the runs work in the workspace, not in copies of it

	// Begin begins a run, and Drive drives it until it stops.
	Begin func(context.Context, engine.Launch) (run protocol.RunID, fresh bool, err error)
	Drive func(ctx context.Context, run protocol.RunID, limits []protocol.LimitChanged) error
	// Unfit is the error of a run that stopped for want of a model or of something else around it, which says nothing
	// about its definition.
	Unfit func(*api.Run) error
	// Tell is called with each trial when it has ended, and, without a verdict, when one of its runs begins or goes on.
	Tell func(*api.Bisect, *api.Trial)
	// TellEdits is called when the edits are known, before mixtures of them are tried.
	TellEdits func(*api.Bisect)
}

// BisectVersion is a definition that a user gave.
type BisectVersion struct {
	compose.Definition
	Name string // as it was given
}

// Failures of a bisect that are not those of a run.
var (
	ErrNotBisectable = &protocol.Error{Code: "not_bisectable", Message: "there is nothing to bisect", Hint: "wf bisect needs a definition that passes the check, and one that fails it"}
	ErrBisectLimit   = &protocol.Error{Code: "limit_reached", Message: "the bisect reached its limit", Hint: "the same command with a higher limit goes on"}
)

// search is a bisect under way.
type search struct {
	*Bisector
	out     *api.Bisect
	notes   *trialNotes[noted]
	changes []lang.Change // between the good version and the bad one
	spent   int64         // micro-dollars
}

// Find searches. Where it is interrupted or reaches a limit, what it has found so far is in the answer, beside the error.
func (b *Bisector) Find(ctx context.Context) (_ *api.Bisect, err error) {
	s := &search{Bisector: b, out: &api.Bisect{Schema: api.BisectSchema, Check: b.Check.Command, Versions: []api.BisectVersion{}, Edits: []api.Edit{}, Trials: []api.Trial{}, CostUSD: new(0.0)}}
	for i, v := range b.Versions {
		def, err := v.Program.Block()
		if err != nil {
			return nil, err
		}
		s.out.Versions = append(s.out.Versions, api.BisectVersion{Name: v.Name, Definition: api.CID(def.Link.String())})
		if i > 0 && s.out.Versions[i-1].Definition == s.out.Versions[i].Definition {
			return nil, ErrNotBisectable.With("comments and the order of keys make no difference", "%s and %s are the same definition", b.Versions[i-1].Name, v.Name)
		}
	}
	s.out.Bad = len(b.Versions) - 1
	arguments, err := b.summary(s.out.Versions)
	if err != nil {
		return nil, err
	}
	if s.notes, err = openNotes[noted]("bisect", arguments, b.Launch.Workspace, b.InPlace, b.Anew); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.notes.close(s.out.Complete)) }()
	return s.out, s.find(ctx)
}

func (s *search) find(ctx context.Context) error {
	last := len(s.Versions) - 1
	for _, end := range []struct {
		at    int
		want  api.Verdict
		wants string
	}{{0, api.Good, "has to pass"}, {last, api.Bad, "has to fail"}} {
		t, err := s.version(ctx, end.at)
		if err != nil {
			return err
		}
		if t.Verdict != end.want {
			return s.notBisectable(end.at, t, end.wants)
		}
	}
	var err error
	s.out.Good, s.out.Bad, err = turning(len(s.Versions), func(at int) (api.Verdict, error) {
		t, err := s.version(ctx, at)
		if err != nil {
			return "", err
		}
		return t.Verdict, nil
	})
	if err != nil {
		return err
	}
	good, bad := s.Versions[s.out.Good].Program, s.Versions[s.out.Bad].Program
	if s.changes, err = lang.Differences(good.Workflow, bad.Workflow, s.Sub); err != nil {
		return err
	}
	for _, c := range s.changes {
		s.out.Edits = append(s.out.Edits, api.Edit{Key: c.Key, Kind: string(c.Kind), Old: c.Old, New: c.New, Line: c.String()})
	}
	s.TellEdits(s.out)
	whole, err := s.Mix(good.Workflow, s.changes, s.Sub)
	if err != nil {
		return err
	}
	def, err := whole.Program.Block()
	if err != nil {
		return err
	}
	if string(s.out.Versions[s.out.Bad].Definition) != def.Link.String() {
		return protocol.ErrInvalid.With("", "the edits from %s to %s do not make the latter: this is a defect of wf", s.Versions[s.out.Good].Name, s.Versions[s.out.Bad].Name)
	}
	found, err := minimal(len(s.changes), func(subset []int) (api.Verdict, error) {
		t, err := s.mixture(ctx, subset)
		if err != nil {
			return "", err
		}
		return t.Verdict, nil
	})
	if err != nil {
		return err
	}
	s.out.Minimal, s.out.Complete = found, true
	return nil
}

// notBisectable says that an end is not as it has to be.
func (s *search) notBisectable(at int, t *api.Trial, wants string) error {
	name, run := s.Versions[at].Name, ""
	if len(t.Runs) > 0 {
		run = "; wf log " + string(t.Runs[len(t.Runs)-1].Run) + " shows its run"
	}
	which := "--good"
	if at > 0 {
		which = "--bad"
	}
	if t.Verdict == api.Unresolved {
		return ErrNotBisectable.With("make the check tell good from bad for "+name+", or repeat it more or less often (-n)"+run, "%s %s is unresolved: %s", which, name, t.Why)
	}
	hint := "name a version that passes the check, or another --check"
	if at > 0 {
		hint = "name a version that fails the check, or another --check; with a model that answers differently each time, -n 5"
	}
	return ErrNotBisectable.With(hint+run, "%s %s %s the check, and it is %s: %s", which, name, wants, t.Verdict, t.Why)
}

// version tries a version that the user gave.
func (s *search) version(ctx context.Context, at int) (*api.Trial, error) {
	t, err := s.trial(ctx, api.Trial{Version: &at}, s.Versions[at].Definition)
	if err == nil {
		s.out.Versions[at].Verdict = t.Verdict
	}
	return t, err
}

// mixture tries the good version with some of the edits. One that does not lint, or cannot begin, is unresolved.
func (s *search) mixture(ctx context.Context, subset []int) (*api.Trial, error) {
	some := make([]lang.Change, len(subset))
	for i, k := range subset {
		some[i] = s.changes[k]
	}
	t := api.Trial{Edits: slices.Sorted(slices.Values(subset))}
	d, err := s.Mix(s.Versions[s.out.Good].Program.Workflow, some, s.Sub)
	if errors.Is(err, protocol.ErrInvalid) {
		t.Verdict, t.Why = api.Unresolved, protocol.Flat(err).Message
		return s.ended(t), nil
	}
	if err != nil {
		return nil, err
	}
	d.Path = s.Versions[s.out.Bad].Path
	return s.trial(ctx, t, d)
}

// ended keeps a trial that has a verdict, and tells of it.
func (s *search) ended(t api.Trial) *api.Trial {
	s.out.Trials = append(s.out.Trials, t)
	last := &s.out.Trials[len(s.out.Trials)-1]
	s.Tell(s.out, last)
	return last
}

// trial tries a definition, as often as is asked for while its runs agree.
func (s *search) trial(ctx context.Context, t api.Trial, d compose.Definition) (*api.Trial, error) {
	def, err := d.Program.Block()
	if err != nil {
		return nil, err
	}
	t.Definition = api.CID(def.Link.String())
	for _, before := range s.out.Trials { // the same definition, made of other edits
		if before.Definition == t.Definition {
			t.Verdict, t.Why, t.Runs = before.Verdict, before.Why, before.Runs
			return &t, nil
		}
	}
	launch, err := s.launchOf(ctx, d)
	if err != nil {
		return s.cannotBegin(t, err)
	}
	for n := range s.Repeat {
		run, why, err := s.run(ctx, def.Link, n, launch, &t)
		if err != nil {
			if len(t.Runs) == 0 && !begun(run) {
				return s.cannotBegin(t, err)
			}
			return nil, err
		}
		t.Runs = append(t.Runs, run)
		switch {
		case n == 0:
			t.Verdict, t.Why = run.Verdict, why
		case run.Verdict != t.Verdict:
			t.Verdict, t.Why = api.Unresolved, fmt.Sprintf("%s in one run, %s in another", t.Runs[0].Verdict, run.Verdict)
		}
		if t.Verdict == api.Unresolved {
			break
		}
	}
	return s.ended(t), nil
}

func begun(r api.TrialRun) bool { return r.Run != "" }

// cannotBegin is what becomes of a definition that no run can be begun of: a version has to, a mixture is unresolved.
func (s *search) cannotBegin(t api.Trial, err error) (*api.Trial, error) {
	if t.Version != nil || !ofDefinition(err) {
		return nil, err
	}
	t.Verdict, t.Why = api.Unresolved, "it cannot begin: "+protocol.Flat(err).Message
	return s.ended(t), nil
}

// launchOf is how a run of a definition begins.
func (s *search) launchOf(ctx context.Context, d compose.Definition) (l engine.Launch, err error) {
	p := d.Program
	l = s.Launch
	given := map[string]any{}
	for name, value := range s.Given {
		if _, declared := p.Workflow.Inputs[name]; declared {
			given[name] = value
		}
	}
	if l.Inputs, err = p.Inputs(given); err != nil {
		return l, err
	}
	models := map[string][]string{}
	for role, list := range s.Models {
		if HasAgent(p, role) {
			models[role] = list
		}
	}
	if l.Models, _, err = s.ResolveModels(ctx, p, models); err != nil {
		return l, err
	}
	if len(l.Models) == 0 {
		l.Models = nil
	}
	if err := s.SecretsSet(p); err != nil {
		return l, err
	}
	l.Program, l.Source, l.File, l.Description = p, d.Source, d.Path, p.Workflow.Description
	return l, nil
}

// account adds a run to the sums.
func (s *search) account(r api.TrialRun, before int) {
	s.out.Runs++
	s.out.Steps += r.Steps
	if !r.Remembered {
		s.out.Performed += r.Steps - before
	}
	if r.CostUSD == nil {
		s.out.CostUSD = nil
		return
	}
	s.spent += int64(*r.CostUSD*1e6 + 0.5)
	if s.out.CostUSD != nil {
		*s.out.CostUSD += *r.CostUSD
	}
}

// bounded refuses a run beyond the limits of the bisect, and gives the limit of cost that a run has by them.
func (s *search) bounded(w *protocol.Workflow) ([]protocol.LimitChanged, error) {
	if s.Trials > 0 && s.out.Runs >= s.Trials {
		return nil, ErrBisectLimit.With("the same command with a higher --max-trials goes on", "%s were tried, which is all that --max-trials allows", protocol.Plural(s.out.Runs, "run"))
	}
	if s.Cost == 0 {
		return nil, nil
	}
	left := s.Cost - s.spent
	if left <= 0 {
		return nil, s.tooDear()
	}
	if own := w.Limits.Cost; own > 0 {
		left = min(left, own)
	}
	return []protocol.LimitChanged{{Limit: "cost_usd", Max: left, By: compose.User()}}, nil
}

func (s *search) tooDear() error {
	return ErrBisectLimit.With("the same command with a higher --max-cost goes on", "the runs cost $%.4f, and --max-cost is $%.4f", float64(s.spent)/1e6, float64(s.Cost)/1e6)
}

// summary is the arguments of a bisect that its runs depend on.
func (b *Bisector) summary(versions []api.BisectVersion) ([]byte, error) {
	x := struct {
		Store, Dir, Check string
		InPlace           bool
		Versions          []string
		Inputs            map[string]any
		Models            map[string][]string
		Context           protocol.ContextMode
		Secrets           []string
	}{Store: b.Store.Dir(), Dir: b.Launch.Workspace, Check: strings.TrimSpace(b.Check.Command) + "\n" + b.Check.Sandbox, InPlace: b.InPlace,
		Inputs: b.Given, Models: b.Models, Context: b.Launch.Context, Secrets: b.Launch.AllowSecretInputs}
	for _, v := range versions {
		x.Versions = append(x.Versions, string(v.Definition))
	}
	return json.Marshal(x)
}
