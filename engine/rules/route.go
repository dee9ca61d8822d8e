package rules

import (
	"fmt"
	"slices"

	"wf/engine/lang"
	"wf/protocol"
)

// route is where the edges of a completed role send its token. It is a pure function of the
// records, so it is computed when first needed and never stored.
type route struct {
	parts []part
	dead  bool  // no edge takes it
	err   error // a condition could not be evaluated
}

// part is one edge that takes the token, or one join where it waits.
type part struct {
	edge int  // of a join: the first edge of its group
	join bool // waits for the other sources
}

// firing is an edge about to activate its targets.
type firing struct {
	edge    int
	part    int // key in offer.taken: the edge, or the first of the join group
	sources []*act
	up      ancestry
	targets []target
	err     error
	dead    bool // a complete join of which no condition holds
}

// target is where one branch of a firing goes: a role, END, FAIL or SUSPEND.
type target struct {
	node string
	via  protocol.Via
	done bool // dispatched already
}

// routed decides which of its edges take the token of a.
func (s *State) routed(a *act) *route {
	if a.offer.route == nil {
		a.offer.route = s.decide(a)
	}
	return a.offer.route
}

func (s *State) decide(a *act) *route {
	all := false
	tolerant := false
	if r, ok := s.prog.Workflow.RoleNamed(a.Role); ok {
		all, tolerant = r.RouteAll, r.ContinueOnError
	}
	if a.offer.failed {
		if r := s.tryEdges(a, true, all); !r.dead || !tolerant {
			return r
		}
	}
	return s.tryEdges(a, false, all)
}

func (s *State) tryEdges(a *act, onFailure, all bool) *route {
	r := &route{}
	joined := map[int]bool{}
	for i := range s.prog.Workflow.Edges {
		e := &s.prog.Workflow.Edges[i]
		if e.OnFailure != onFailure || !slices.Contains(e.From, a.Role) {
			continue
		}
		if len(e.From) > 1 {
			first := s.joinOf(i)
			if joined[first] {
				continue
			}
			joined[first] = true
			r.parts = append(r.parts, part{first, true})
		} else {
			ok, err := s.holds(i, []*act{a})
			if err != nil {
				return &route{err: err, dead: true}
			}
			if !ok {
				continue
			}
			r.parts = append(r.parts, part{i, false})
		}
		if !all {
			break
		}
	}
	r.dead = len(r.parts) == 0
	return r
}

// joinOf is the first edge with the same sources as edge i: they are one join.
func (s *State) joinOf(i int) int {
	from := s.prog.Workflow.Edges[i].From
	for j := range s.prog.Workflow.Edges {
		if slices.Equal(s.prog.Workflow.Edges[j].From, from) {
			return j
		}
	}
	return i
}

// holds evaluates the condition of an edge.
func (s *State) holds(edge int, sources []*act) (bool, error) {
	if s.prog.Workflow.Edges[edge].When == "" {
		return true, nil
	}
	up, err := s.ancestry(sources)
	if err != nil {
		return false, err
	}
	sc, err := s.scope(edge, up, s.prog.EdgeUses(edge).When)
	if err != nil {
		return false, err
	}
	return s.prog.When(edge, sc)
}

// firings lists what the open tokens can do, dispatched targets marked, in a fixed order:
// single tokens by age, then joins by edge.
func (s *State) firings() []firing {
	var out []firing
	waiting := map[int]map[string]*act{} // join → role → token
	for _, a := range s.agenda.tokens {
		r := s.routed(a)
		if r.err != nil || r.dead {
			continue
		}
		for _, p := range r.parts {
			if a.offer.taken[p.edge][wholePart] {
				continue
			}
			if !p.join {
				out = append(out, s.fire(p.edge, p.edge, []*act{a}))
				continue
			}
			if waiting[p.edge] == nil {
				waiting[p.edge] = map[string]*act{}
			}
			if waiting[p.edge][a.Role] == nil {
				waiting[p.edge][a.Role] = a
			}
		}
	}
	for i := range s.prog.Workflow.Edges {
		from := s.prog.Workflow.Edges[i].From
		if len(waiting[i]) < len(from) {
			continue
		}
		var sources []*act
		for _, role := range from {
			sources = append(sources, waiting[i][role])
		}
		out = append(out, s.fireJoin(i, sources))
	}
	return out
}

// fireJoin tries the conditions of a complete join in order.
func (s *State) fireJoin(first int, sources []*act) firing {
	from := s.prog.Workflow.Edges[first].From
	for i := first; i < len(s.prog.Workflow.Edges); i++ {
		if !slices.Equal(s.prog.Workflow.Edges[i].From, from) {
			continue
		}
		ok, err := s.holds(i, sources)
		if err != nil {
			return firing{edge: i, part: first, sources: sources, err: err}
		}
		if ok {
			return s.fire(i, first, sources)
		}
	}
	return firing{edge: first, part: first, sources: sources, dead: true}
}

