package render

import (
	"fmt"

	"wf/protocol"
)

// ShowReport writes what a verification of something found.
func (p *Printer) ShowReport(r *protocol.Report, what string) error {
	if p.AsJSON() {
		return p.Answer(r)
	}
	ink := p.Out.Paint()
	for _, f := range r.Findings {
		fmt.Fprintf(p.Out, "%s %s: %s\n    expected %s\n    actual   %s\n", ink.Red("✗"), Visible(f.Where), f.Kind, Visible(f.Expected), Visible(f.Actual))
		if f.Fix != "" {
			fmt.Fprintf(p.Out, "    %s      %s\n", ink.Bold("fix"), Visible(f.Fix))
		}
	}
	c := r.Checked
	if r.OK {
		fmt.Fprintf(p.Out, "%s %s: %s, %s, %s, %s read again, all as their hashes say\n", ink.Green("✓"), what,
			protocol.Plural(c.Heads, "head"), protocol.Plural(int(c.Events), "event"), protocol.Plural(int(c.Records), "record"), protocol.Plural(int(c.Blocks), "block"))
	} else {
		fmt.Fprintf(p.Out, "%s %s: %s\n", ink.Red("✗"), what, protocol.Plural(len(r.Findings), "finding"))
	}
	for _, n := range r.NotProven {
		fmt.Fprintf(p.Out, "  %s %s\n", ink.Dim("not proven:"), Visible(n))
	}
	return nil
}
