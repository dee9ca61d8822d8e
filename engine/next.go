package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"wf/cas"
	"wf/engine/lang"
	"wf/protocol"
)

// Decision is a visit that the rules ask for.
type Decision struct {
	Step       protocol.StepID
	Role       string
	Parents    []protocol.Link
	Item       *protocol.Item
	ItemValue  protocol.JSON // canonical, the bytes that Item.Value names
	Of         int           // items of the fan-out; −1 outside of one
	Empty      bool          // an empty fan-out: concluded without a performer
	Edge       int
	Via        protocol.Via
	EdgePrompt string
	Resumes    protocol.Link
	Visit      int
}

// Again is a visit to be performed again: answered, resumed, due for a further attempt, or,
// in a run that is opened anew, cut off in the middle.
type Again struct {
	Step protocol.StepID
	Due  int64 // unix µs, not before; 0 is now
}

// Plan is what follows from a State.
type Plan struct {
	Start   []Decision
	Again   []Again
	Running []protocol.StepID // started and not ended; after a crash: cut off
	Timers  []WaitingVisit    // waits with a due time
	End     *Verdict          // when nothing can be dispatched and nothing runs
}

// Verdict is how a run stops.
type Verdict struct {
	Status  protocol.RunStatus
	Reason  protocol.SuspendReason
	Detail  string
	Code    string          // of the Error behind it, or ""
	Parents []protocol.Link // of the Result
	Outputs protocol.JSON   // of the workflow, when done
}

// Next decides what a run does now. It does not alter the State but for caches.
func (s *State) Next() (Plan, error) { return s.plan(false) }

// plan is Next; unbounded leaves max_parallel out of account: which items of a fan-out come
// first is no decision.
func (s *State) plan(unbounded bool) (Plan, error) {
	var p Plan
	if s.stop != nil {
		p.End = &Verdict{Status: s.stop.status, Reason: s.stop.reason, Detail: s.stop.detail}
		return p, nil
	}
	parkedWhy := s.openVisits(&p)
	fs := s.firings()
	if f, t, ok := s.toFail(fs); ok {
		p.Start, p.Again, p.Running = nil, nil, nil
		p.End = &Verdict{Status: protocol.Failed, Detail: s.failedBy(f, t), Parents: links(f.sources)}
		return p, nil
	}
	if err := s.openBatches(&p, unbounded); err != nil {
		return p, err
	}
	var ends []firing
	limits, why := []string{}, parkedWhy
	nums := map[string]int{}
	for _, f := range fs {
		if f.err != nil {
			why = append(why, fmt.Sprintf("%s: %v", s.edgeName(f.edge), f.err))
			continue
		}
		for _, t := range f.targets {
			switch {
			case t.done:
			case t.node == protocol.NodeEnd:
				ends = append(ends, f)
			case t.node == protocol.NodeSuspend:
				limits = append(limits, s.boundName(f))
			default:
				ds, err := s.dispatch(f, t, nums, unbounded)
				if err != nil {
					why = append(why, fmt.Sprintf("%s: %v", s.edgeName(f.edge), err))
					continue
				}
				p.Start = append(p.Start, ds...)
			}
		}
	}
	if len(p.Start)+len(p.Again)+len(p.Running) > 0 {
		return p, nil
	}
	v, err := s.verdict(fs, ends, limits, why)
	p.End = v
	return p, err
}

// toFail finds the first token that leads to FAIL.
func (s *State) toFail(fs []firing) (f firing, t target, ok bool) {
	for _, f := range fs {
		for _, t := range f.targets {
			if t.node == protocol.NodeFail {
				return f, t, true
			}
		}
	}
	return firing{}, target{}, false
}

