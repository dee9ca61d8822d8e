package rules

import (
	"cmp"
	"maps"
	"slices"

	"wf/protocol"
)

// Way is a way out of an edge: to one of its targets, or to where its bound diverts it.
type Way struct {
	Edge  int    `cbor:"edge"` // index in the definition
	To    string `cbor:"to"`
	Limit bool   `cbor:"limit,omitempty"` // since a bound was exhausted
}

// Entered is what a run did with a role.
type Entered struct {
	Role   string
	Visits int    // a fan-out is one
	Status string // of its newest visit: as Shown says, or how it ended
}

// Took is a way that a run took.
type Took struct {
	Way
	Times int `cbor:"times"`
}

// path is where a run went, summed up over its journal: most of its steps have left the live
// region.
type path struct {
	ways  map[Way]int
	fates map[string]protocol.StepStatus // of the newest visit of a role, once it has ended
}

func newPath() path { return path{map[Way]int{}, map[string]protocol.StepStatus{}} }

// entered notes an activation that begins.
func (p *path) entered(a *act) {
	p.ways[Way{a.edge, a.role, a.via == protocol.ViaLimit}]++
	delete(p.fates, a.role)
}

// Roles are the roles that the run entered, by name.
func (s *State) Roles() []Entered {
	open := map[string]*visit{}
	for _, visits := range s.agenda.visits {
		for _, v := range visits {
			if b := open[v.of.role]; v.of.num == s.nums[v.of.role] && (b == nil || b.id.Index < v.id.Index) {
				open[v.of.role] = v
			}
		}
	}
	var out []Entered
	for _, role := range slices.Sorted(maps.Keys(s.nums)) {
		r := Entered{role, s.nums[role], string(s.path.fates[role])}
		if v := open[role]; v != nil {
			r.Status = s.Shown(v.mode)
		}
		out = append(out, r)
	}
	return out
}

// Ways are the ways that the run took, by edge and target. The last moves, to the ends of the
// graph, are Arrivals.
func (s *State) Ways() []Took {
	var out []Took
	for w, n := range s.path.ways {
		out = append(out, Took{w, n})
	}
	slices.SortFunc(out, func(a, b Took) int {
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
