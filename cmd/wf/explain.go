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

func newExplain(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "explain RUN:STEP",
		Short: "Tell why a step was entered: every condition with its value",
		Example: `  wf explain -1:coder#2
  wf explain 7K3Q:gate#1 -o json`,
		Args: takes(1, 1, "a step, such as -1:coder#2"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.at(ctx, func(p *target) error { return a.explain(ctx, p, args[0]) })
		},
	}
}

func (a *app) explain(ctx context.Context, here *target, arg string) error {
	at, err := here.step(ctx, arg)
	if err != nil {
		return err
	}
	out, err := here.Explain(ctx, at.Run, at.Step)
	if err != nil {
		return err
	}
	if a.AsJSON() {
		return a.Answer(out)
	}
	p := a.Out.Paint()
	fmt.Fprintf(a.Out, "%s was entered via %s, edge %d\n", p.Bold(out.Step), out.Via, out.Edge)
	for _, t := range out.Tried {
		a.explainEdge(t)
	}
	for _, b := range out.Bounds {
		state := "below"
		if b.Reached {
			state = "reached"
		}
		fmt.Fprintf(a.Out, "  %s: %d of %d before this visit, %s\n", b.Name, b.Count, b.Max, state)
	}
	if out.EdgePrompt != "" {
		_, err = fmt.Fprintf(a.Out, "  edge prompt: %s\n", render.IndentLines(out.EdgePrompt, "    "))
	}
	return err
}

func (a *app) explainEdge(t api.Tried) {
	p := a.Out.Paint()
	sign, verdict := p.Dim("·"), "does not hold"
	switch {
	case t.OnLimit != "":
		sign, verdict = p.Yellow("↷"), "its bound was reached, and on_limit leads to "+t.OnLimit
	case t.Taken:
		sign, verdict = p.Green("✓"), "taken"
	case t.Join:
		verdict = "a join: a token waits here for the others"
	case t.Error != "":
		verdict = "cannot be decided: " + t.Error
	case t.Holds:
		verdict = "holds, but another came first"
	}
	when := ""
	if t.When != "" {
		when = "  when " + t.When
	}
	fmt.Fprintf(a.Out, "  %s edge %d  %s → %s%s  %s\n", sign, t.Edge, strings.Join(t.From, "+"), strings.Join(t.To, ", "), when, p.Dim(verdict))
	for _, term := range t.Terms {
		fmt.Fprintf(a.Out, "        %s = %s\n", render.Visible(term.Source), render.OneLine(termText(term), 120))
	}
}

// termText is a value as JSON, or why there is none.
func termText(t api.Term) string {
	if t.Error != "" {
		return t.Error
	}
	b, err := protocol.CanonicalJSON(t.Value)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
