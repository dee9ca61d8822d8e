package rules

import (
	"wf/protocol"
)

// semanticsEqualItems is the version since which, of equal items of a fan-out that is entered
// again, the n-th goes on with the n-th. Before, all of them went on with the last one.
const semanticsEqualItems = 2

// SemanticsOf is the version of the rules that a run of w pins: the least that has all the rules
// w makes use of. So a newer wf gives the runs of other definitions the CIDs they always had.
func SemanticsOf(w *protocol.Workflow) int {
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
	for todo := []string{role}; len(todo) > 0; {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for i := range w.Edges {
			e := &w.Edges[i]
			for _, from := range e.From {
				if from != at {
					continue
				}
				for _, to := range append([]string{e.OnLimit}, e.To...) {
					if to == role {
						return true
					}
					if !seen[to] {
						seen[to] = true
						todo = append(todo, to)
					}
				}
			}
		}
	}
	return false
}
