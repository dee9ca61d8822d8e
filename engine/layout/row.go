package layout

import (
	"cmp"
	"slices"
	"strings"
)

// lanesMax is how many arrows may run below a row before it is harder to read than a list.
const lanesMax = 5

// lane is an arrow below the row: from one column down, along and up into another.
type lane struct {
	arc      *Arc
	from, to int // places in the row
	out, in  int // columns
}

func (l *lane) span() int { return max(l.from-l.to, l.to-l.from) }

// row draws all nodes side by side, arrows between neighbours within the row and the others
// in lanes below it, the short ones inside. It gives up on joins, fan-outs, too many lanes
// and where width does not suffice.
func (g *Graph) row(width int) ([]string, bool) {
	order := g.reading()
	if started := g.startOnly(); started >= 0 && len(order) > 1 && order[1] == g.Arcs[started].To {
		order = order[1:]
	}
	place := make(map[int]int, len(order))
	for i, n := range order {
		place[n] = i
	}
	inline := make([]*Arc, len(order))
	var lanes []*lane
	edges := map[int]bool{}
	for i := range g.Arcs {
		a := &g.Arcs[i]
		from, shown := place[a.From]
		if !shown {
			continue
		}
		if a.Kind != Limit && edges[a.Edge] || g.Nodes[a.To].Kind == Join {
			return nil, false
		}
		edges[a.Edge] = edges[a.Edge] || a.Kind != Limit
		to := place[a.To]
		if to == from+1 && inline[from] == nil && a.Kind != Limit {
			inline[from] = a
			continue
		}
		lanes = append(lanes, &lane{arc: a, from: from, to: to})
	}
	if len(lanes) > lanesMax {
		return nil, false
	}
	slices.SortStableFunc(lanes, func(a, b *lane) int { return cmp.Compare(a.span(), b.span()) })

	var first strings.Builder
	for i, n := range order {
		first.WriteString(" ")
		ends := attached(lanes, i)
		name := g.called(n)
		room := max(cells(name), 2*len(ends)-1)
		start := cells(first.String())
		for k, end := range ends {
			*end = start + (room-2*len(ends)+1)/2 + 2*k
		}
		first.WriteString(pad(strings.Repeat(" ", (room-cells(name))/2)+name, room))
		if i+1 == len(order) {
			break
		}
		switch a := inline[i]; {
		case a == nil:
			first.WriteString("    ")
		case a.Label != "":
			first.WriteString(" ── " + a.Label + " ─▶")
		default:
			first.WriteString(" ──▶")
		}
	}
	lines := append([]string{first.String()}, drawLanes(lanes)...)
	for _, line := range lines {
		if cells(line) > width {
			return nil, false
		}
	}
	return lines, true
}

// startOnly is the only arc from START if it says nothing, else −1.
func (g *Graph) startOnly() int {
	found := -1
	for i, a := range g.Arcs {
		if g.Nodes[a.From].Kind == Start {
			if found >= 0 || a.Label != "" {
				return -1
			}
			found = i
		}
	}
	return found
}

// attached lists the columns that lanes need at a place of the row, from left to right, so
// that lanes of one node do not cross: those to the left, the longest last, then loops, then
// those to the right, the longest first.
func attached(lanes []*lane, at int) []*int {
	var left, loops, right []*int
	for _, l := range lanes {
		switch {
		case l.from == at && l.to == at:
			loops = append(loops, &l.in, &l.out)
		case l.from == at && l.to < at:
			left = append(left, &l.out)
		case l.to == at && l.from < at:
			left = append(left, &l.in)
		case l.from == at:
			right = append(right, &l.out)
		case l.to == at:
			right = append(right, &l.in)
		}
	}
	slices.Reverse(right)
	return slices.Concat(left, loops, right)
}

// drawLanes draws every lane in a line of its own below those that are shorter.
func drawLanes(lanes []*lane) []string {
	if len(lanes) == 0 {
		return nil
	}
	wide := 0
	for _, l := range lanes {
		wide = max(wide, l.in+1, l.out+1)
	}
	grid := make([][]rune, len(lanes)+1)
	for y := range grid {
		grid[y] = []rune(strings.Repeat(" ", wide))
	}
	for i, l := range lanes {
		for y := 0; y <= i; y++ {
			grid[y][l.in], grid[y][l.out] = '│', '│'
		}
		grid[0][l.in] = '▲'
	}
	lines := make([]string, 0, len(grid))
	lines = append(lines, string(grid[0]))
	for i, l := range lanes {
		row := grid[i+1]
		low, high := min(l.in, l.out), max(l.in, l.out)
		along := '─'
		if l.arc.Kind == Limit {
			along = '┄'
		}
		for x := low + 1; x < high; x++ {
			if row[x] == '│' {
				row[x] = '┼'
			} else {
				row[x] = along
			}
		}
		row[low], row[high] = '└', '┘'
		lines = append(lines, inscribe(row, low, high, along, l.arc.Label))
	}
	return lines
}

// inscribe writes a label into the lane if there is room between what crosses it, else to
// the right of everything.
func inscribe(row []rune, low, high int, along rune, label string) string {
	need := cells(label) + 4
	free := 0
	for x := low + 1; x < high && label != ""; x++ {
		if row[x] != along {
			free = 0
			continue
		}
		if free++; free == need {
			from := x - need + 2
			return string(row[:from]) + " " + label + " " + string(row[x:])
		}
	}
	if label == "" {
		return string(row)
	}
	return string(row) + "  " + label
}
