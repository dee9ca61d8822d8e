// Package rulestest draws workflows for the tests of the rules and of what drives runs by them.
//
//	Flow ──► YAML of a workflow; its roles only set values
//
// # Limits
//
// What a drawn workflow does depends on what its roles are made to conclude: items, again and n are the
// fields that its edges look at.
package rulestest

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// Flow draws the YAML of a workflow that lint accepts, but for a few that it takes for endless: a spine of blocks, each a single role, a split
// with its join, a fan-out or a bounded loop back.
func Flow(t *rapid.T) string {
	var roles, edges strings.Builder
	n := 0
	role := func(extra string) string {
		n++
		name := fmt.Sprintf("r%d", n)
		fmt.Fprintf(&roles, "  %s: {set: {again: true, items: [1, 2], n: 0}%s}\n", name, extra)
		return name
	}
	var spine []string
	for range rapid.IntRange(1, 5).Draw(t, "blocks") {
		from := "START"
		if len(spine) > 0 {
			from = spine[len(spine)-1]
		}
		switch rapid.SampledFrom([]string{"one", "split", "fan", "loop", "loop", "risky"}).Draw(t, "block") {
		case "one":
			r := role("")
			fmt.Fprintf(&edges, "  - {from: %s, to: %s, prompt: \"to %s ${{ inputs.long }}\"}\n", from, r, r)
			spine = append(spine, r)
		case "risky":
			r, rescue, next := role(""), role(""), role("")
			fmt.Fprintf(&edges, "  - {from: %s, to: %s, prompt: risky}\n  - {from: %s, to: %s, on: failure, limit: 5, on_limit: FAIL}\n", from, r, r, rescue)
			fmt.Fprintf(&edges, "  - {from: %s, to: %s}\n  - {from: %s, to: %s}\n", r, next, rescue, next)
			spine = append(spine, next)
		case "split":
			branches := []string{}
			heads := []string{}
			for range rapid.IntRange(2, 3).Draw(t, "branches") {
				head := role("")
				heads = append(heads, head)
				tail := head
				if rapid.Bool().Draw(t, "longer") {
					tail = role("")
					fmt.Fprintf(&edges, "  - {from: %s, to: %s}\n", head, tail)
					if rapid.Bool().Draw(t, "inner loop") {
						fmt.Fprintf(&edges, "  - {from: %s, to: %s, when: output.again, limit: %d, on_limit: SUSPEND}\n", tail, head, 3)
					}
				}
				branches = append(branches, tail)
			}
			join := role("")
			fmt.Fprintf(&edges, "  - {from: %s, to: [%s]}\n", from, strings.Join(heads, ", "))
			fmt.Fprintf(&edges, "  - {from: [%s], to: %s, prompt: \"join\"}\n", strings.Join(branches, ", "), join)
			spine = append(spine, join)
		case "fan":
			if from == "START" {
				r := role("")
				fmt.Fprintf(&edges, "  - {from: START, to: %s}\n", r)
				from = r
			}
			w, after := role(""), role("")
			fmt.Fprintf(&edges, "  - {from: %s, to: %s, for_each: output.items, max_parallel: %d, prompt: \"item ${{ item }} of ${{ index }}, ${{ edge.visit }} after ${{ steps.%s?.visit }} ${{ inputs.long }}\"}\n", from, w,
				rapid.IntRange(1, 3).Draw(t, "parallel"), from)
			fmt.Fprintf(&edges, "  - {from: %s, to: %s}\n", w, after)
			spine = append(spine, after)
		case "loop":
			r := role("")
			fmt.Fprintf(&edges, "  - {from: %s, to: %s}\n", from, r)
			if len(spine) > 0 {
				back := rapid.SampledFrom(spine).Draw(t, "back")
				next := role("")
				fmt.Fprintf(&edges, "  - {from: %s, to: %s, when: output.again, limit: %d, on_limit: %s, prompt: \"again ${{ edge.visit }} ${{ inputs.long }}\"}\n", r, back,
					rapid.IntRange(1, 3).Draw(t, "limit"), next)
				fmt.Fprintf(&edges, "  - {from: %s, to: %s}\n", r, next)
				r = next
			}
			spine = append(spine, r)
		}
	}
	fmt.Fprintf(&edges, "  - {from: %s, to: END}\n", spine[len(spine)-1])
	return "wf: 1\nname: random\nlimits: {steps: 150}\ninputs: {long: {type: string, default: \"\"}}\nroles:\n" + roles.String() + "edges:\n" + edges.String() + "outputs: {last: \"${{ steps." + spine[len(spine)-1] + ".output.n }}\"}\n"
}
