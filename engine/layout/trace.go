package layout

import (
	"cmp"
	"slices"
)

// trace gives the ranks their height, nodes and labels their boxes and arcs their points.
func (d *drawing) trace() {
	tops, heights := d.rows()
	for i := range d.vs {
		v := &d.vs[i]
		x, middle := v.x/fine, tops[v.rank]+heights[v.rank]/2
		if v.node >= 0 {
			n := &d.g.Nodes[v.node]
			n.X, n.Y = x-n.W/2, middle-n.H/2
		}
		if v.label >= 0 {
			d.g.Arcs[v.label].LabelBox = Box{x - v.l, middle - labelHeight/2, v.l + v.r, labelHeight}
		}
	}
	above, below := d.ports(d.up), d.ports(d.down)
	for a, chain := range d.chains {
		arc := &d.g.Arcs[a]
		if chain == nil {
			d.loop(a)
			continue
		}
		first, last := chain[0], chain[len(chain)-1]
		from, to := &d.g.Nodes[d.vs[first].node], &d.g.Nodes[d.vs[last].node]
		points := []Point{{below[[2]int{first, chain[1]}], from.Y + from.H}}
		for _, v := range chain[1 : len(chain)-1] {
			x, rank := d.vs[v].x/fine, d.vs[v].rank
			if heights[rank] == 0 {
				continue // nothing stands here to be passed
			}
			points = append(points, Point{x, tops[rank]}, Point{x, tops[rank] + heights[rank]})
		}
		points = append(points, Point{above[[2]int{last, chain[len(chain)-2]}], to.Y})
		if arc.Back {
			slices.Reverse(points)
		}
		arc.Points = slices.Compact(points)
	}
}

// rows gives the ranks their place from top to bottom. Two ranks stand further apart the
// further arcs between them go sideways.
func (d *drawing) rows() (tops, heights []int) {
	y := margin
	for i, rank := range d.ranks {
		h, aside := 0, 0
		for _, v := range rank {
			h = max(h, d.vs[v].h)
			for _, w := range d.down[v] {
				aside = max(aside, abs(d.vs[v].x-d.vs[w].x)/fine)
			}
		}
		tops, heights = append(tops, y), append(heights, h)
		y += h
		if i+1 < len(d.ranks) {
			y += 18 + min(aside/10, 26)
		}
	}
	d.g.Height = y + margin
	return tops, heights
}

// ports spreads the arcs that meet a node on one side over that side, in the order in which
// they come, each as straight as it can be: (vertex, neighbour) → x.
func (d *drawing) ports(beside [][]int) map[[2]int]int {
	ports := map[[2]int]int{}
	for i := range d.vs {
		v := &d.vs[i]
		if v.node < 0 || len(beside[i]) == 0 {
			continue
		}
		n := &d.g.Nodes[v.node]
		ends := slices.Clone(beside[i])
		slices.SortStableFunc(ends, func(a, b int) int { return cmp.Compare(d.vs[a].x, d.vs[b].x) })
		room := n.W - 28
		switch n.Kind {
		case Join:
			room = n.W - 8
		case Person, Timer, Values, Start, End, Fail, Suspend:
			room = n.W - n.H
		}
		apart := 22
		if len(ends) > 1 {
			apart = min(apart, room/(len(ends)-1))
		}
		wish, weight, gaps := make([]int, len(ends)), make([]int, len(ends)), make([]int, len(ends))
		for k, e := range ends {
			low, high := n.X+(n.W-room)/2, n.X+(n.W+room)/2
			wish[k] = min(max(d.vs[e].x/fine, low+k*apart), high-(len(ends)-1-k)*apart)
			weight[k] = 1
			if k > 0 {
				gaps[k] = apart
			}
		}
		for k, x := range spread(wish, weight, gaps) {
			ports[[2]int{i, ends[k]}] = x
		}
	}
	return ports
}

// loop leads an arc out of the right side of its node and back into it; several share the side.
func (d *drawing) loop(a int) {
	arc := &d.g.Arcs[a]
	n := &d.g.Nodes[arc.From]
	all := d.loops[arc.From]
	slot := n.H / len(all)
	x, y := n.X+n.W, n.Y+slot*slices.Index(all, a)+slot/2
	arc.Points = []Point{{x, y - slot/4}, {x + loopRoom - 6, y}, {x, y + slot/4}}
	if arc.Label != "" {
		arc.LabelBox = Box{x + loopRoom - 4, y - labelHeight/2, labelWidth(arc.Label), labelHeight}
	}
}

func abs(x int) int { return max(x, -x) }
