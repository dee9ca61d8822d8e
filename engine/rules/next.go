package rules

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

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
func (s *State) Next() (Plan, error) { return s.Plan(math.MaxInt) }

// Plan is Next with at most so many visits to begin, to perform again and timers: what it costs
// does not grow with the visits that wait for their turn.
func (s *State) Plan(most int) (Plan, error) {
	var p Plan
	if s.Stopped {
		p.End = &Verdict{Status: s.stop.Status, Reason: s.stop.Reason, Detail: s.stop.Detail}
		return p, nil
	}
	if s.Closing != nil {
		s.close(&p, most)
		return p, nil
	}
	fs := s.firings()
	p.Timers = s.timers(most)
	if f, t, ok := s.toFail(fs); ok {
		p.End = &Verdict{Status: protocol.Failed, Detail: s.failedBy(f, t), Parents: links(f.sources)}
		return p, nil
	}
	s.openVisits(&p, most)
	if err := s.openBatches(&p, most); err != nil {
		return p, err
	}
	left := s.dispatchAll(&p, fs, most)
	if len(p.Start)+len(p.Again)+len(p.Running) == 0 {
		p.End = s.verdict(fs, left)
	}
	return p, nil
}

// leftover is what the firings of a plan could not dispatch.
type leftover struct {
	ends   []firing // that reached END
	limits []string // bounds that keep a target back
	why    []string // what went wrong
}