// openVisits sorts the visits that have not ended, and says what parks the others.
func (s *State) openVisits(p *Plan) (parkedWhy []string) {
	for _, a := range s.acts {
		for _, v := range a.visits {
			if v == nil {
				continue
			}
			switch v.mode {
			case runs:
				p.Running = append(p.Running, v.id)
			case ready, retries:
				p.Again = append(p.Again, Again{v.id, v.due})
			case parked:
				parkedWhy = append(parkedWhy, fmt.Sprintf("%s: %s", v.id, v.lastErr))
			case waits:
				if v.due > 0 {
					p.Timers = append(p.Timers, v.waitingFor())
				}
			}
		}
		if a.offer == nil || a.offer.closed {
			continue
		}
		r := s.routed(a)
		switch {
		case r.err != nil:
			parkedWhy = append(parkedWhy, fmt.Sprintf("%s#%d: %v", a.role, a.num, r.err))
		case r.dead && a.offer.failed:
			parkedWhy = append(parkedWhy, s.failure(a))
		}
	}
	return parkedWhy
}

// parkedCode is the code of the first visit that was parked with one.
func (s *State) parkedCode() string {
	for _, a := range s.acts {
		for _, v := range a.visits {
			if v != nil && v.mode == parked && v.lastCode != "" {
				return v.lastCode
			}
		}
	}
	return ""
}

// openBatches adds the items of begun fan-outs that were not dispatched yet.
func (s *State) openBatches(p *Plan, unbounded bool) error {
	for _, a := range s.acts {
		if a.of < 1 || a.offer != nil {
			continue
		}
		missing := false
		for i := 0; i < a.of && !missing; i++ {
			missing = i >= len(a.visits) || a.visits[i] == nil
		}
		if !missing {
			continue
		}
		if a.items == nil {
			var err error
			if a.items, err = s.items(a.edge, a.inherited(), a.links, target{node: a.role, via: a.via}, a.num); err != nil {
				return err
			}
		}
		running := 0
		for _, v := range a.visits {
			if v != nil && v.mode != ended {
				running++
			}
		}
		for _, d := range a.items {
			if i := d.Item.Index; i < len(a.visits) && a.visits[i] != nil {
				continue
			}
			if most := s.prog.Workflow.Edges[a.edge].MaxParallel; most > 0 && running >= most && !unbounded {
				break
			}
			running++
			p.Start = append(p.Start, d)
		}
	}
	return nil
}

// dispatch makes the decisions for one target of a firing; nums counts those of this plan.
func (s *State) dispatch(f firing, t target, nums map[string]int, unbounded bool) ([]Decision, error) {
	nums[t.node]++
	num := s.nums[t.node] + nums[t.node]
	e := &s.prog.Workflow.Edges[f.edge]
	if e.ForEach == "" || t.via == protocol.ViaLimit {
		d, err := s.decision(f, t, num)
		return []Decision{d}, err
	}
	ds, err := s.items(f.edge, f.up, links(f.sources), t, num)
	if e.MaxParallel > 0 && len(ds) > e.MaxParallel && !unbounded {
		ds = ds[:e.MaxParallel]
	}
	return ds, err
}

// decision is a plain visit.
func (s *State) decision(f firing, t target, num int) (Decision, error) {
	d := Decision{Step: protocol.StepID{Role: t.node, N: num, Index: -1}, Role: t.node, Parents: links(f.sources),
		Of: -1, Edge: f.edge, Via: t.via, Visit: 1}
	if c := s.resumable(f.up, t.node, nil); c != nil {
		d.Resumes, d.Visit = c.record, c.visit+1
	}
	sc, err := s.promptScope(f.edge, f.up)
	if err != nil {
		return d, err
	}
	d.EdgePrompt, err = s.prog.EdgePrompt(f.edge, sc)
	return d, err
}

