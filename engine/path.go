package engine

import (
	"wf/api"
	"wf/engine/rules"
)

// rolesOf are the roles that a run entered, by name.
func rolesOf(s *rules.State) []api.Role {
	var out []api.Role
	for _, r := range s.Roles() {
		out = append(out, api.Role(r))
	}
	return out
}

// waysOf are the ways that a run took, by edge and target.
func waysOf(s *rules.State) []api.WayTaken {
	var out []api.WayTaken
	for _, w := range s.Ways() {
		out = append(out, api.WayTaken{Way: api.Way(w.Way), Times: w.Times})
	}
	return out
}
