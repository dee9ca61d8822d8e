package lang

import (
	"strings"

	"wf/engine/lint"
)

// nearest is the candidate that name was probably meant to be, or "". Candidates are tried
// in order, so that the answer is stable.
func nearest(name string, candidates []string) string {
	best, bound := "", max(1, min(3, len([]rune(name))/3))+1
	low := strings.ToLower(name)
	for _, c := range candidates {
		if d := lint.Edits(low, strings.ToLower(c)); d < bound {
			best, bound = c, d
		}
	}
	return best
}
