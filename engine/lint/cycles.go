package lint

import (
	"fmt"
	"slices"
	"strings"
)

// cycles reports ways that a token could go round for ever (WF013): the shortest first, then
// what is left when its arcs are gone.
func (c *check) cycles() {
	var arcs []arc
	for _, a := range c.g.arcs {
		if !a.bounded && !c.dead[a.edge] {
			arcs = append(arcs, a)
		}
	}
	rank := c.g.ranks()
	for {
		ring := shortestRing(len(c.g.nodes), arcs)
		if ring == nil {
			return
		}
		arcs = slices.DeleteFunc(arcs, func(a arc) bool { return slices.Contains(ring, a) })

		// The ring is described from the role that a run meets first.
		first := 0
		for i := range ring {
			if rank[ring[i].from] < rank[ring[first].from] {
				first = i
			}
		}
		ring = append(slices.Clone(ring[first:]), ring[:first]...)
		names := []string{c.g.nodes[ring[0].from]}
		for _, a := range ring {
			names = append(names, c.g.nodes[a.to])
		}
		last := ring[len(ring)-1]
		part := ""
		if c.viaLimit(last) {
			part = "on_limit"
		}
		hint := "add  limit: 3  to one of its edges, or  max_visits  to one of its roles"
		if slices.ContainsFunc(ring, c.viaLimit) {
			hint = "a limit does not bound the way to its own on_limit: add one to another edge of the cycle, or  max_visits  to one of its roles"
		}
		c.edge(last.edge, "WF013", edgePath(last.edge, part),
			fmt.Sprintf("cycle %s has no bound", strings.Join(names, " → ")), hint)
	}
}

// viaLimit reports whether the arc is the way to on_limit.
func (c *check) viaLimit(a arc) bool {
	return !slices.Contains(c.w.Edges[a.edge].To, c.g.nodes[a.to])
}

// ranks numbers the nodes in the order in which a run meets them, by breadth; what it never
// meets comes last.
func (g *graph) ranks() []int {
	rank := make([]int, len(g.nodes))
	for n := range rank {
		rank[n] = len(g.nodes) + n
	}
	met, _ := flood(g.forth, nil, 0)
	for k, n := range met {
		rank[n] = k
	}
	return rank
}

// shortestRing gives the arcs of a shortest cycle, nil if there is none. Of several the one
// found first counts, nodes and arcs taken in order.
func shortestRing(nodes int, arcs []arc) []arc {
	out := make([][]arc, nodes)
	for _, a := range arcs {
		out[a.from] = append(out[a.from], a)
	}
	trim(out)
	var best []arc
	for start := range out {
		if ring := ringThrough(out, start, len(best)); ring != nil {
			best = ring
			if len(best) == 1 {
				break
			}
		}
	}
	return best
}

// trim takes away what cannot lie on a cycle: nodes that lead nowhere, time after time.
func trim(out [][]arc) {
	in := make([][]int, len(out))
	left := make([]int, len(out))
	var idle []int
	for n, arcs := range out {
		left[n] = len(arcs)
		for _, a := range arcs {
			in[a.to] = append(in[a.to], n)
		}
		if len(arcs) == 0 {
			idle = append(idle, n)
		}
	}
	for len(idle) > 0 {
		n := idle[0]
		idle = idle[1:]
		out[n] = nil
		for _, m := range in[n] {
			if left[m]--; left[m] == 0 {
				idle = append(idle, m)
			}
		}
	}
}

// ringThrough finds a shortest cycle through start with fewer arcs than below (0 is any).
func ringThrough(out [][]arc, start, below int) []arc {
	if len(out[start]) == 0 {
		return nil
	}
	came := map[int]arc{}
	frontier := []int{start}
	for depth := 1; len(frontier) > 0 && (below == 0 || depth < below); depth++ {
		var next []int
		for _, n := range frontier {
			for _, a := range out[n] {
				if a.to == start {
					ring := []arc{a}
					for n := a.from; n != start; n = came[n].from {
						ring = append(ring, came[n])
					}
					slices.Reverse(ring)
					return ring
				}
				if _, seen := came[a.to]; !seen {
					came[a.to] = a
					next = append(next, a.to)
				}
			}
		}
		frontier = next
	}
	return nil
}
