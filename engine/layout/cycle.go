package layout

import "slices"

// breakCycles marks the arcs that close a loop. Of two ways to choose them, by depth and by
// breadth, it takes the one that turns round less of what a reader expects to run downwards.
func breakCycles(g *Graph) {
	out := make([][]int, len(g.Nodes))
	for a, arc := range g.Arcs {
		out[arc.From] = append(out[arc.From], a)
	}
	back := byDepth(g, out)
	if other := byBreadth(g, out); regret(g, other) < regret(g, back) {
		back = other
	}
	for a := range g.Arcs {
		g.Arcs[a].Back = back[a]
	}
}

// regret weighs back arcs: a bounded one is made to lead back, one into a join never is.
func regret(g *Graph, back []bool) int {
	sum := 0
	for a, arc := range g.Arcs {
		switch {
		case !back[a]:
		case g.Nodes[arc.To].Kind == Join:
			sum += 9
		case arc.bounded:
			sum++
		default:
			sum += 3
		}
	}
	return sum
}

// byDepth finds the arcs to a node that a walk in declared order, START first, has entered and
// not left yet.
func byDepth(g *Graph, out [][]int) []bool {
	const fresh, open, left = 0, 1, 2
	back := make([]bool, len(g.Arcs))
	state := make([]int, len(g.Nodes))
	var enter func(n int)
	enter = func(n int) {
		state[n] = open
		for _, a := range out[n] {
			switch to := g.Arcs[a].To; state[to] {
			case fresh:
				enter(to)
			case open:
				back[a] = true
			}
		}
		state[n] = left
	}
	for n := range g.Nodes {
		if state[n] == fresh {
			enter(n)
		}
	}
	return back
}

// byBreadth numbers the nodes as a run meets them, those that only a bound leads to last, and
// finds the arcs of loops that lead to a smaller number.
func byBreadth(g *Graph, out [][]int) []bool {
	number := make([]int, len(g.Nodes))
	for n := range number {
		number[n] = -1
	}
	count := 0
	for first := range g.Nodes {
		queue := []int{first}
		for ; len(queue) > 0; queue = queue[1:] {
			n := queue[0]
			if number[n] >= 0 {
				continue
			}
			number[n] = count
			count++
			for _, a := range out[n] {
				if g.Arcs[a].Kind != Limit {
					queue = append(queue, g.Arcs[a].To)
				}
			}
		}
	}
	back := make([]bool, len(g.Arcs))
	for a, arc := range g.Arcs {
		back[a] = number[arc.To] <= number[arc.From] && leads(g, out, arc.To, arc.From)
	}
	return back
}

// leads reports whether arcs lead from one node to another.
func leads(g *Graph, out [][]int, from, to int) bool {
	seen := make([]bool, len(g.Nodes))
	var reach func(n int) bool
	reach = func(n int) bool {
		if n == to || seen[n] {
			return n == to
		}
		seen[n] = true
		return slices.ContainsFunc(out[n], func(a int) bool { return reach(g.Arcs[a].To) })
	}
	return reach(from)
}
