package rules

import (
	"slices"

	"wf/protocol"
)

// semanticsEqualItems is the version since which, of equal items of a fan-out that is entered
// again, the n-th goes on with the n-th. Before, all of them went on with the last one.
const semanticsEqualItems = 2

// semanticsAlways is the version since which a run closes: its always roles run once its verdict stands.
const semanticsAlways = 3

// semanticsMerge is the version since which roles merge own copies of the workspace; tree.ThreeWay is a part of it.
const semanticsMerge = 4

// semanticsBehindFail is the last version under which a wf began, behind a visit that was skipped and by which the run failed, what it
// had decided on before, in the same commit. No wf does so any more; what such a one wrote holds.
const semanticsBehindFail = 4

// SemanticsOf is the version of the rules that a run of w pins: the least that has all the rules
// w makes use of. So a newer wf gives the runs of other definitions the CIDs they always had.
func SemanticsOf(w *protocol.Workflow) int {
	if slices.ContainsFunc(w.Roles, func(r protocol.Role) bool { return r.Action == protocol.ActMerge }) {
		return semanticsMerge
	}
	if len(w.Always) > 0 {
		return semanticsAlways
	}
	for i := range w.Edges {
		e := &w.Edges[i]
		if e.ForEach == "" {
			continue
		}
		for _, role := range e.To {
			if returnsTo(w, role) {
				return semanticsEqualItems
			}
		}
	}
	return 1
}

// returnsTo reports whether a way leads from a role back to it.
func returnsTo(w *protocol.Workflow, role string) bool {
	seen := map[string]bool{}
	var leads func(from string) bool
	leads = func(from string) bool {
		if seen[from] {
			return false
		}
		seen[from] = true
		return slices.ContainsFunc(w.Edges, func(e protocol.Edge) bool {
			return slices.Contains(e.From, from) && slices.ContainsFunc(append([]string{e.OnLimit}, e.To...), func(to string) bool { return to == role || leads(to) })
		})
	}
	return leads(role)
}
