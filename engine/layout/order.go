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
	var walk []int
	for first := range d.vs {
		stack := []int{first}
		for len(stack) > 0 {
			v := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if seen[v] {
				continue
			}
			seen[v] = true
			walk = append(walk, v)
			for _, w := range slices.Backward(d.down[v]) {
				stack = append(stack, w)
			}
		}
	}
	for _, v := range walk {
		d.ranks[d.vs[v].rank] = append(d.ranks[d.vs[v].rank], v)
	}
}

// order moves vertices within their ranks to the mean place of their neighbours, and keeps
// the order that crosses fewest arcs.
func (d *drawing) order() {
	pos := make([]int, len(d.vs))
	number := func() {
		for _, rank := range d.ranks {
			for i, v := range rank {
				pos[v] = i
			}
		}
	}
	number()
	work := 1
	for _, rank := range d.ranks {
		work += len(rank) * len(rank)
	}
	rounds := min(sweeps, orderWork/work)
	if rounds == 0 {
		return
	}
	best, least := d.copyRanks(), d.crossings(pos)
	for sweep := 0; sweep < rounds && least > 0; sweep++ {
		for i := range d.ranks {
			rank, beside := d.ranks[i], d.up
			if sweep%2 == 1 {
				rank, beside = d.ranks[len(d.ranks)-1-i], d.down
			}
			d.arrange(rank, beside, pos)
		}
		number()
		d.swap(pos)
		if n := d.crossings(pos); n < least {
			best, least = d.copyRanks(), n
		}
	}
	d.ranks = best
}

// arrange sorts a rank by the mean position of the neighbours; a node without neighbours keeps its place.
func (d *drawing) arrange(rank []int, beside [][]int, pos []int) {
	const scale = 5040 // divisible by every usual number of neighbours
	mean := make(map[int]int, len(rank))
	for i, v := range rank {
		mean[v] = i * scale
		if n := len(beside[v]); n > 0 {
			sum := 0
			for _, w := range beside[v] {
				sum += pos[w]
			}
			mean[v] = sum * scale / n
		}
	}
	slices.SortStableFunc(rank, func(a, b int) int { return cmp.Compare(mean[a], mean[b]) })
	for i, v := range rank {
		pos[v] = i
	}
}

// swap exchanges neighbours as long as that removes a crossing.
func (d *drawing) swap(pos []int) {
	for better, round := true, 0; better && round < sweeps; round++ {
		better = false
		for _, rank := range d.ranks {
			for i := 1; i < len(rank); i++ {
				a, b := rank[i-1], rank[i]
				now := between(d.up[a], d.up[b], pos) + between(d.down[a], d.down[b], pos)
				then := between(d.up[b], d.up[a], pos) + between(d.down[b], d.down[a], pos)
				if then < now {
					rank[i-1], rank[i] = b, a
					pos[a], pos[b] = i, i-1
					better = true
				}
			}
		}
	}
}

// between counts the crossings of the arcs of a vertex with those of one to its right.
func between(left, right []int, pos []int) int {
	n := 0
	for _, a := range left {
		for _, b := range right {
			if pos[a] > pos[b] {
				n++
			}
		}
	}
	return n
}

func (d *drawing) crossings(pos []int) int {
	n := 0
	for _, rank := range d.ranks {
		for i, v := range rank {
			for _, w := range rank[i+1:] {
				n += between(d.down[v], d.down[w], pos)
			}
		}
	}
	return n
}

func (d *drawing) copyRanks() [][]int {
	out := make([][]int, len(d.ranks))
	for i, rank := range d.ranks {
		out[i] = slices.Clone(rank)
	}
	return out
}
