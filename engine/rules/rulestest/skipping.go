package rulestest

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// Skipping draws the YAML of a workflow in which visits are skipped, since they have no items, beside others that begin at the same
// moment: by the skipped ones the run may fail, go back within a bound, or go on.
func Skipping(t *rapid.T) string {
	var roles, edges strings.Builder
	width := rapid.IntRange(2, 4).Draw(t, "width")
	name := func(label string) string { return fmt.Sprintf("r%d", rapid.IntRange(1, width).Draw(t, label)) }
	for i := range width {
		r := fmt.Sprintf("r%d", i+1)
		fmt.Fprintf(&roles, "  %s: {set: {n: [1]}, max_visits: %d}\n", r, rapid.IntRange(1, 3).Draw(t, "visits of "+r))
		each := rapid.SampledFrom([]string{"", ", for_each: '[]'", ", for_each: '[]'", ", for_each: '[1, 2]'"}).Draw(t, "items")
		fmt.Fprintf(&edges, "  - {from: head, to: %s%s}\n", r, each)
		for range rapid.IntRange(0, 2).Draw(t, "guards") {
			to := rapid.SampledFrom([]string{"FAIL", "head, limit: 1, on_limit: FAIL", "head, limit: 2, on_limit: END", "head, limit: 1, on_limit: SUSPEND",
				name("next") + ", limit: 1, on_limit: FAIL", name("next") + ", limit: 1, on_limit: END"}).Draw(t, "guard")
			fmt.Fprintf(&edges, "  - {from: %s, when: len(output) < %d, to: %s}\n", r, rapid.SampledFrom([]int{1, 3}).Draw(t, "fewer than"), to)
		}
		fmt.Fprintf(&edges, "  - {from: %s, to: END}\n", r)
	}
	return "wf: 1\nname: skipping\nlimits: {steps: 60}\ninputs: {long: {type: string, default: \"\"}}\nroles:\n  head: {set: {n: 1}, route: all}\n" + roles.String() + "edges:\n  - {from: START, to: head}\n" + edges.String()
}
