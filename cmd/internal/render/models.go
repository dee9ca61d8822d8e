package render

import (
	"fmt"
	"strings"

	"wf/api"
)

// ShowModels writes where models come from; probed also which servers answered.
func (p *Printer) ShowModels(m *api.Models, probed bool) error {
	rows := p.head("models", "wire", "server", "key", "from")
	for _, x := range m.Providers {
		key := "none"
		switch {
		case x.Blocked != "":
			key = "not trusted: " + x.Blocked
		case x.KeySet:
			key = "$" + x.KeyEnv
		case x.KeyEnv != "":
			key = "$" + x.KeyEnv + " is not set"
		}
		rows = append(rows, []string{Visible(x.Name) + "/…", x.Wire, Visible(x.BaseURL), Visible(key), Visible(x.From)})
	}
	rows = append(rows, []string{"script/FILE", "", "answers from a file"}, []string{"tape/FILE", "", "traffic recorded with wf run --record"})
	if err := Table(p.Out, rows); err != nil {
		return err
	}
	if len(m.Default) > 0 {
		fmt.Fprintf(p.Out, "default: %s\n", Visible(strings.Join(m.Default, ", ")))
	}
	for _, r := range m.Roles {
		fmt.Fprintf(p.Out, "%s\n", Visible(r.Text))
	}
	if m.Workflow != "" && len(m.Roles) == 0 {
		fmt.Fprintf(p.Out, "%s has no agents\n", Visible(m.Workflow))
	}
	fmt.Fprintf(p.Out, "prices of %s; wf doctor tells where they come from\n", m.Prices)
	for _, f := range m.Found {
		fmt.Fprintf(p.Out, "found %s: %s\n", f.BaseURL, Visible(strings.Join(f.Models, ", ")))
	}
	if probed && len(m.Found) == 0 {
		fmt.Fprintln(p.Out, "no server on this machine answers")
	}
	return nil
}
