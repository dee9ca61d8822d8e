package layout

import (
	"cmp"
	"slices"
)

// sweeps is how often the order and the coordinates are improved, down and up in turn.
const sweeps = 24

// seed puts the vertices of every rank in the order of a walk from START down the arcs.
func (d *drawing) seed() {
	seen := make([]bool, len(d.vs))
	var walk func(v int)
	walk = func(v int) {
		if seen[v] {
			return
		}
		seen[v] = true
		d.ranks[d.vs[v].rank] = append(d.ranks[d.vs[v].rank], v)
		for _, w := range d.down[v] {
			walk(w)
		}
	}
	for v := range d.vs {
		walk(v)
	}
}

// number notes the places of the vertices within their ranks.
func (d *drawing) number() {
	for _, rank := range d.ranks {
		for i, v := range rank {
			d.pos[v] = i
		}
	}
}

// order moves vertices within their ranks to the mean place of their neighbours, and keeps
// the order that crosses fewest arcs.
func (d *drawing) order() {
	d.number()
	work := 1
	for _, rank := range d.ranks {
		work += len(rank) * len(rank)
	}
	rounds := min(sweeps, orderWork/work)
	if rounds == 0 {
		return
	}
	best, least := slices.Clone(d.pos), d.crossings()
	for sweep := 0; sweep < rounds && least > 0; sweep++ {
		for i := range d.ranks {
			rank, beside := d.ranks[i], d.up
			if sweep%2 == 1 {
				rank, beside = d.ranks[len(d.ranks)-1-i], d.down
			}
			d.arrange(rank, beside)
		}
		d.number()
		d.swap()
		if n := d.crossings(); n < least {
			best, least = slices.Clone(d.pos), n
		}
	}
	for _, rank := range d.ranks {
		slices.SortFunc(rank, func(a, b int) int { return best[a] - best[b] })
	}
}

// arrange sorts a rank by the mean position of the neighbours; a node without neighbours keeps its place.
func (d *drawing) arrange(rank []int, beside [][]int) {
	const scale = 5040 // divisible by every usual number of neighbours
	mean := make(map[int]int, len(rank))
	for i, v := range rank {
		mean[v] = i * scale
		if n := len(beside[v]); n > 0 {
			sum := 0
			for _, w := range beside[v] {
				sum += d.pos[w]
			}
			mean[v] = sum * scale / n
		}
	}
	slices.SortStableFunc(rank, func(a, b int) int { return cmp.Compare(mean[a], mean[b]) })
	for i, v := range rank {
		d.pos[v] = i
	}
}

// swap exchanges neighbours as long as that removes a crossing.
func (d *drawing) swap() {
	for better, round := true, 0; better && round < sweeps; round++ {
		better = false
		for _, rank := range d.ranks {
			for i := 1; i < len(rank); i++ {
				a, b := rank[i-1], rank[i]
				now := d.between(d.up[a], d.up[b]) + d.between(d.down[a], d.down[b])
				then := d.between(d.up[b], d.up[a]) + d.between(d.down[b], d.down[a])
				if then < now {
					rank[i-1], rank[i] = b, a
					d.pos[a], d.pos[b] = i, i-1
					better = true
				}
			}
		}
	}
}

// between counts the crossings of the arcs of a vertex with those of one to its right.
func (d *drawing) between(left, right []int) int {
	n := 0
	for _, a := range left {
		for _, b := range right {
			if d.pos[a] > d.pos[b] {
				n++
			}
		}
	}
	return n
}

func (d *drawing) crossings() int {
	n := 0
	for _, rank := range d.ranks {
		for i, v := range rank {
			for _, w := range rank[i+1:] {
				n += d.between(d.down[v], d.down[w])
			}
		}
	}
	return n
}
