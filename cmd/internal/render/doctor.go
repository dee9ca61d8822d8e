package render

import (
	"fmt"

	"wf/api"
)

// ShowDoctor writes what was looked at, and how to put right what is not as it should be.
func (p *Printer) ShowDoctor(d *api.Doctor) error {
	for _, c := range d.Items {
		mark := map[string]string{"ok": p.Out.Green("✓"), "note": p.Out.Yellow("!"), "bad": p.Out.Red("✗")}[c.State]
		fmt.Fprintf(p.Out, "%s %s  %s\n", mark, p.Out.Bold(c.Name), Visible(c.Text))
		if c.Fix != "" {
			fmt.Fprintf(p.Out, "    %s %s\n", p.Out.Dim("fix"), Visible(c.Fix))
		}
	}
	return nil
}
