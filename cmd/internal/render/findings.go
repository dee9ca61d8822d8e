package render

import (
	"fmt"

	"wf/api"
	"wf/protocol"
)

// ShowReport writes what a verification of something found.
func (p *Printer) ShowReport(r *protocol.Report, what string) error {
	for _, f := range r.Findings {
		fmt.Fprintf(p.Out, "%s %s: %s\n    expected %s\n    actual   %s\n", p.Out.Red("✗"), Visible(f.Where), f.Kind, Visible(f.Expected), Visible(f.Actual))
		if f.Fix != "" {
			fmt.Fprintf(p.Out, "    %s      %s\n", p.Out.Bold("fix"), Visible(p.Commands(f.Fix)))
		}
	}
	c := r.Checked
	if r.OK {
		fmt.Fprintf(p.Out, "%s %s: %s, %s, %s, %s read again, all as their hashes say\n", p.Out.Green("✓"), what,
			protocol.Plural(c.Heads, "head"), protocol.Plural(int(c.Events), "event"), protocol.Plural(int(c.Records), "record"), protocol.Plural(int(c.Blocks), "block"))
	} else {
		fmt.Fprintf(p.Out, "%s %s: %s\n", p.Out.Red("✗"), what, protocol.Plural(len(r.Findings), "finding"))
	}
	for _, n := range r.NotProven {
		fmt.Fprintf(p.Out, "  %s %s\n", p.Out.Dim("not proven:"), Visible(n))
	}
	return nil
}

// ShowDoctor writes what was looked at, and how to put right what is not as it should be.
func (p *Printer) ShowDoctor(d *api.Doctor) error {
	for _, c := range d.Items {
		mark := map[string]string{"ok": p.Out.Green("✓"), "note": p.Out.Yellow("!"), "bad": p.Out.Red("✗")}[c.State]
		fmt.Fprintf(p.Out, "%s %s  %s\n", mark, p.Out.Bold(c.Name), Visible(c.Text))
		if c.Fix != "" {
			fmt.Fprintf(p.Out, "    %s %s\n", p.Out.Dim("fix"), Visible(p.Commands(c.Fix)))
		}
	}
	return nil
}
