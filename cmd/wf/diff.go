package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/cmd/internal/render"
	"wf/protocol"
)

func newDiff(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "diff RUN RUN",
		Short: "Compare two runs, step by step",
		Long: `Compare two runs. Steps with the same CID are the same in everything and are skipped; the first step
that differs comes with what differs in it. Exit 1 when something does.`,
		Example: `  wf diff -2 -1
  wf diff 7K3Q 7K3R -v`,
		Args: takes(2, 2, "a run", "a second run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.at(ctx, func(p *target) error { return a.diff(ctx, p, args[0], args[1]) })
		},
	}
}

func (a *app) diff(ctx context.Context, here *target, left, right string) error {
	var runs [2]protocol.RunID
	for i, arg := range []string{left, right} {
		var err error
		if runs[i], err = here.run(ctx, arg); err != nil {
			return err
		}
	}
	d, err := here.Diff(ctx, runs[0], runs[1])
	if err != nil {
		return err
	}
	if a.AsJSON() {
		err = a.Answer(d)
	} else {
		err = a.diffLines(d)
	}
	if err == nil && !d.Equal {
		return silent{errDifference}
	}
	return err
}

func (a *app) diffLines(d *api.Diff) error {
	p := a.Out.Paint()
	var rows [][]string
	shown := false
	var text string
	for _, s := range d.Steps {
		switch s.How {
		case "equal":
			rows = append(rows, []string{p.Dim("="), s.ID, render.ShortOf(s.Left), "same CID"})
		case "left":
			rows = append(rows, []string{p.Red("−"), s.ID, render.ShortOf(s.Left), "only in " + string(d.Left)})
		case "right":
			rows = append(rows, []string{p.Green("+"), s.ID, render.ShortOf(s.Right), "only in " + string(d.Right)})
		default:
			rows = append(rows, []string{p.Yellow("~"), s.ID, render.ShortOf(s.Right), render.Visible(strings.Join(s.Changed, ", "))})
			if (!shown || a.Verbose) && s.Unified != "" {
				text, shown = text+s.Unified, true
			}
		}
	}
	if err := render.Table(a.Out, rows); err != nil {
		return err
	}
	for _, what := range []struct {
		name  string
		paths []string
	}{{"definition", d.Definition}, {"inputs", d.Inputs}} {
		for _, path := range what.paths {
			fmt.Fprintf(a.Out, "  %s: %s\n", what.name, render.Visible(path))
		}
	}
	if text != "" {
		fmt.Fprintf(a.Out, "\n%s", render.Visible(text))
	}
	if d.Equal {
		_, err := fmt.Fprintln(a.Out, p.Green("✓")+" the runs conclude the same")
		return err
	}
	return nil
}
