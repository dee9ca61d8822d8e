package layout

import "slices"

// Sizes, in pixels; nameCell is the width of one column of text, noteCell and labelCell that
// of ten.
const (
	roleWidth, roleHeight   = 132, 48
	smallWidth, smallHeight = 64, 28
	barWidth, barHeight     = 84, 7
	labelHeight             = 22
	iconRoom                = 42
	nameCell                = 9
	noteCell                = 63
	labelCell               = 66
	nodeGap, dummyGap       = 34, 22
	loopRoom                = 30
	margin                  = 24
)

// Bounds of the work on a graph too large to be looked at: it is still drawn, less well.
const (
	verticesMax = 50_000     // beyond it an arc goes straight to its label and its end
	orderWork   = 40_000_000 // comparisons of neighbours
	placeWork   = 4_000_000  // moves of a vertex
)

// drawing is a graph on its way to coordinates: vertices in ranks, arcs as chains of them.
type drawing struct {
	g      *Graph
	vs     []vertex
	ranks  [][]int // vertices from left to right
	loops  [][]int // by node: the arcs that lead back to it at once
	chains [][]int // by arc: its vertices from top to bottom; nil for a loop at one node
	up     [][]int // by vertex: its neighbours in the rank above, and below
	down   [][]int
	pos    []int // by vertex: its place in its rank
}

// vertex is a node, or a place where an arc passes a rank.
type vertex struct {
	node  int // index in Graph.Nodes, −1 where an arc passes
	label int // arc that has its label here, −1 is none
	rank  int
	x     int // of its centre, in units of a pixel / fine
	l, r  int // how far it extends to either side, in pixels
	h     int
}

func newDrawing(g *Graph) *drawing {
	d := &drawing{g: g}
	breakCycles(g)
	layers := layer(g)
	d.loops = make([][]int, len(g.Nodes))
	for a, arc := range g.Arcs {
		if arc.From == arc.To {
			d.loops[arc.From] = append(d.loops[arc.From], a)
		}
	}
	last := 0
	for n := range g.Nodes {
		node := &g.Nodes[n]
		node.H = max(node.H, (labelHeight+6)*len(d.loops[n]))
		v := vertex{node: n, label: -1, rank: 2 * layers[n], l: node.W / 2, r: node.W - node.W/2, h: node.H}
		aside := 0
		for _, a := range d.loops[n] {
			aside = max(aside, loopRoom+labelWidth(g.Arcs[a].Label))
		}
		v.r += aside
		d.vs = append(d.vs, v)
		last = max(last, v.rank)
	}
	d.chains = make([][]int, len(g.Arcs))
	for a := range g.Arcs {
		d.chain(a)
	}
	d.ranks = make([][]int, last+1)
	d.up, d.down = make([][]int, len(d.vs)), make([][]int, len(d.vs))
	for _, chain := range d.chains {
		for i := 1; i < len(chain); i++ {
			d.up[chain[i]] = append(d.up[chain[i]], chain[i-1])
			d.down[chain[i-1]] = append(d.down[chain[i-1]], chain[i])
		}
	}
	d.pos = make([]int, len(d.vs))
	d.seed()
	return d
}

// chain leads arc a through every rank it passes. Its label stands next to where it starts.
func (d *drawing) chain(a int) {
	arc := &d.g.Arcs[a]
	top, bottom := arc.From, arc.To
	if top == bottom {
		return
	}
	if arc.Back {
		top, bottom = bottom, top
	}
	chain := []int{top}
	first, last := d.vs[top].rank+1, d.vs[bottom].rank-1
	labelled := -1
	if arc.Label != "" {
		if labelled = first; arc.Back {
			labelled = last
		}
	}
	for rank := first; rank <= last; rank++ {
		v := vertex{node: -1, label: -1, rank: rank, l: 1, r: 1}
		if rank == labelled {
			w := labelWidth(arc.Label)
			v.label, v.l, v.r, v.h = a, w/2, w-w/2, labelHeight
		} else if len(d.vs) > verticesMax {
			continue // so large a picture may have lines behind its boxes
		}
		chain = append(chain, len(d.vs))
		d.vs = append(d.vs, v)
	}
	d.chains[a] = append(chain, bottom)
}

func labelWidth(s string) int {
	if s == "" {
		return 0
	}
	return labelCell*cells(s)/10 + 16
}

// layer gives every node the length of the longest way to it, back arcs turned round, and
// END the last layer but for the always roles, which follow it.
func layer(g *Graph) []int {
	layers := make([]int, len(g.Nodes))
	waiting := make([]int, len(g.Nodes))
	out := make([][]int, len(g.Nodes))
	for _, arc := range g.Arcs {
		from, to := arc.From, arc.To
		if from == to || arc.Kind == Always {
			continue
		}
		if arc.Back {
			from, to = to, from
		}
		out[from] = append(out[from], to)
		waiting[to]++
	}
	var ready []int
	for n := range g.Nodes {
		if waiting[n] == 0 {
			ready = append(ready, n)
		}
	}
	for len(ready) > 0 {
		n := ready[0]
		ready = ready[1:]
		for _, m := range out[n] {
			layers[m] = max(layers[m], layers[n]+1)
			if waiting[m]--; waiting[m] == 0 {
				ready = append(ready, m)
			}
		}
	}
	end := slices.IndexFunc(g.Nodes, func(n Node) bool { return n.Kind == End })
	layers[end] = 0
	inner := slices.Max(layers)
	for n := range g.Nodes {
		k := g.Nodes[n].Kind
		if layers[n] == inner && k != Fail && k != Suspend && n != end {
			inner++
			break
		}
	}
	layers[end] = max(1, inner)
	for _, arc := range g.Arcs {
		if arc.Kind == Always {
			layers[arc.To] = layers[arc.From] + 1
		}
	}
	return layers
}
