package render

import (
	"fmt"

	"wf/api"
)

// ShowDoctor writes what was looked at, and how to put right what is not as it should be.
func (p *Printer) ShowDoctor(d *api.Doctor) error {
	ink := p.Out.Paint()
	for _, c := range d.Items {
		mark := map[string]string{"ok": ink.Green("✓"), "note": ink.Yellow("!"), "bad": ink.Red("✗")}[c.State]
		fmt.Fprintf(p.Out, "%s %s  %s\n", mark, ink.Bold(c.Name), Visible(c.Text))
		if c.Fix != "" {
			fmt.Fprintf(p.Out, "    %s %s\n", ink.Dim("fix"), Visible(c.Fix))
		}
	}
	return nil
}
