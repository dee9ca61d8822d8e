package lint

import (
	"fmt"
	"slices"
	"strings"

	"wf/protocol"
)

// neighbours of every node, forwards or backwards, without repeats, in edge order.
func (g *graph) neighbours(back bool) [][]int {
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

// flood gives the nodes that can be reached from the seeds, these included, by breadth. It goes through
// those of which through is true, nil through all.
func flood(next [][]int, through func(int) bool, seeds ...int) (order []int, seen []bool) {
	seen = make([]bool, len(next))
	meet := func(n int) {
		if !seen[n] {
			seen[n] = true
			order = append(order, n)
		}
	}
	for _, n := range seeds {
		meet(n)
	}
	for i := 0; i < len(order); i++ {
		for _, n := range next[order[i]] {
			if through == nil || through(n) {
				meet(n)
			}
		}
	}
	return order, seen
}

// reach reports roles that START does not lead to (WF011) and roles that lead nowhere
// (WF012). Where several hang together the one at the root of it is named, the others go
// with it.
func (c *check) reach() {
	forth, back := c.g.forth, c.g.back
	_, fromStart := flood(forth, nil, 0)

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
	_, finds := flood(back, nil, exits...)
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
		bad := func(m int) bool { return in[m] }
		_, up := flood(causes, bad, n)
		_, down := flood(effects, bad, n)
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
