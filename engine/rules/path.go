package rules

import (
	"cmp"
	"maps"
	"slices"

	"wf/protocol"
)

// entered notes an activation that begins.
func (s *State) entered(a *act) {
	s.ways[protocol.Way{Edge: a.Edge, To: a.Role, Limit: a.Via == protocol.ViaLimit}]++
	delete(s.Fates, a.Role)
}

// Roles are the roles that the run entered, by name: the status of a visit is as Shown says, or how it ended.
func (s *State) Roles() []protocol.RoleEntered {
	open := map[string]*visit{}
	for _, visits := range slices.Concat(s.agenda.graph.visits[:], s.agenda.always.visits[:]) {
		for _, v := range visits {
			if b := open[v.of.Role]; v.of.Num == s.Nums[v.of.Role] && (b == nil || b.Index < v.Index) {
				open[v.of.Role] = v
			}
		}
	}
	var out []protocol.RoleEntered
	for _, role := range slices.Sorted(maps.Keys(s.Nums)) {
		r := protocol.RoleEntered{Role: role, Visits: s.Nums[role], Status: string(s.Fates[role])}
		if v := open[role]; v != nil {
			r.Status = s.Shown(v.Mode, v.of.Via)
		}
		out = append(out, r)
	}
	return out
}

// Ways are the ways that the run took, by edge and target. The last moves, to the ends of the
// graph, are Arrivals.
func (s *State) Ways() []protocol.WayTaken {
	var out []protocol.WayTaken
	for w, n := range s.ways {
		out = append(out, protocol.WayTaken{Way: w, Times: n})
	}
	slices.SortFunc(out, func(a, b protocol.WayTaken) int {
		if c := cmp.Or(cmp.Compare(a.Edge, b.Edge), cmp.Compare(a.To, b.To)); c != 0 || a.Limit == b.Limit {
			return c
		}
		if b.Limit {
			return -1
		}
		return 1
	})
	return out
}

// Shown is the status of a visit that has not ended: running, waiting, retrying or parked. In a run that
// has stopped nothing runs, nor does the graph of one that closes.
func (s *State) Shown(m Mode, via protocol.Via) string {
	over := s.Status().Final() || s.Closing != nil && via != protocol.ViaAlways
	if over || s.Stopped && m != Waits {
		return "parked"
	}
	return map[Mode]string{Runs: "running", Ready: "running", Waits: "waiting", Retries: "retrying", Parked: "parked"}[m]
}

// Arrival is a token that has come to an end of the graph, and stays there.
type Arrival struct {
	Edge int    // index in the definition
	At   string // END, FAIL or SUSPEND
	Via  protocol.Via
}

// Arrivals are the tokens at the ends of the graph, in the order of their firings. Steps tell
// every other move of a run; these are its last ones, for which no step begins.
func (s *State) Arrivals() []Arrival {
	var out []Arrival
	for _, f := range s.firings() {
		if f.err != nil {
			continue
		}
		for _, t := range f.targets {
			switch t.node {
			case protocol.NodeEnd, protocol.NodeFail, protocol.NodeSuspend:
				out = append(out, Arrival{f.edge, t.node, t.via})
			}
		}
	}
	return out
}
