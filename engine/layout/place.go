package layout

import "math"

// fine is how many units of x a pixel has while places are sought: whole numbers, so that
// every machine rounds alike.
const fine = 16

// place gives every vertex its x. Each rank in turn is moved as near to its neighbours as the
// order and the gaps allow; that is a least-squares problem with an exact answer. Where an
// arc only passes it is kept straight with more weight.
func (d *drawing) place() {
	for _, rank := range d.ranks {
		x := 0
		for i, v := range rank {
			if i > 0 {
				x += d.gap(rank[i-1], v)
			}
			d.vs[v].x = x
		}
	}
	rounds := max(6, min(10*sweeps, placeWork/len(d.vs))) // long chains settle slowly
	for sweep := range rounds {
		for i := range d.ranks {
			rank, both := d.ranks[i], sweep >= rounds/2
			if sweep%2 == 1 {
				rank = d.ranks[len(d.ranks)-1-i]
			}
			d.settle(rank, sweep%2 == 0 || both, sweep%2 == 1 || both)
		}
	}
	d.straighten()
	left := 0
	for i := range d.vs {
		v := &d.vs[i]
		v.x = (v.x + fine/2) / fine * fine
		if i == 0 || v.x-v.l*fine < left {
			left = v.x - v.l*fine
		}
	}
	for i := range d.vs {
		d.vs[i].x += margin*fine - left
		d.g.Width = max(d.g.Width, d.vs[i].x/fine+d.vs[i].r+margin)
	}
}

// gap is the least distance of the centres of neighbours, in fine units.
func (d *drawing) gap(a, b int) int {
	space := nodeGap
	if d.vs[a].node < 0 || d.vs[b].node < 0 {
		space = dummyGap
	}
	return (d.vs[a].r + space + d.vs[b].l) * fine
}

func (d *drawing) settle(rank []int, up, down bool) {
	wish, weight, gaps := make([]int, len(rank)), make([]int, len(rank)), make([]int, len(rank))
	for i, v := range rank {
		if i > 0 {
			gaps[i] = d.gap(rank[i-1], v)
		}
		sum, total := 0, 0
		add := func(beside []int) {
			for _, w := range beside {
				k := 1
				switch {
				case d.vs[v].node < 0 && d.vs[w].node < 0:
					k = 8
				case d.vs[v].node < 0 || d.vs[w].node < 0:
					k = 2
				}
				sum += k * d.vs[w].x
				total += k
			}
		}
		if up {
			add(d.up[v])
		}
		if down {
			add(d.down[v])
		}
		wish[i], weight[i] = d.vs[v].x, 1
		if total > 0 {
			wish[i], weight[i] = floorDiv(sum, total), 4*total
		}
	}
	for i, x := range spread(wish, weight, gaps) {
		d.vs[rank[i]].x = x
	}
}

// spread finds places as near as possible to the wishes, in order and with gaps[i] between
// i−1 and i: the weighted least-squares answer, by pooling neighbours that push each other.
func spread(wish, weight, gaps []int) []int {
	type block struct{ sum, weight, count int }
	var blocks []block
	offset := 0
	for i := range wish {
		offset += gaps[i]
		blocks = append(blocks, block{weight[i] * (wish[i] - offset), weight[i], 1})
		for n := len(blocks); n > 1 && blocks[n-2].sum*blocks[n-1].weight >= blocks[n-1].sum*blocks[n-2].weight; n-- {
			blocks[n-2].sum += blocks[n-1].sum
			blocks[n-2].weight += blocks[n-1].weight
			blocks[n-2].count += blocks[n-1].count
			blocks = blocks[:n-1]
		}
	}
	out := make([]int, 0, len(wish))
	offset = 0
	for _, b := range blocks {
		mean := floorDiv(b.sum, b.weight)
		for range b.count {
			offset += gaps[len(out)]
			out = append(out, mean+offset)
		}
	}
	return out
}

// straighten puts the passing vertices of each arc, in runs as long as their neighbours
// allow, on one upright line.
func (d *drawing) straighten() {
	d.number()
	for _, chain := range d.chains {
		if len(chain) < 4 {
			continue
		}
		inner := chain[1 : len(chain)-1]
		for from := 0; from < len(inner); {
			low, high, sum, to := math.MinInt, math.MaxInt, 0, from
			for ; to < len(inner); to++ {
				v := inner[to]
				l, h := d.room(v)
				if max(low, l) > min(high, h) {
					break
				}
				low, high, sum = max(low, l), min(high, h), sum+d.vs[v].x
			}
			x := min(max(floorDiv(sum, to-from), low), high)
			for ; from < to; from++ {
				d.vs[inner[from]].x = x
			}
		}
	}
}

// room is how far a vertex can move within its rank.
func (d *drawing) room(v int) (low, high int) {
	low, high = math.MinInt, math.MaxInt
	rank, at := d.ranks[d.vs[v].rank], d.pos[v]
	if at > 0 {
		low = d.vs[rank[at-1]].x + d.gap(rank[at-1], v)
	}
	if at+1 < len(rank) {
		high = d.vs[rank[at+1]].x - d.gap(v, rank[at+1])
	}
	return low, high
}

func floorDiv(a, b int) int {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
