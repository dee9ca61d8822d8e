package rules

import (
	"cmp"
	"maps"
	"slices"

	"wf/protocol"
)

// path is where a run went, summed up over its journal: most of its steps have left the live
// region.
type path struct {
	ways  map[protocol.Way]int
	fates map[string]protocol.StepStatus // of the newest visit of a role, once it has ended
}

func newPath() path { return path{map[protocol.Way]int{}, map[string]protocol.StepStatus{}} }

// entered notes an activation that begins.
func (p *path) entered(a *act) {
	p.ways[protocol.Way{Edge: a.edge, To: a.role, Limit: a.via == protocol.ViaLimit}]++
	delete(p.fates, a.role)
}

// Roles are the roles that the run entered, by name: the status of a visit is as Shown says, or how it ended.
func (s *State) Roles() []protocol.RoleEntered {
	open := map[string]*visit{}
	for _, visits := range s.agenda.visits {
		for _, v := range visits {
			if b := open[v.of.role]; v.of.num == s.nums[v.of.role] && (b == nil || b.id.Index < v.id.Index) {
				open[v.of.role] = v
			}
		}
	}
	var out []protocol.RoleEntered
	for _, role := range slices.Sorted(maps.Keys(s.nums)) {
		r := protocol.RoleEntered{Role: role, Visits: s.nums[role], Status: string(s.path.fates[role])}
		if v := open[role]; v != nil {
			r.Status = s.Shown(v.mode)
		}
		out = append(out, r)
	}
	return out
}

// Ways are the ways that the run took, by edge and target. The last moves, to the ends of the
// graph, are Arrivals.
func (s *State) Ways() []protocol.WayTaken {
	var out []protocol.WayTaken
	for w, n := range s.path.ways {
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
// has stopped nothing runs.
func (s *State) Shown(m Mode) string {
	if s.stop != nil && (m != Waits || s.Status().Final()) {
		return "parked"
	}
	return map[Mode]string{Runs: "running", Ready: "running", Waits: "waiting", Retries: "retrying", Parked: "parked"}[m]
}
