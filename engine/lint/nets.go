package lint

import "slices"

// net is the workflow as a Petri net: transitions move tokens between places. The first
// places are the nodes of the graph, the others the inputs of its joins.
type net struct {
	g      *graph
	places int
	inputs [][]int // by group: the place of each of its from
	moves  []move
}

// move takes one token from each place of pre and, of every part, gives those of one of its
// outcomes. Parts beyond the first belong to route: all; those that are not sure may give
// nothing at all.
type move struct {
	pre   []int
	parts []part
}

type part struct {
	sure     bool
	outcomes [][]int // places, with repeats
}

func netOf(g *graph) *net {
	n := &net{g: g, places: len(g.nodes)}
	for _, group := range g.groups {
		var in []int
		for range group.from {
			in = append(in, n.places)
			n.places++
		}
		n.inputs = append(n.inputs, in)
	}
	for node := range g.nodes {
		n.leave(node, g.open(node, g.offers[node]))
		n.leave(node, g.open(node, g.onFail[node]))
	}
	for k := range g.groups {
		for _, edge := range g.takeable(k) {
			n.moves = append(n.moves, move{pre: n.inputs[k], parts: []part{{true, n.outcomes(edge)}}})
		}
	}
	return n
}

// leave adds what a visit of the node can do with its token.
func (n *net) leave(node int, offers []offer) {
	var parts []part
	for _, o := range offers {
		p := part{sure: n.g.unconditional(o)}
		if o.group >= 0 {
			k := slices.Index(n.g.groups[o.group].from, n.g.nodes[node])
			p.outcomes = [][]int{{n.inputs[o.group][k]}}
		} else {
			p.outcomes = n.outcomes(o.edge)
		}
		parts = append(parts, p)
	}
	if n.g.routeAll(node) {
		if len(parts) > 0 {
			n.moves = append(n.moves, move{[]int{node}, parts})
		}
		return
	}
	for _, p := range parts {
		p.sure = true
		n.moves = append(n.moves, move{[]int{node}, []part{p}})
	}
}

// outcomes are the ways an edge can go: to its targets, or diverted by its limit, or with any
// of the targets that are full replaced by on_limit. END, FAIL and SUSPEND hold no token.
func (n *net) outcomes(edge int) [][]int {
	e := &n.g.w.Edges[edge]
	var open, full []int
	for _, name := range e.To {
		if to, ok := n.g.index[name]; ok {
			if n.g.capped(to) {
				full = append(full, to)
			} else {
				open = append(open, to)
			}
		}
	}
	instead, diverted := n.g.index[e.OnLimit]
	all := [][]int{append(slices.Clone(open), full...)}
	if !diverted {
		// A token that is parked instead leaves a smaller marking, which adds nothing.
		return all
	}
	if e.Limit > 0 {
		all = append(all, []int{instead})
	}
	for k := range full {
		out := slices.Clone(open)
		out = append(out, full[:k]...)
		out = append(out, full[k+1:]...)
		all = append(all, append(out, instead)) // one token goes there, however many are full
	}
	return all
}

// together says of every two places whether both can hold a token at once, and of every
// place whether it can hold one, or two.
type together struct {
	net    *net
	marked []bool
	pairs  [][]bool
	using  [][]int // by place: the moves that take from it
	todo   [][2]int
}

// explore computes together as the least fixpoint: what the initial token marks, what a move
// gives at once, and what stays beside a move if it can lie beside the tokens of that move. It may say yes
// where the truth is no, never the reverse.
func (n *net) explore() *together {
	t := &together{net: n, marked: make([]bool, n.places), pairs: make([][]bool, n.places), using: make([][]int, n.places)}
	for p := range t.pairs {
		t.pairs[p] = make([]bool, n.places)
	}
	for k, m := range n.moves {
		for _, p := range m.pre {
			t.using[p] = append(t.using[p], k)
		}
	}
	enabled := make([]bool, len(n.moves))
	t.mark(0, enabled)
	for len(t.todo) > 0 {
		pair := t.todo[len(t.todo)-1]
		t.todo = t.todo[:len(t.todo)-1]
		t.spread(pair[0], pair[1], enabled)
		if pair[0] != pair[1] {
			t.spread(pair[1], pair[0], enabled)
		}
	}
	return t
}

// mark notes that p can hold a token, and fires what that enables.
func (t *together) mark(p int, enabled []bool) {
	if t.marked[p] {
		return
	}
	t.marked[p] = true
	for _, k := range t.using[p] {
		t.enable(k, enabled)
	}
}

// enable fires move k for the first time if its tokens can all be there.
func (t *together) enable(k int, enabled []bool) {
	m := &t.net.moves[k]
	if enabled[k] {
		return
	}
	for i, p := range m.pre {
		if !t.marked[p] {
			return
		}
		for _, q := range m.pre[:i] {
			if !t.pairs[p][q] {
				return
			}
		}
	}
	enabled[k] = true
	for i, part := range m.parts {
		for _, out := range part.outcomes {
			for a, p := range out {
				t.mark(p, enabled)
				for _, q := range out[:a] {
					t.pair(p, q)
				}
				for _, before := range m.parts[:i] {
					for _, other := range before.outcomes {
						for _, q := range other {
							t.pair(p, q)
						}
					}
				}
			}
		}
	}
	for x := range t.marked {
		t.beside(k, x)
	}
}

// spread carries what lies beside p over every move that takes from p.
func (t *together) spread(p, x int, enabled []bool) {
	for _, k := range t.using[p] {
		t.enable(k, enabled)
		if enabled[k] {
			t.beside(k, x)
		}
	}
}

// beside leaves the token of x where it is while move k fires.
func (t *together) beside(k, x int) {
	m := &t.net.moves[k]
	for _, p := range m.pre {
		if !t.pairs[p][x] {
			return
		}
	}
	for _, part := range m.parts {
		for _, out := range part.outcomes {
			for _, q := range out {
				t.pair(q, x)
			}
		}
	}
}

func (t *together) pair(p, q int) {
	if t.pairs[p][q] {
		return
	}
	t.pairs[p][q], t.pairs[q][p] = true, true
	t.todo = append(t.todo, [2]int{p, q})
}
