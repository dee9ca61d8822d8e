package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"wf/api"
	"wf/protocol"
)

// ShowRunExplanation writes why a run ended, or is where it is: the step behind a FAIL, and each edge that was tried for the tokens
// that stay, with its terms.
func (p *Printer) ShowRunExplanation(out *api.RunExplanation) error {
	state := string(out.Status)
	if out.Closing != "" && !out.Status.Final() {
		state = "closing, and ends as " + string(out.Closing)
	}
	fmt.Fprintf(p.Out, "run %s is %s%s\n", p.Out.Bold(string(out.Run)), state, Because(Visible(out.Reason)))
	p.explainCause(out)
	for _, s := range out.Open {
		fmt.Fprintf(p.Out, "%s is %s%s\n", p.Out.Bold(s.Step), s.Status, Because(OneLine(s.Error, 300)))
	}
	if out.Way != nil {
		if err := p.ShowExplanation(out.Way); err != nil {
			return err
		}
	}
	for _, r := range out.Routings {
		fmt.Fprintf(p.Out, "%s %s\n", p.Out.Bold(strings.Join(r.From, " + ")), routed(r))
		for _, t := range r.Tried {
			p.explainEdge(t)
		}
		p.explainBounds(r.Bounds)
	}
	if more := out.RoutingsTotal - len(out.Routings); more > 0 {
		fmt.Fprintf(p.Out, "… %s more, which came earlier\n", grouped(more))
	}
	for _, l := range out.Lacking {
		fmt.Fprintln(p.Out, l)
	}
	return p.hintOfExplained(out)
}

// explainCause tells with which step the way to FAIL began.
func (p *Printer) explainCause(out *api.RunExplanation) {
	c := out.Cause
	if c == nil {
		return
	}
	what := " chose the way to FAIL"
	if c.Failed {
		what = " failed"
		if c.Error != nil {
			what += Because(OneLine(c.Error.Message, 500)) + cmp.Or(p.Out.Dim("  "+errorWords(c.Error)), "")
		}
	}
	fmt.Fprintf(p.Out, "%s%s\n", p.Out.Bold(c.Step), what)
	if out.Child != "" {
		fmt.Fprintf(p.Out, "  its run is %s: %s\n", out.Child, wf("explain", string(out.Child)))
	}
	if len(c.Road) > 0 {
		road := c.Road
		if n := len(road) - roadShown; n > 0 {
			road = slices.Concat(road[:roadShown/2], []string{fmt.Sprintf("… %s more …", grouped(n))}, road[len(road)-roadShown/2:])
		}
		fmt.Fprintf(p.Out, "  from there it went on %s → FAIL\n", strings.Join(road, " → "))
	}
}

// roadShown is how many steps to FAIL are named.
const roadShown = 20

// errorWords are the code of an error, and the phase in which it came.
func errorWords(e *protocol.ErrorInfo) string {
	return "(" + Visible(strings.TrimSpace(strings.Join([]string{e.Code, e.Phase}, " "))) + ")"
}

// routed is what became of a token, in words.
func routed(r api.Routing) string {
	how := "ended"
	if r.Failed {
		how = "failed"
	}
	taken := slices.ContainsFunc(r.Tried, func(t api.Tried) bool { return t.Taken })
	joins := slices.ContainsFunc(r.Tried, func(t api.Tried) bool { return t.Join })
	switch {
	case slices.Equal(r.From, []string{protocol.NodeStart}):
		return "has not been left"
	case len(r.At) > 0:
		return how + ", and led to " + strings.Join(slices.Compact(slices.Clone(r.At)), " and ")
	case taken:
		return how + ", and goes on"
	case joins:
		return how + ", and waits in a join"
	}
	return how + ", and no edge takes it"
}

// hintOfExplained names the commands that show the step behind a FAIL, and perform it again.
func (p *Printer) hintOfExplained(out *api.RunExplanation) error {
	if out.Cause == nil {
		return nil
	}
	_, err := fmt.Fprintf(p.Out, "%s %s\n", p.Out.Dim("next"), p.nextOf(nextFailed(out.Run, out.Cause.Step), "     "))
	return err
}
