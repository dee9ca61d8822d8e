package layout

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
	type frame struct{ node, next int }
	for n := range g.Nodes {
		if state[n] != fresh {
			continue
		}
		state[n] = open
		for stack := []frame{{n, 0}}; len(stack) > 0; {
			top := &stack[len(stack)-1]
			if top.next == len(out[top.node]) {
				state[top.node] = left
				stack = stack[:len(stack)-1]
				continue
			}
			a := out[top.node][top.next]
			top.next++
			switch to := g.Arcs[a].To; state[to] {
			case fresh:
				state[to] = open
				stack = append(stack, frame{to, 0})
			case open:
				back[a] = true
			}
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
	for stack := []int{from}; len(stack) > 0; {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if n == to {
			return true
		}
		if seen[n] {
			continue
		}
		seen[n] = true
		for _, a := range out[n] {
			stack = append(stack, g.Arcs[a].To)
		}
	}
	return false
}
