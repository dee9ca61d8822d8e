package render

import (
	"fmt"
	"strconv"
	"strings"

	"wf/api"
	"wf/cmd/internal/plain"
	"wf/protocol"
)

// ShowCost writes what model calls used and cost. config is the file in which the user may set prices.
func (p *Printer) ShowCost(c *api.Cost, config string) error {
	rows := p.head(c.By, "calls", "input", "cached", "written", "output", "cost")
	line := func(r *api.CostRow, name string) {
		written := r.CacheWrite5m + r.CacheWrite1h
		rows = append(rows, []string{Visible(name), strconv.Itoa(r.Calls), Count(&r.Input), Count(&r.Cached), Count(&written), Count(&r.Output), Money(r)})
	}
	for _, r := range c.Items {
		name := r.Name
		if r.Goal != "" {
			name += "  " + OneLine(r.Goal, protocol.TaskGoalMax)
		}
		line(r, name)
	}
	line(c.Total, "total")
	if err := Table(p.Out, rows); err != nil {
		return err
	}
	if n := c.Total.Unreported; n > 0 {
		fmt.Fprintf(p.Out, "%s told no tokens and %s not counted\n", protocol.Plural(n, "call"), map[bool]string{true: "is", false: "are"}[n == 1])
	}
	if c.Reused > 0 {
		fmt.Fprintf(p.Out, "%s reused and cost nothing\n", were(c.Reused))
	}
	if c.Total.CostUSD == nil {
		fmt.Fprintln(p.Out, "some prices are unknown: set them under prices: in "+config+", or in .wf/config.yaml and then wf trust, in micro-dollars per million tokens")
	}
	return nil
}

// Money is a cost for people: unknown, exact to a hundredth of a cent, or at least what is known.
func Money(r *api.CostRow) string {
	known, _ := r.KnownUSD.Float64() // it was written by wf
	amount := fmt.Sprintf("$%.4f", known)
	switch {
	case r.CostUSD != nil:
		return amount
	case known > 0:
		return "≥ " + amount
	}
	return "unknown"
}

// CostOf is what some of the rows cost together: at least what is known, "" where nothing is.
func CostOf(rows []*api.CostRow, of func(*api.CostRow) bool) string {
	known, more := 0.0, ""
	for _, r := range rows {
		if of(r) {
			usd, _ := r.KnownUSD.Float64() // it was written by wf
			known += usd
			if r.CostUSD == nil {
				more = "≥ "
			}
		}
	}
	if known == 0 {
		return ""
	}
	return more + priced(known)
}

// CostText is a table of costs for a screen: the numbers under each other, and what a task was for last, so that a
// narrow screen cuts that. by is one of api.CostGroups.
func CostText(c *api.Cost, by string) string {
	rows := [][]string{{"By " + strings.ToUpper(by[:1]) + by[1:], "calls", "input", "cached", "written", "output", "cost", ""}}
	add := func(name string, r *api.CostRow) {
		row := []string{plain.Text(name)}
		for _, n := range []int64{int64(r.Calls), r.Input, r.Cached, r.CacheWrite5m + r.CacheWrite1h, r.Output} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		rows = append(rows, append(row, Money(r), plain.Line(plain.Text(r.Goal), protocol.TaskGoalMax)))
	}
	for _, r := range c.Items {
		add(r.Name, r)
	}
	add("total", c.Total)
	return numbers(rows)
}

// numbers writes rows whose first column is a name, and whose last one is words; those between
// are numbers, their ends under each other. The last row is a sum.
func numbers(rows [][]string) string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], plain.Width(cell))
		}
	}
	var b strings.Builder
	last := len(widths) - 1
	for n, row := range rows {
		var line strings.Builder
		line.WriteString(plain.Pad(row[0], widths[0]))
		for i := 1; i < last; i++ {
			line.WriteString(strings.Repeat(" ", 2+widths[i]-plain.Width(row[i])) + row[i])
		}
		text := strings.TrimRight(line.String()+"  "+row[last], " ")
		if n == len(rows)-1 {
			b.WriteString(strings.Repeat("─", plain.Width(line.String())) + "\n")
		}
		b.WriteString(text + "\n")
	}
	return b.String()
}
