package render

import (
	"fmt"
	"strings"

	"wf/api"
	"wf/protocol"
)

// ShowExplanation writes why a step was entered: every edge that was tried, with its terms.
func (p *Printer) ShowExplanation(out *api.Explanation) error {
	fmt.Fprintf(p.Out, "%s was entered via %s, edge %d\n", p.Out.Bold(out.Step), out.Via, out.Edge)
	for _, t := range out.Tried {
		p.explainEdge(t)
	}
	p.explainBounds(out.Bounds)
	var err error
	if out.EdgePrompt != "" {
		_, err = fmt.Fprintf(p.Out, "  edge prompt: %s\n", IndentLines(out.EdgePrompt, "    "))
	}
	return err
}

func (p *Printer) explainBounds(bounds []api.Bound) {
	for _, b := range bounds {
		state := "below"
		if b.Reached {
			state = "reached"
		}
		fmt.Fprintf(p.Out, "  %s: %d of %d before this visit, %s\n", b.Name, b.Count, b.Max, state)
	}
}

func (p *Printer) explainEdge(t api.Tried) {
	sign, verdict := p.Out.Dim("·"), "does not hold"
	switch {
	case t.OnLimit != "":
		sign, verdict = p.Out.Yellow("↷"), "its bound was reached, and on_limit leads to "+t.OnLimit
	case t.Taken:
		sign, verdict = p.Out.Green("✓"), "taken"
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
	fmt.Fprintf(p.Out, "  %s edge %d  %s → %s%s  %s\n", sign, t.Edge, strings.Join(t.From, "+"), strings.Join(t.To, ", "), when, p.Out.Dim(verdict))
	for _, term := range t.Terms {
		fmt.Fprintf(p.Out, "        %s = %s\n", Visible(term.Source), OneLine(termText(term), 120))
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

// ShowReuse tells whether the result of a step was reused, and why not.
func (p *Printer) ShowReuse(out *api.Explanation) error {
	step, r := p.Out.Bold(out.Step), out.Cache
	var err error
	switch {
	case r == nil:
		_, err = fmt.Fprintf(p.Out, "%s reuses no results: its role says nothing of cache\n", step)
	case r.From != "":
		_, err = fmt.Fprintf(p.Out, "%s took the result of %s, %s\n", step, r.From, reusedFiles(r.Files))
	default:
		_, err = fmt.Fprintf(p.Out, "%s was performed: %s\n", step, Visible(r.Reason))
	}
	if err == nil && r != nil && r.NotStored != "" {
		_, err = fmt.Fprintf(p.Out, "  its result is not kept for others: %s\n", Visible(r.NotStored))
	}
	return err
}

func reusedFiles(n int) string {
	switch n {
	case 0:
		return "which changes no files"
	case 1:
		return "with one file"
	}
	return fmt.Sprintf("with %d files", n)
}
