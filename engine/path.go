package engine

import (
	"cmp"
	"maps"
	"slices"

	"wf/api"
	"wf/protocol"
)

// path is where a run went, summed up over its journal: most of its steps have left the live
// region.
type path struct {
	ways  map[api.Way]int
	fates map[string]protocol.StepStatus // of the newest visit of a role, once it has ended
}

func newPath() path { return path{map[api.Way]int{}, map[string]protocol.StepStatus{}} }

// entered notes an activation that begins.
func (p *path) entered(a *act) {
	p.ways[api.Way{Edge: a.edge, To: a.role, Limit: a.via == protocol.ViaLimit}]++
	delete(p.fates, a.role)
}

// Roles are the roles that the run entered, by name.
func (s *State) Roles() []api.Role {
	open := map[string]*visit{}
	for _, visits := range s.agenda.visits {
		for _, v := range visits {
			if b := open[v.of.role]; v.of.num == s.nums[v.of.role] && (b == nil || b.id.Index < v.id.Index) {
				open[v.of.role] = v
			}
		}
	}
	var out []api.Role
	for _, role := range slices.Sorted(maps.Keys(s.nums)) {
		r := api.Role{Role: role, Visits: s.nums[role], Status: string(s.path.fates[role])}
		if v := open[role]; v != nil {
			r.Status = s.shown(v)
		}
		out = append(out, r)
	}
	return out
}

// Ways are the ways that the run took, by edge and target. The last moves, to the ends of the
// graph, are Arrivals.
func (s *State) Ways() []api.WayTaken {
	var out []api.WayTaken
	for w, n := range s.path.ways {
		out = append(out, api.WayTaken{Way: w, Times: n})
	}
	slices.SortFunc(out, func(a, b api.WayTaken) int {
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

// shown is the status of a visit that has not ended. In a run that has stopped nothing runs.
func (s *State) shown(x *visit) string {
	if s.stop != nil && (x.mode != waits || s.Status().Final()) {
		return "parked"
	}
	return map[mode]string{runs: "running", ready: "running", waits: "waiting", retries: "retrying", parked: "parked"}[x.mode]
}