// items are the visits of a fan-out, or the one decision of an empty one.
func (s *State) items(edge int, up ancestry, parents []protocol.Link, t target, num int) ([]Decision, error) {
	sc, err := s.scope(edge, up)
	if err != nil {
		return nil, err
	}
	values, err := s.prog.ForEach(edge, sc)
	if err != nil {
		return nil, err
	}
	base := Decision{Role: t.node, Parents: parents, Of: len(values), Edge: edge, Via: t.via, Visit: 1}
	if len(values) == 0 {
		base.Step, base.Empty = protocol.StepID{Role: t.node, N: num, Index: -1}, true
		return []Decision{base}, nil
	}
	var out []Decision
	for i, v := range values {
		raw, err := canonical(v)
		if err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
		d := base
		d.Step = protocol.StepID{Role: t.node, N: num, Index: i}
		d.ItemValue = raw
		d.Item = &protocol.Item{Index: i, Value: cas.Raw(raw).Link}
		if c := s.resumable(up, t.node, d.Item); c != nil {
			d.Resumes, d.Visit = c.record, c.visit+1
		}
		sc.Item, sc.Index = v, i
		if d.EdgePrompt, err = s.prog.EdgePrompt(edge, sc); err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// resumable is the conversation that a new visit continues.
func (s *State) resumable(up ancestry, role string, item *protocol.Item) *convo {
	r, ok := s.prog.Workflow.RoleNamed(role)
	c := up.convs[role]
	if !ok || c == nil || s.context(r) == protocol.ContextFresh {
		return nil
	}
	if item == nil {
		return c.plain
	}
	return c.items[item.Value]
}

// promptScope is the scope of an edge prompt, empty where the prompt does not look at it.
func (s *State) promptScope(edge int, up ancestry) (lang.Scope, error) {
	if !strings.Contains(s.prog.Workflow.Edges[edge].Prompt, "${{") {
		return lang.Scope{}, nil
	}
	return s.scope(edge, up)
}

// inherited is what a got from its parents, itself not counted.
func (a *act) inherited() ancestry {
	up := ancestry{slices.Clone(a.edges), maps.Clone(a.entries), a.latest, a.convs}
	up.entries[a.role]--
	if a.via != protocol.ViaLimit {
		up.edges[a.edge]--
	}
	return up
}

// outputsFailed begins the reason where the outputs of the workflow have no value.
const outputsFailed = "outputs: "

// verdict ends a run in which nothing can move.
func (s *State) verdict(fs, ends []firing, limits, why []string) (*Verdict, error) {
	if s.Status() == protocol.Waiting {
		return &Verdict{Status: protocol.Waiting}, nil
	}
	if len(why) > 0 {
		return &Verdict{Status: protocol.Suspended, Reason: protocol.ByError, Detail: strings.Join(why, "; "), Code: s.parkedCode()}, nil
	}
	if len(limits) > 0 {
		return &Verdict{Status: protocol.Suspended, Reason: protocol.ByLimit, Detail: strings.Join(limits, "; ")}, nil
	}
	if len(ends) == 0 {
		return &Verdict{Status: protocol.Suspended, Reason: protocol.ByStall, Detail: s.stalled(fs)}, nil
	}
	slices.SortFunc(ends, func(a, b firing) int {
		if c := cmp.Compare(a.edge, b.edge); c != 0 {
			return c
		}
		return strings.Compare(linkText(links(a.sources)), linkText(links(b.sources)))
	})
	v := &Verdict{Status: protocol.Done}
	var sources []*act
	for _, f := range ends {
		v.Parents = append(v.Parents, links(f.sources)...)
		sources = append(sources, f.sources...)
	}
	up, err := s.ancestry(sources)
	if err == nil {
		var sc lang.Scope
		if sc, err = s.scopeOf(up, []string{sources[0].role}); err == nil {
			v.Outputs, err = s.prog.Outputs(sc)
		}
	}
	if err != nil {
		return &Verdict{Status: protocol.Suspended, Reason: protocol.ByError, Detail: fmt.Sprintf("%s%v", outputsFailed, err)}, nil
	}
	return v, nil
}

func links(sources []*act) []protocol.Link {
	var out []protocol.Link
	for _, a := range sources {
		out = append(out, a.records()...)
	}
	return out
}

func linkText(l []protocol.Link) string {
	var b strings.Builder
	for _, x := range l {
		b.WriteString(x.String())
	}
	return b.String()
}
