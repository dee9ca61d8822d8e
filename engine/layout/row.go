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

	// A label lies in its own lane; where it has no room the row is stretched.
	gaps := make([]int, len(order))
	for range len(lanes) + 1 {
		first := g.spread(order, inline, lanes, gaps)
		below, cramped := drawLanes(lanes)
		if cramped != nil {
			gaps[min(cramped.from, cramped.to)] += cells(cramped.arc.Label) + labelRoom
			continue
		}
		lines := append([]string{first}, below...)
		if slices.ContainsFunc(lines, func(line string) bool { return cells(line) > width }) {
			return nil, false
		}
		return lines, true
	}
	return nil, false
}

// labelRoom is what stands around a label in its lane.
const labelRoom = 4

// spread writes the names of a row and the arrows between neighbours, with gaps columns more
// behind each, and places the ends of the lanes.
func (g *Graph) spread(order []int, inline []*Arc, lanes []*lane, gaps []int) string {
	var row strings.Builder
	for i, n := range order {
		row.WriteString(" ")
		ends := attached(lanes, i)
		name := g.called(n)
		room := max(cells(name), 2*len(ends)-1)
		start := cells(row.String())
		for k, end := range ends {
			*end = start + (room-2*len(ends)+1)/2 + 2*k
		}
		row.WriteString(pad(strings.Repeat(" ", (room-cells(name))/2)+name, room))
		if i+1 == len(order) {
			break
		}
		switch a := inline[i]; {
		case a == nil:
			row.WriteString("    " + strings.Repeat(" ", gaps[i]))
		case a.Label != "":
			row.WriteString(" ── " + a.Label + " ─" + strings.Repeat("─", gaps[i]) + "▶")
		default:
			row.WriteString(" ──" + strings.Repeat("─", gaps[i]) + "▶")
		}
	}
	return row.String()
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

// drawLanes draws every lane in a line of its own below those that are shorter. A lane that
// has no room for its label is returned.
func drawLanes(lanes []*lane) (lines []string, cramped *lane) {
	if len(lanes) == 0 {
		return nil, nil
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
		line, ok := inscribe(row, low, high, along, l.arc.Label)
		if !ok {
			return nil, l
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// inscribe writes a label into the lane if there is room between what crosses it, else behind
// its end if nothing but space is there.
func inscribe(row []rune, low, high int, along rune, label string) (line string, ok bool) {
	if label == "" {
		return string(row), true
	}
	need := cells(label) + labelRoom
	free := 0
	for x := low + 1; x < high; x++ {
		if row[x] != along {
			free = 0
			continue
		}
		if free++; free == need {
			from := x - need + 2
			return string(row[:from]) + " " + label + " " + string(row[x:]), true
		}
	}
	behind := row[high+1:]
	end := slices.IndexFunc(behind, func(c rune) bool { return c != ' ' })
	switch {
	case end < 0:
		return string(row[:high+1]) + "  " + label, true
	case end >= cells(label)+labelRoom:
		return string(row[:high+1]) + " " + label + string(behind[cells(label)+1:]), true
	}
	return "", false
}
