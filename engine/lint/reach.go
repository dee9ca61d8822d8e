package lint

import (
	"fmt"
	"slices"
	"strings"

	"wf/protocol"
)

// next gives the neighbours of every node, forwards or backwards, without repeats, in edge
// order.
func (g *graph) next(back bool) [][]int {
	out := make([][]int, len(g.nodes))
	for _, a := range g.arcs {
		from, to := a.from, a.to
		if back {
			from, to = to, from
		}
		if !slices.Contains(out[from], to) {
			out[from] = append(out[from], to)
		}
	}
	return out
}

// flood gives the nodes that can be reached from the seeds, these included, by breadth.
func flood(next [][]int, seeds ...int) []bool {
	seen := make([]bool, len(next))
	queue := slices.Clone(seeds)
	for _, n := range seeds {
		seen[n] = true
	}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		for _, m := range next[n] {
			if !seen[m] {
				seen[m] = true
				queue = append(queue, m)
			}
		}
	}
	return seen
}

// reach reports roles that START does not lead to (WF011) and roles that lead nowhere
// (WF012). Where several hang together the one at the root of it is named, the others go
// with it.
func (c *check) reach() {
	forth, back := c.g.next(false), c.g.next(true)
	fromStart := flood(forth, 0)

	var lost []int
	for n := 1; n < len(c.g.nodes); n++ {
		if !fromStart[n] {
			lost = append(lost, n)
		}
	}
	for _, r := range roots(lost, back, forth) {
		c.role(c.g.nodes[r.node], "WF011", "roles."+c.g.nodes[r.node],
			fmt.Sprintf("role %q cannot be reached from START%s", c.g.nodes[r.node], c.g.along("nor can ", r.others)),
			"add an edge that leads to it, or remove the role")
	}

	var exits []int
	for i := range c.w.Edges {
		e := &c.w.Edges[i]
		out := slices.ContainsFunc(e.To, ends) || ends(e.OnLimit) && c.g.diverts(e)
		for _, name := range e.From {
			if out {
				exits = append(exits, c.g.index[name])
			}
		}
	}
	finds := flood(back, exits...)
	var stuck []int
	for n := 1; n < len(c.g.nodes); n++ {
		if fromStart[n] && !finds[n] {
			stuck = append(stuck, n)
		}
	}
	for _, r := range roots(stuck, forth, back) {
		name := c.g.nodes[r.node]
		c.role(name, "WF012", "roles."+name,
			fmt.Sprintf("no path leads from role %q to END or FAIL%s", name, c.g.along("nor from ", r.others)),
			fmt.Sprintf("add an edge such as {from: %s, to: END}", name))
	}
}

func ends(name string) bool { return name == protocol.NodeEnd || name == protocol.NodeFail }

func (g *graph) along(lead string, others []int) string {
	var names []string
	for _, n := range others {
		if _, strange := g.strangers[g.nodes[n]]; !strange {
			names = append(names, g.nodes[n])
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ", " + lead + strings.Join(names, ", ")
}

// root is a node of a bad part of the graph from which the badness of others follows.
type root struct {
	node   int
	others []int
}

// roots picks, of the bad nodes, one for every cause: causes gives the neighbours a node's
// badness can come from, effects those it passes on to. A part without an outer cause, such
// as a ring, is named by its first node.
func roots(bad []int, causes, effects [][]int) []root {
	in := make([]bool, len(causes))
	for _, n := range bad {
		in[n] = true
	}
	var found []root
	covered := make([]bool, len(causes))
	for _, n := range bad {
		if covered[n] {
			continue
		}
		up, down := within(causes, in, n), within(effects, in, n)
		// n is at the root if whatever causes it is caused by it in turn.
		outer := false
		for m := range up {
			outer = outer || up[m] && !down[m]
		}
		if outer {
			continue
		}
		r := root{node: n}
		for m, hit := range down {
			if hit && m != n && !covered[m] {
				r.others = append(r.others, m)
			}
			covered[m] = covered[m] || hit
		}
		found = append(found, r)
	}
	return found
}

// within floods from n through the nodes of in alone.
func within(next [][]int, in []bool, n int) []bool {
	seen := make([]bool, len(next))
	seen[n] = true
	stack := []int{n}
	for len(stack) > 0 {
		n, stack = stack[len(stack)-1], stack[:len(stack)-1]
		for _, m := range next[n] {
			if in[m] && !seen[m] {
				seen[m] = true
				stack = append(stack, m)
			}
		}
	}
	return seen
}
