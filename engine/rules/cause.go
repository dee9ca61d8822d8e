package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"wf/protocol"
)

// Cause is the visit with which the way to FAIL began.
//
//	pay#1 ──► ship#1 failed ──► refund#1 ──► FAIL          the cause is ship#1, not the messenger refund#1
//
// From a doomed role every way leads to FAIL. The cause is the last visit of a role that was not doomed: it failed, or its output
// chose the way. Where it chose by the failure of another step that its conditions name, it is that one.
type Cause struct {
	Step   string
	Failed bool          // else its output, or a bound, chose the way to FAIL
	Record protocol.Link // of the step
	Road   []string      // the steps between it and FAIL, in their order
	Way    string        // the first step from which nothing but FAIL can be reached; "" where there is none
	Direct bool          // it led to FAIL by itself
}

// Past finds visits that a State does not hold any more, in the journal of its run.
type Past interface {
	// Ended is the step that a record concluded. One that no event of the run names is "".
	Ended(record protocol.Link) (step string, d protocol.StepCompleted, err error)
	// Begun is the step_started of a step.
	Begun(step string) (protocol.StepStarted, error)
}

// roadMost bounds the activations that a Cause is looked for in.
const roadMost = 1000

// Cause is that of a run that failed, or closes as failed; nil for any other.
func (s *State) Cause(past Past) (*Cause, error) {
	if s.Status() != protocol.Failed && (s.Closing == nil || s.Closing.Status != protocol.Failed) {
		return nil, nil
	}
	f, _, ok := s.toFail(s.firings())
	if !ok {
		return nil, nil
	}
	w := walk{s: s, past: past, seen: map[string]bool{}, live: map[protocol.Link]*visit{}}
	for _, a := range s.acts {
		for _, v := range a.visits {
			if v != nil && v.Record.Defined() {
				w.live[v.Record] = v
			}
		}
	}
	sources, err := w.passed(links(f.sources), nil)
	if err != nil || len(sources) == 0 {
		return nil, err
	}
	begins, err := w.toTheBeginning(sources)
	if err != nil {
		return nil, err
	}
	if len(begins) == 0 { // nothing leads to END at all
		begins = sources
	}
	from, way := begins[0], ""
	if i := slices.IndexFunc(begins, func(p *passing) bool { return p.failed }); i >= 0 {
		from = begins[i]
	}
	if from.next != nil {
		way = from.next.step
	}
	if !from.failed {
		named, err := w.named(from)
		if err != nil {
			return nil, err
		}
		from = cmp.Or(named, from)
	}
	c := &Cause{Step: from.step, Failed: from.failed, Record: from.record, Way: way}
	c.Direct = slices.ContainsFunc(f.sources, func(a *act) bool { return a.name() == from.step })
	for p := from.next; p != nil; p = p.next {
		c.Road = append(c.Road, p.step)
	}
	return c, nil
}

// passing is an activation on the way to FAIL.
type passing struct {
	role   string
	step   string // its visit, of a fan-out the first that failed
	failed bool
	record protocol.Link
	links  []protocol.Link // that it went on from
	next   *passing        // that went on from it; nil where it led to FAIL itself
}

// walk goes back from FAIL.
type walk struct {
	s    *State
	past Past
	seen map[string]bool // activations
	live map[protocol.Link]*visit
}

// passed are the activations that records belong to, which next went on from; those are left out that were met before.
func (w *walk) passed(records []protocol.Link, next *passing) ([]*passing, error) {
	var out []*passing
	at := map[string]*passing{}
	for _, l := range records {
		step, status, err := w.ended(l)
		if err != nil {
			return nil, err
		}
		if step == "" { // the Start
			continue
		}
		name, _, _ := strings.Cut(step, "[")
		p := at[name]
		switch {
		case p == nil && w.seen[name]:
			continue
		case p == nil:
			if p, err = w.begin(step, l); err != nil {
				return nil, err
			}
			w.seen[name], at[name], p.next = true, p, next
			out = append(out, p)
		}
		if status == protocol.StepFailed && !p.failed {
			p.step, p.record, p.failed = step, l, true
		}
	}
	return out, nil
}

// ended is the step that a record concluded, "" for a Start.
func (w *walk) ended(l protocol.Link) (step string, status protocol.StepStatus, err error) {
	if v := w.live[l]; v != nil {
		return v.id().String(), v.Status, nil
	}
	if l == w.s.Start || l == w.s.Info.Start {
		return "", "", nil
	}
	step, d, err := w.past.Ended(l)
	if err != nil || step == "" || d.Status != "" {
		return step, d.Status, err
	}
	r, err := w.s.from.Step(l) // in an old journal the record says it alone
	return step, r.Status, err
}

// begin is the activation of a step.
func (w *walk) begin(step string, record protocol.Link) (*passing, error) {
	if v := w.live[record]; v != nil {
		return &passing{role: v.of.Role, step: step, record: record, links: v.of.Links}, nil
	}
	d, err := w.past.Begun(step)
	if err != nil {
		return nil, fmt.Errorf("step %s: %w", step, err)
	}
	return &passing{role: d.Role, step: step, record: record, links: d.Parents}, nil
}

// toTheBeginning goes back until a role is met from which END can be reached.
func (w *walk) toTheBeginning(todo []*passing) (begins []*passing, err error) {
	doomed := w.s.doomed()
	for len(todo) > 0 && len(w.seen) < roadMost {
		p := todo[0]
		todo = todo[1:]
		if !doomed[p.role] {
			begins = append(begins, p)
			continue
		}
		before, err := w.passed(p.links, p)
		if err != nil {
			return nil, err
		}
		todo = append(todo, before...)
	}
	return begins, nil
}

// named is the newest visit that failed of a role that the conditions behind a visit look at; nil where none did.
func (w *walk) named(by *passing) (*passing, error) {
	wanted := map[string]bool{}
	for i, e := range w.s.prog.Workflow.Edges {
		if !slices.Contains(e.From, by.role) || e.When == "" {
			continue
		}
		for _, r := range w.s.prog.Workflow.Roles {
			if r.Name != by.role && w.s.prog.EdgeUses(i).When.Role(r.Name, false) {
				wanted[r.Name] = true
			}
		}
	}
	for todo := []*passing{by}; len(todo) > 0 && len(wanted) > 0 && len(w.seen) < roadMost; todo = todo[1:] {
		if p := todo[0]; wanted[p.role] {
			if p.failed {
				return p, nil
			}
			delete(wanted, p.role)
		}
		before, err := w.passed(todo[0].links, todo[0])
		if err != nil {
			return nil, err
		}
		todo = append(todo, before...)
	}
	return nil, nil
}

// doomed are the roles from which no way leads to END.
func (s *State) doomed() map[string]bool {
	saved := map[string]bool{protocol.NodeEnd: true}
	for more := true; more; {
		more = false
		for _, e := range s.prog.Workflow.Edges {
			if !saved[e.OnLimit] && !slices.ContainsFunc(e.To, func(to string) bool { return saved[to] }) {
				continue
			}
			for _, from := range e.From {
				more = more || !saved[from]
				saved[from] = true
			}
		}
	}
	out := map[string]bool{}
	for _, r := range s.prog.Workflow.Roles {
		if !saved[r.Name] {
			out[r.Name] = true
		}
	}
	return out
}