// dispatchAll makes the decisions for the targets of firings.
func (s *State) dispatchAll(p *Plan, fs []firing, most int) (x leftover) {
	nums := map[string]int{}
	for _, f := range fs {
		if f.err != nil {
			x.why = append(x.why, fmt.Sprintf("%s: %v", s.edgeName(f.edge), f.err))
			continue
		}
		for _, t := range f.targets {
			switch {
			case t.done:
			case t.node == protocol.NodeEnd:
				x.ends = append(x.ends, f)
			case t.node == protocol.NodeSuspend:
				x.limits = append(x.limits, s.boundName(f))
			case len(p.Start) < most:
				ds, err := s.dispatch(f, t, nums, most-len(p.Start))
				if err != nil {
					x.why = append(x.why, fmt.Sprintf("%s: %v", s.edgeName(f.edge), err))
					continue
				}
				p.Start = append(p.Start, ds...)
			}
		}
	}
	return x
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

// openVisits adds the visits that run, and those to be performed again.
func (s *State) openVisits(p *Plan, most int) {
	for _, v := range s.due().visits[Runs] {
		p.Running = append(p.Running, v.id())
	}
	for _, m := range []Mode{Ready, Retries} {
		for _, v := range s.due().visits[m] {
			if len(p.Again) == most {
				return
			}
			p.Again = append(p.Again, Again{v.id(), v.Due})
		}
	}
}

// timers are the first waits with a due time.
func (s *State) timers(most int) []WaitingVisit {
	var out []WaitingVisit
	for _, v := range s.due().timers {
		if len(out) == most {
			break
		}
		out = append(out, v.waitingFor())
	}
	return out
}

// parkedWhy says what parks visits, and tokens that no edge takes.
func (s *State) parkedWhy() []string {
	var why []string
	for _, v := range s.due().visits[Parked] {
		why = append(why, fmt.Sprintf("%s: %s", v.id(), v.LastErr))
	}
	for _, a := range s.agenda.tokens {
		r := s.routed(a)
		switch {
		case r.err != nil:
			why = append(why, fmt.Sprintf("%s#%d: %v", a.Role, a.Num, r.err))
		case r.dead && a.offer.failed:
			why = append(why, s.failure(a))
		}
	}
	return why
}

// parkedCode is the code of the first visit that was parked with one.
func (s *State) parkedCode() string {
	for _, v := range s.due().visits[Parked] {
		if v.LastCode != "" {
			return v.LastCode
		}
	}
	return ""
}

// openBatches adds the items of begun fan-outs that were not dispatched yet.
func (s *State) openBatches(p *Plan, most int) error {
	for _, a := range s.agenda.open {
		if a.Of < 1 || a.begun == a.Of {
			continue
		}
		fan, err := s.fanOf(a)
		if err != nil {
			return err
		}
		for a.next < len(a.visits) && a.visits[a.next] != nil {
			a.next++
		}
		room := most - len(p.Start)
		if n := s.prog.Workflow.Edges[a.Edge].MaxParallel; n > 0 {
			room = min(room, n-(a.begun-(a.Of-a.left)))
		}
		for i := a.next; i < a.Of && room > 0; i++ {
			if i < len(a.visits) && a.visits[i] != nil {
				continue
			}
			d, err := s.item(fan, i)
			if err != nil {
				return err
			}
			p.Start = append(p.Start, d)
			room--
		}
	}
	return nil
}

// dispatch makes the decisions for one target of a firing, at most so many; nums counts the
// targets of this plan.
func (s *State) dispatch(f firing, t target, nums map[string]int, most int) ([]Decision, error) {
	nums[t.node]++
	num := s.Nums[t.node] + nums[t.node]
	e := &s.prog.Workflow.Edges[f.edge]
	if e.ForEach == "" || t.via == protocol.ViaLimit {
		d, err := s.decision(f, t, num)
		return []Decision{d}, err
	}
	fan, err := s.fanOut(f.edge, f.up, links(f.sources), t, num)
	if err != nil {
		return nil, err
	}
	if len(fan.values) == 0 {
		return []Decision{fan.base}, nil
	}
	if e.MaxParallel > 0 {
		most = min(most, e.MaxParallel)
	}
	var out []Decision
	for i := range min(most, len(fan.values)) {
		d, err := s.item(fan, i)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// decision is a plain visit.
func (s *State) decision(f firing, t target, num int) (Decision, error) {
	d := Decision{Step: protocol.StepID{Role: t.node, N: num, Index: -1}, Role: t.node, Parents: links(f.sources),
		Of: -1, Edge: f.edge, Via: t.via, Visit: 1}
	if c := s.resumable(f.up, t.node, nil, 0); c != nil {
		d.Resumes, d.Visit = c.Record, c.Visit+1
	}
	sc, err := s.promptScope(f.edge, f.up)
	if err != nil {
		return d, err
	}
	d.EdgePrompt, err = s.prog.EdgePrompt(f.edge, sc)
	return d, err
}

// promptScope is the scope of an edge prompt, empty where the prompt does not look at it.
func (s *State) promptScope(edge int, up ancestry) (lang.Scope, error) {
	if !strings.Contains(s.prog.Workflow.Edges[edge].Prompt, "${{") {
		return lang.Scope{}, nil
	}
	return s.scope(edge, up, s.prog.EdgeUses(edge).Prompt)
}

// outputsFailed begins the reason where the outputs of the workflow have no value.
const outputsFailed = "outputs: "

// verdict ends a run in which nothing can move.
func (s *State) verdict(fs []firing, x leftover) *Verdict {
	if s.Status() == protocol.Waiting {
		return &Verdict{Status: protocol.Waiting}
	}
	ends := x.ends
	if why := append(s.parkedWhy(), x.why...); len(why) > 0 {
		why = append(why, x.limits...)
		return &Verdict{Status: protocol.Suspended, Reason: protocol.ByError, Detail: strings.Join(why, "; "), Code: s.parkedCode()}
	}
	if len(x.limits) > 0 {
		return &Verdict{Status: protocol.Suspended, Reason: protocol.ByLimit, Detail: strings.Join(x.limits, "; ")}
	}
	if len(ends) == 0 {
		return &Verdict{Status: protocol.Suspended, Reason: protocol.ByStall, Detail: s.stalled(fs)}
	}
	slices.SortFunc(ends, func(a, b firing) int {
		return cmp.Or(cmp.Compare(a.edge, b.edge), slices.CompareFunc(links(a.sources), links(b.sources), byText))
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
		if sc, err = s.scopeOf(up, []string{sources[0].Role}, s.prog.OutputsUses()); err == nil {
			v.Outputs, err = s.prog.Outputs(sc)
		}
	}
	if err != nil {
		return &Verdict{Status: protocol.Suspended, Reason: protocol.ByError, Detail: fmt.Sprintf("%s%v", outputsFailed, err)}
	}
	return v
}

func byText(a, b protocol.Link) int { return strings.Compare(a.String(), b.String()) }

func links(sources []*act) []protocol.Link {
	var out []protocol.Link
	for _, a := range sources {
		out = append(out, a.records()...)
	}
	return out
}
