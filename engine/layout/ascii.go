package layout

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// ASCII writes the graph for a terminal of the given width, in columns (80 if it is 0 or
// less). A small graph becomes a row of roles with its loops drawn below, any other a list of
// arrows. No line is wider than width. The error is that of w.
func (g *Graph) ASCII(w io.Writer, width int) error {
	if width <= 0 {
		width = 80
	}
	lines, ok := g.row(width)
	if !ok {
		lines = g.list(width)
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(w, strings.TrimRight(shorten(line, width), " ")); err != nil {
			return err
		}
	}
	return nil
}

// list tells the arrows source by source, in reading order; what is started together hangs
// together, and ↺ marks an arrow that leads back.
func (g *Graph) list(width int) []string {
	nameWidth, targetWidth := 0, 0
	for i := range g.Arcs {
		nameWidth = max(nameWidth, cells(g.source(g.Arcs[i].From)))
		targetWidth = max(targetWidth, cells(g.called(g.Arcs[i].To)))
	}
	nameWidth = max(4, min(nameWidth, width/3))
	targetWidth = max(4, min(targetWidth, width/3))
	var lines []string
	for _, n := range g.reading() {
		name := g.source(n)
		var out []*Arc
		for i := range g.Arcs {
			if g.Arcs[i].From == n && g.Nodes[g.Arcs[i].To].Kind != Join {
				out = append(out, &g.Arcs[i])
			}
		}
		for i, a := range out {
			target := " " + pad(shorten(g.called(a.To), targetWidth), targetWidth)
			sign := "  "
			if a.Back {
				sign = "↺ "
			}
			line := pad(shorten(name, nameWidth), nameWidth) + " " + stem(out, i) + "▶" + target + " " + sign + a.Label
			lines = append(lines, line)
			name = ""
		}
	}
	return lines
}

// source names a node; a join by all that it waits for.
func (g *Graph) source(n int) string {
	if g.Nodes[n].Kind != Join {
		return g.called(n)
	}
	var names []string
	for _, a := range g.Arcs {
		if a.To == n {
			names = append(names, g.called(a.From))
		}
	}
	return strings.Join(names, " + ")
}

// stem draws how arrow i leaves: alone, or as one of several that an edge starts at once.
func stem(out []*Arc, i int) string {
	same := func(k int) bool {
		return k >= 0 && k < len(out) && out[k].Edge == out[i].Edge && out[k].Kind == out[i].Kind
	}
	switch {
	case out[i].Kind == Limit:
		return "┄┄"
	case same(i-1) && same(i+1):
		return " ├"
	case same(i - 1):
		return " └"
	case same(i + 1):
		return "─┬"
	}
	return "──"
}

// reading gives the nodes from top to bottom and left to right.
func (g *Graph) reading() []int {
	order := make([]int, len(g.Nodes))
	for i := range order {
		order[i] = i
	}
	middle := func(n int) int { return g.Nodes[n].Y + g.Nodes[n].H/2 }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Or(middle(a)-middle(b), g.Nodes[a].X-g.Nodes[b].X) })
	return order
}