// parked reports whether a bound keeps a target of a firing back, until a person resumes.
func (f *firing) parked() bool {
	return slices.ContainsFunc(f.targets, func(t target) bool { return t.node == protocol.NodeSuspend && !t.done })
}

// fire applies the bounds to an edge that takes a token. A grant lifts those of its own edge, and
// only where they would suspend: a token that a bound led elsewhere goes on there.
func (s *State) fire(edge, key int, sources []*act) firing {
	granted := slices.ContainsFunc(sources, func(a *act) bool { return a.offer.granted[key] })
	return s.fireBound(edge, key, sources, func(diverted string) bool { return granted && diverted == protocol.NodeSuspend })
}

// fireBound is fire; lifted says whether a bound that leads to a node holds no more.
func (s *State) fireBound(edge, key int, sources []*act, lifted func(diverted string) bool) firing {
	f := firing{edge: edge, part: key, sources: sources}
	e := &s.prog.Workflow.Edges[edge]
	up, err := s.ancestry(sources)
	if err != nil {
		f.err = err
		return f
	}
	f.up = up
	via := protocol.ViaEdge
	if sources[0].N == startNode {
		via = protocol.ViaStart
	}
	full := func(role string) bool {
		r, ok := s.prog.Workflow.RoleNamed(role)
		return ok && r.MaxVisits > 0 && up.entries[role] >= r.MaxVisits
	}
	diverted := target{node: e.OnLimit, via: protocol.ViaLimit}
	if diverted.node == "" || full(diverted.node) {
		diverted.node = protocol.NodeSuspend
	}
	free := lifted(diverted.node)
	if e.Limit > 0 && up.edges[edge] >= e.Limit && !free {
		f.targets = []target{diverted}
	} else {
		for _, node := range e.To {
			t := target{node: node, via: via}
			if full(node) && !free {
				t = diverted
			}
			if !slices.ContainsFunc(f.targets, func(x target) bool { return x.node == t.node }) {
				f.targets = append(f.targets, t)
			}
		}
	}
	for i := range f.targets {
		f.targets[i].done = sources[0].offer.taken[key][f.targets[i].node]
	}
	return f
}

// wholePart marks in offer.taken a part of which nothing is left.
const wholePart = ""

// settle notes that a target of a firing was dispatched, and closes the tokens of which
// nothing is left.
func (s *State) settle(want firing, role string) error {
	e := &s.prog.Workflow.Edges[want.edge]
	src := want.sources[0]
	if r, ok := s.prog.Workflow.RoleNamed(src.Role); len(e.From) == 1 && len(e.To) == 1 && (!ok || !r.RouteAll) {
		s.spend(src) // the common case: nothing to evaluate
		return nil
	}
	key := want.edge
	if len(e.From) > 1 {
		key = s.joinOf(want.edge)
	}
	f := s.fire(want.edge, key, want.sources)
	if f.err == nil && !f.leadsTo(role) && slices.ContainsFunc(want.sources, func(a *act) bool { return len(a.offer.granted) > 0 }) {
		// The first releases lifted every bound after a resume.
		f = s.fireBound(want.edge, key, want.sources, func(string) bool { return true })
	}
	if f.err != nil {
		return f.err
	}
	left := 0
	for _, t := range f.targets {
		if t.node != role && !t.done {
			left++
		}
	}
	if !f.leadsTo(role) {
		return fmt.Errorf("edge %d does not lead to %s: %w", want.edge, role, protocol.ErrCorrupt)
	}
	for _, a := range want.sources {
		o := a.offer
		o.take(key, role)
		if left > 0 {
			continue
		}
		o.take(key, wholePart)
		if !slices.ContainsFunc(s.routed(a).parts, func(p part) bool { return !o.taken[p.edge][wholePart] }) {
			s.spend(a)
		}
	}
	return nil
}

// leadsTo reports whether a target of a firing that was not dispatched yet is role.
func (f *firing) leadsTo(role string) bool {
	return slices.ContainsFunc(f.targets, func(t target) bool { return t.node == role && !t.done })
}

// scope is what expressions of an edge see.
func (s *State) scope(edge int, up ancestry, uses lang.Uses) (lang.Scope, error) {
	sc, err := s.scopeOf(up, s.prog.Workflow.Edges[edge].From, uses)
	sc.EdgeVisit = up.edges[edge] + 1
	return sc, err
}
