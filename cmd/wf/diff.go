package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"wf/api"
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
	if a.asJSON() {
		err = a.answer(d)
	} else {
		err = a.diffLines(d)
	}
	if err == nil && !d.Equal {
		return silent{errDifference}
	}
	return err
}

func (a *app) diffLines(d *api.Diff) error {
	p := paint{a.out.color}
	var rows [][]string
	shown := false
	var text string
	for _, s := range d.Steps {
		switch s.How {
		case "equal":
			rows = append(rows, []string{p.dim("="), s.ID, shortOf(s.Left), "same CID"})
		case "left":
			rows = append(rows, []string{p.red("−"), s.ID, shortOf(s.Left), "only in " + string(d.Left)})
		case "right":
			rows = append(rows, []string{p.green("+"), s.ID, shortOf(s.Right), "only in " + string(d.Right)})
		default:
			rows = append(rows, []string{p.yellow("~"), s.ID, shortOf(s.Right), visible(strings.Join(s.Changed, ", "))})
			if (!shown || a.Verbose) && s.Unified != "" {
				text, shown = text+s.Unified, true
			}
		}
	}
	if err := table(a.out, rows); err != nil {
		return err
	}
	for _, what := range []struct {
		name  string
		paths []string
	}{{"definition", d.Definition}, {"inputs", d.Inputs}} {
		for _, path := range what.paths {
			fmt.Fprintf(a.out, "  %s: %s\n", what.name, visible(path))
		}
	}
	if text != "" {
		fmt.Fprintf(a.out, "\n%s", visible(text))
	}
	if d.Equal {
		_, err := fmt.Fprintln(a.out, p.green("✓")+" the runs conclude the same")
		return err
	}
	return nil
}
