package render

import (
	"fmt"
	"strconv"

	"wf/api"
	"wf/protocol"
)

// ShowCost writes what model calls used and cost. config is the file in which the user may set prices.
func (p *Printer) ShowCost(c *api.Cost, config string) error {
	ink := p.Out.Paint()
	var head []string
	for _, name := range []string{c.By, "calls", "input", "cached", "written", "output", "cost"} {
		head = append(head, ink.Dim(name))
	}
	rows := [][]string{head}
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
