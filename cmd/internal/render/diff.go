package render

import (
	"fmt"
	"strings"

	"wf/api"
)

// ShowDiff writes how two runs differ, with what differs in the first step that does; verbose, in each. Steps that are the same, one
// behind the other, are one line unless all are wanted.
func (p *Printer) ShowDiff(d *api.Diff) error {
	var rows [][]string
	var equal []string // one behind the other
	shown := false
	var text string
	for _, s := range d.Steps {
		switch s.How {
		case "equal":
			if equal = append(equal, s.ID); p.All || len(equal) == 1 {
				rows = append(rows, []string{p.Out.Dim("="), s.ID, ShortOf(s.Left), "same CID"})
				continue
			}
			rows[len(rows)-1] = []string{p.Out.Dim("="), equal[0] + " … " + s.ID, "", grouped(len(equal)) + " steps are the same"}
			continue
		case "left":
			rows = append(rows, []string{p.Out.Red("−"), s.ID, ShortOf(s.Left), "only in " + string(d.Left)})
		case "right":
			rows = append(rows, []string{p.Out.Green("+"), s.ID, ShortOf(s.Right), "only in " + string(d.Right)})
		default:
			rows = append(rows, []string{p.Out.Yellow("~"), s.ID, ShortOf(s.Right), Visible(strings.Join(s.Changed, ", "))})
			if (!shown || p.Verbose) && s.Unified != "" {
				text, shown = text+s.Unified, true
			}
		}
		equal = nil
	}
	if err := Table(p.Out, rows); err != nil {
		return err
	}
	for _, what := range []struct {
		name  string
		paths []string
	}{{"definition", d.Definition}, {"inputs", d.Inputs}} {
		for _, path := range what.paths {
			fmt.Fprintf(p.Out, "  %s: %s\n", what.name, Visible(path))
		}
	}
	if text != "" {
		fmt.Fprintf(p.Out, "\n%s", Visible(text))
	}
	if d.Equal {
		_, err := fmt.Fprintln(p.Out, p.Out.Green("✓")+" the runs conclude the same")
		return err
	}
	return nil
}
