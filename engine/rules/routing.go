package rules

import (
	"slices"
	"strings"

	"wf/engine/lang"
	"wf/protocol"
)

// Routing is what became of a token that stays where it is: the edges that were tried for it, in order, with what they saw. Those of
// a run that ended tell why it did.
type Routing struct {
	From   []string // the visits whose token it is: coder#2; of a join all of its sources
	Failed bool     // a visit failed
	At     []string // END, FAIL or SUSPEND, where an edge led there; empty for a token that waits or that no edge takes
	Tried  []Tried
	Bounds []Bound // of the edges that took it
}

// routingsMost bounds the routings that are told.
const routingsMost = 100

// Routings are those of the tokens that stay, the one that led to FAIL first, then those that came last. There may be
// more: of is how many there are.
func (s *State) Routings() (out []Routing, of int, err error) {
	fs := s.firings()
	complete := map[int]bool{}
	var all []firing // the edge of a single token does not matter
	for _, f := range fs {
		if len(f.sources) > 1 {
			complete[f.part] = true
			all = append(all, f)
		}
	}
	for _, a := range s.agenda.tokens {
		joins := func(p part) bool { return p.join && complete[p.edge] }
		if ps := s.routed(a).parts; len(ps) == 0 || slices.ContainsFunc(ps, func(p part) bool { return !joins(p) }) {
			all = append(all, firing{part: noEdge, sources: []*act{a}})
		}
	}
	fail, _, failed := s.toFail(fs)
	toFail := func(f firing) bool { return failed && slices.Equal(f.sources, fail.sources) }
	slices.SortStableFunc(all, func(a, b firing) int {
		if x, y := toFail(a), toFail(b); x != y {
			return map[bool]int{true: -1, false: 1}[x]
		}
		return b.sources[0].N - a.sources[0].N
	})
	for _, f := range all[:min(len(all), routingsMost)] {
		r, err := s.routing(f)
		if err != nil {
			return nil, 0, err
		}
		out = append(out, r)
	}
	return out, len(all), nil
}

// routing explains one token, or a complete join.
func (s *State) routing(f firing) (Routing, error) {
	r := Routing{Tried: []Tried{}}
	for _, a := range f.sources {
		r.From = append(r.From, a.name())
		r.Failed = r.Failed || a.offer.failed
	}
	up, err := s.ancestry(f.sources)
	if err != nil {
		return r, err
	}
	taken, onFailure, all := s.taking(f)
	from := s.prog.Workflow.Edges
	for i := range from {
		e := &from[i]
		switch {
		case e.OnFailure != onFailure || !slices.Contains(e.From, f.sources[0].Role):
			continue
		case len(f.sources) > 1 && s.joinOf(i) != f.part:
			continue
		case len(f.sources) == 1 && len(e.From) > 1:
			if s.joinOf(i) != i {
				continue
			}
			r.Tried = append(r.Tried, Tried{Explanation: lang.Explanation{Edge: i, When: e.When}, From: e.From, To: e.To, Join: true})
		default:
			t, err := s.tried(i, up)
			if err != nil {
				return r, err
			}
			if t.Taken = taken[i]; t.Taken {
				t.Diverted = s.arrives(&r, i, f)
				r.Bounds = append(r.Bounds, s.bounds(i, up)...)
			}
			r.Tried = append(r.Tried, t)
		}
		if taken[i] && !all {
			break
		}
	}
	return r, nil
}

// taking are the edges that take the sources of a firing, whether those are of a failure, and whether one excludes the others.
func (s *State) taking(f firing) (taken map[int]bool, onFailure, all bool) {
	taken = map[int]bool{}
	if len(f.sources) > 1 {
		taken[f.edge] = !f.dead && f.err == nil
		return taken, s.prog.Workflow.Edges[f.edge].OnFailure, false
	}
	a := f.sources[0]
	role, known := s.prog.Workflow.RoleNamed(a.Role)
	onFailure = a.offer.failed && !(known && role.ContinueOnError)
	for _, p := range s.routed(a).parts {
		taken[p.edge] = true
		onFailure = s.prog.Workflow.Edges[p.edge].OnFailure
	}
	return taken, onFailure, known && role.RouteAll
}

// arrives notes at which ends of the graph an edge ends, and gives the node that a bound led to instead.
func (s *State) arrives(r *Routing, edge int, f firing) (diverted string) {
	key := edge
	if len(f.sources) > 1 {
		key = f.part
	}
	for _, t := range s.fire(edge, key, f.sources).targets {
		if t.via == protocol.ViaLimit {
			diverted = t.node
		}
		switch t.node {
		case protocol.NodeEnd, protocol.NodeFail, protocol.NodeSuspend:
			r.At = append(r.At, t.node)
		}
	}
	return diverted
}

// tried decides an edge again, for a token with these ancestors.
func (s *State) tried(edge int, up ancestry) (Tried, error) {
	e := &s.prog.Workflow.Edges[edge]
	t := Tried{From: e.From, To: e.To}
	sc, err := s.scope(edge, up, lang.Everything.With(s.prog.EdgeUses(edge).When))
	if err == nil {
		t.Explanation = s.prog.Explain(edge, sc)
	}
	return t, err
}

// Because is why a run failed: what its cause says, before the step that led to FAIL.
func (c *Cause) Because(message, reason string) string {
	words := []rune(strings.Join(strings.Fields(message), " "))
	switch {
	case c == nil || !c.Failed || c.Direct:
		return reason
	case len(words) == 0:
		words = []rune("failed")
	case len(words) > lastWordsMax:
		words = append(words[:lastWordsMax-1], '…')
	}
	return c.Step + ": " + string(words) + "; " + reason
}
