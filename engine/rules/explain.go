package rules

import (
	"fmt"
	"slices"

	"wf/engine/lang"
	"wf/protocol"
)

// Why says how a visit came about: every condition that was tried for its token, in order,
// with the values it saw.
type Why struct {
	Step       string
	Edge       int
	Via        protocol.Via
	EdgePrompt string
	Parents    []protocol.Link
	Tried      []Tried
	Bounds     []Bound // of the edge that took the token
}

// Tried is one edge that was looked at.
type Tried struct {
	lang.Explanation
	From, To []string
	Taken    bool
	Join     bool   // the token waits here for others, whatever the conditions say
	Diverted string // where it went instead, because a bound was reached: the on_limit; else ""
}

// Bound is a limit along this branch, with what was counted before this visit.
type Bound struct {
	Name    string // limit, max_visits of coder
	Count   int
	Max     int
	Reached bool
}

// Explain says how a step came about. The state is the one before d, its first step_started. One that
// names no edge of the definition is an error wrapping protocol.ErrCorrupt.
func (s *State) Explain(step string, d protocol.StepStarted) (*Why, error) {
	w := &Why{Step: step, Edge: d.Edge, Via: d.Via, Parents: d.Parents}
	var err error
	if w.EdgePrompt, err = s.text(d.EdgePrompt); err != nil {
		return nil, err
	}
	if d.Via == protocol.ViaAlways {
		return w, nil
	}
	if d.Edge < 0 || d.Edge >= len(s.prog.Workflow.Edges) {
		return nil, fmt.Errorf("%s names edge %d: %w", step, d.Edge, protocol.ErrCorrupt)
	}
	up, from, err := s.came(d)
	if err != nil {
		return nil, err
	}
	taken := &s.prog.Workflow.Edges[d.Edge]
	source, ok := s.prog.Workflow.RoleNamed(from[0])
	all := len(from) == 1 && ok && source.RouteAll
	for i := range s.prog.Workflow.Edges {
		edge := &s.prog.Workflow.Edges[i]
		t := Tried{Explanation: lang.Explanation{Edge: i, When: edge.When}, From: edge.From, To: edge.To, Taken: i == d.Edge}
		switch {
		case slices.Equal(edge.From, taken.From) && edge.OnFailure == taken.OnFailure:
			if t, err = s.tried(i, up); err != nil {
				return nil, err
			}
			t.Taken = i == d.Edge
		case len(taken.From) == 1 && len(edge.From) > 1 && slices.Contains(edge.From, from[0]) && i < d.Edge:
			t.Join = true
		default:
			continue
		}
		if t.Taken && d.Via == protocol.ViaLimit {
			t.Diverted = d.Role
		}
		w.Tried = append(w.Tried, t)
		if t.Taken && !all {
			break
		}
	}
	w.Bounds = s.bounds(d.Edge, up)
	return w, nil
}

// came is the token that d consumed: of its sources, or, for a further item of a fan-out, of
// the activation that is open already.
func (s *State) came(d protocol.StepStarted) (ancestry, []string, error) {
	from := s.prog.Workflow.Edges[d.Edge].From
	if a := s.sameFiring(d); a != nil {
		return a.inherited(), from, nil
	}
	sources, err := s.sources(&s.prog.Workflow.Edges[d.Edge], d.Parents)
	if err != nil {
		return ancestry{}, nil, err
	}
	up, err := s.ancestry(sources)
	return up, from, err
}

// bounds lists the limits that the edge and its targets have along this branch.
func (s *State) bounds(edge int, up ancestry) []Bound {
	var out []Bound
	e := &s.prog.Workflow.Edges[edge]
	add := func(name string, count, most int) {
		if most > 0 {
			out = append(out, Bound{name, count, most, count >= most})
		}
	}
	add("limit", up.edges[edge], e.Limit)
	for _, to := range e.To {
		if r, ok := s.prog.Workflow.RoleNamed(to); ok {
			add("max_visits of "+to, up.entries[to], r.MaxVisits)
		}
	}
	return out
}
