package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"wf/cas"
	"wf/engine"
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
			return a.WithStore(ctx, func(s *cas.Store) error { return a.explain(ctx, s, args[0]) })
		},
	}
}

// explainJSON is wf.explain/v1.
type explainJSON struct {
	Schema     string         `json:"schema"`
	Run        protocol.RunID `json:"run"`
	Step       string         `json:"step"`
	Edge       int            `json:"edge"`
	Via        protocol.Via   `json:"via"`
	EdgePrompt string         `json:"edge_prompt"`
	Parents    []string       `json:"parents"`
	Tried      []triedJSON    `json:"tried"`
	Bounds     []boundJSON    `json:"bounds"`
}

type triedJSON struct {
	Edge  int      `json:"edge"`
	From  []string `json:"from"`
	To    []string `json:"to"`
	When  string   `json:"when"`
	Holds bool     `json:"holds"`
	Taken bool     `json:"taken"`
	Join  bool     `json:"join"`
	// OnLimit is where the token went instead, because a bound was reached.
	OnLimit string     `json:"on_limit,omitempty"`
	Error   string     `json:"error,omitempty"`
	Terms   []termJSON `json:"terms"`
}

type termJSON struct {
	Source string `json:"source"`
	Value  any    `json:"value"`
	Error  string `json:"error,omitempty"`
}

type boundJSON struct {
	Name    string `json:"name"`
	Count   int    `json:"count"`
	Max     int    `json:"max"`
	Reached bool   `json:"reached"`
}

func newExplainJSON(run protocol.RunID, w *engine.Why) explainJSON {
	out := explainJSON{
		Schema: "wf.explain/v1", Run: run, Step: w.Step, Edge: w.Edge, Via: w.Via, EdgePrompt: w.EdgePrompt,
		Parents: linkStrings(w.Parents), Tried: []triedJSON{}, Bounds: []boundJSON{},
	}
	for _, t := range w.Tried {
		tried := triedJSON{Edge: t.Edge, From: t.From, To: t.To, When: t.When, Holds: t.Holds, Taken: t.Taken, Join: t.Join, OnLimit: t.Diverted, Terms: []termJSON{}}
		if t.Err != nil {
			tried.Error = t.Err.Error()
		}
		for _, term := range t.Terms {
			shown := termJSON{Source: term.Source, Value: term.Value}
			if term.Err != nil {
				shown.Error = term.Err.Error()
			}
			tried.Terms = append(tried.Terms, shown)
		}
		out.Tried = append(out.Tried, tried)
	}
	for _, b := range w.Bounds {
		out.Bounds = append(out.Bounds, boundJSON(b))
	}
	return out
}

func (a *app) explain(ctx context.Context, s *cas.Store, arg string) error {
	at, err := a.resolveStep(ctx, s, arg)
	if err != nil {
		return err
	}
	e := a.Engine(s, nil)
	v, err := e.ViewStep(ctx, at.run, at.step)
	if err != nil {
		return err
	}
	if _, err := stepOf(v, at.step); err != nil {
		return err
	}
	why, err := e.Explain(ctx, at.run, at.step)
	if err != nil {
		return err
	}
	out := newExplainJSON(at.run, why)
	if a.asJSON() {
		return a.answer(out)
	}
	p := paint{a.out.color}
	fmt.Fprintf(a.out, "%s was entered via %s, edge %d\n", p.bold(out.Step), out.Via, out.Edge)
	for _, t := range out.Tried {
		a.explainEdge(t)
	}
	for _, b := range out.Bounds {
		state := "below"
		if b.Reached {
			state = "reached"
		}
		fmt.Fprintf(a.out, "  %s: %d of %d before this visit, %s\n", b.Name, b.Count, b.Max, state)
	}
	if out.EdgePrompt != "" {
		_, err = fmt.Fprintf(a.out, "  edge prompt: %s\n", indentLines(out.EdgePrompt, "    "))
	}
	return err
}

func (a *app) explainEdge(t triedJSON) {
	p := paint{a.out.color}
	sign, verdict := p.dim("·"), "does not hold"
	switch {
	case t.OnLimit != "":
		sign, verdict = p.yellow("↷"), "its bound was reached, and on_limit leads to "+t.OnLimit
	case t.Taken:
		sign, verdict = p.green("✓"), "taken"
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
	fmt.Fprintf(a.out, "  %s edge %d  %s → %s%s  %s\n", sign, t.Edge, strings.Join(t.From, "+"), strings.Join(t.To, ", "), when, p.dim(verdict))
	for _, term := range t.Terms {
		fmt.Fprintf(a.out, "        %s = %s\n", visible(term.Source), oneLine(term.text(), 120))
	}
}

// text is a value as JSON, or why there is none.
func (t termJSON) text() string {
	if t.Error != "" {
		return t.Error
	}
	b, err := protocol.CanonicalJSON(t.Value)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
