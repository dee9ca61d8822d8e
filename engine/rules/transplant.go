package rules

import (
	"fmt"
	"slices"

	"wf/protocol"
)

// forked clears what stopped the original. Under another definition the open tokens are offered
// anew: edges are counted from zero there, roles by their names. A visit that is under way goes
// on, and belongs to the edge that leads there now; so does one that failed, where no edge takes that: a resume
// performs it again.
func (s *State) forked(d protocol.Forked) error {
	s.stop, s.End, s.Queue = stop{}, protocol.Link{}, nil
	s.reopenGraph()
	s.Info.Forked = d.Base
	if err := s.taken("the fork", d.Messages); err != nil {
		return err
	}
	if d.Models != nil {
		s.Info.Models = d.Models
	}
	if d.Workspace != "" {
		s.Info.Workspace, s.Info.Machine = d.Workspace, d.Machine
	}
	if d.Origin != "" {
		s.Info.Origin = d.Origin
	}
	s.Info.Trial = d.Trial
	s.Info.Tags = slices.Concat(s.Info.Tags, d.Tags)
	if !d.Start.Defined() {
		return nil
	}
	o, err := s.from.Open(d.Start)
	if err != nil {
		return err
	}
	if d.File != "" {
		s.Info.File = d.File
	}
	s.Info.Source, s.Info.Sources, s.Info.Groups = d.Source, d.Sources, d.Groups
	before := s.prog.Workflow
	s.Start, s.prog, s.begun = d.Start, o.Program, o
	for _, a := range s.acts {
		a.Edges = make([]int, len(o.Program.Workflow.Edges))
		if a.N == startNode {
			a.Links = []protocol.Link{d.Start}
		}
	}
	for _, a := range slices.Clone(s.agenda.tokens) {
		s.offers(a, a.token(a.offer.failed, s.equalItems()))
	}
	for _, a := range s.acts {
		again := !a.open() && slices.Contains(s.agenda.tokens, a) && a.offer.failed && s.routed(a).dead
		if a.open() || again {
			if err = s.transplant(a, before); err == nil {
				continue
			}
			if !again {
				return err
			}
		}
		a.Edge = noEdge
	}
	return nil
}

// transplant has an activation that is under way go on under the definition in force, as if it
// had come by the edge there that is like its own.
func (s *State) transplant(a *act, before *protocol.Workflow) error {
	edge := noEdge
	var was *protocol.Edge
	if a.Edge >= 0 && a.Edge < len(before.Edges) {
		was = &before.Edges[a.Edge]
		edge = s.edgeLike(was, a)
	}
	if edge == noEdge {
		return fmt.Errorf("%s is under way, and no edge of the new definition leads to %s as the old one did: %w", a.name(), a.Role,
			protocol.Hinted(protocol.ErrInvalid, "keep the role and that edge, or fork at a step before "+a.name()))
	}
	a.Edge, a.fan = edge, nil
	if a.Via != protocol.ViaLimit {
		a.Edges[edge]++
	}
	if slices.Contains(a.Parents, startNode) {
		a.Links = []protocol.Link{s.Start}
	}
	for _, v := range a.visits {
		if v != nil && (v.Mode == Runs || v.Mode == Retries || v.Mode == Parked) {
			s.to(v, Ready, v.Due)
		}
	}
	var sources []*act // the tokens of these are awaited by other targets of the old edge
	for _, n := range a.Parents {
		if p := s.act(n); p != nil && p.offer != nil && !p.offer.closed {
			sources = append(sources, p)
		}
	}
	if len(sources) == 0 {
		return nil
	}
	return s.settle(firing{edge: edge, sources: sources}, a.Role)
}

// edgeLike finds the edge of the definition in force that leads to a as was did: the one that
// says the same, else the first with the same ends.
func (s *State) edgeLike(was *protocol.Edge, a *act) int {
	found := noEdge
	for i := range s.prog.Workflow.Edges {
		e := &s.prog.Workflow.Edges[i]
		leads := slices.Contains(e.To, a.Role)
		if a.Via == protocol.ViaLimit {
			leads = e.OnLimit == a.Role
		} else if e.ForEach != was.ForEach {
			continue // a fan-out goes on over the same items
		}
		if !leads || !slices.Equal(e.From, was.From) || e.OnFailure != was.OnFailure {
			continue
		}
		if e.When == was.When {
			return i
		}
		if found == noEdge {
			found = i
		}
	}
	return found
}

// FormatOfFork is how the messages of a fork are rendered: as before if a visit has begun, since
// its conversation goes on byte for byte, else in the newest way.
func (s *State) FormatOfFork() int {
	if slices.ContainsFunc(s.acts, func(a *act) bool { return a.N != startNode }) {
		return s.begun.Start.Format
	}
	return protocol.Format
}

// Continues are the records, in order, that a fork with another definition goes on from: those behind
// the open tokens.
func (s *State) Continues() []protocol.Link {
	var out []protocol.Link
	for _, a := range s.agenda.tokens {
		if a.N != startNode {
			out = append(out, a.records()...)
		}
	}
	return out
}
