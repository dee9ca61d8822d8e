package render

import (
	"fmt"

	"wf/api"
	"wf/protocol"
)

// ShowStep writes a step with what led to it, how it went, and what it concluded.
func (p *Printer) ShowStep(s *api.Step) error {
	fmt.Fprintf(p.Out, "%s %s  visit %d  %s  %s\n", p.Out.step(s.Status), p.Out.Bold(s.ID), s.Visit, result(s), ShortOf(s.CID))
	if s.EdgePrompt != "" {
		fmt.Fprintf(p.Out, "  %s %s\n", p.Out.Dim("edge prompt"), IndentLines(s.EdgePrompt, "    "))
	}
	for _, parent := range s.Parents {
		fmt.Fprintf(p.Out, "  %s %s\n", p.Out.Dim("after"), ShortCID(parent))
	}
	if s.Resumes != nil {
		fmt.Fprintf(p.Out, "  %s %s\n", p.Out.Dim("resumes"), ShortOf(s.Resumes))
	}
	if s.Child != "" {
		fmt.Fprintf(p.Out, "  %s %s\n", p.Out.Dim("sub-workflow"), "run "+s.Child)
	}
	for _, c := range s.Compactions {
		p.showCompaction(c)
	}
	for i, reasons := range s.Corrections {
		fmt.Fprintf(p.Out, "  %s %s\n", p.Out.Yellow(fmt.Sprintf("correction %d:", i+1)), IndentLines(Visible(reasons), "    "))
	}
	for _, t := range s.Attempts {
		if t.Error != nil {
			fmt.Fprintf(p.Out, "  %s %s\n", p.Out.Yellow(fmt.Sprintf("attempt %d failed:", t.Attempt)), Visible(why(t.Error)))
		}
	}
	if s.CutOff {
		fmt.Fprintf(p.Out, "  %s\n", p.Out.Yellow(cutOff))
	}
	if s.Error != nil {
		fmt.Fprintf(p.Out, "  %s %s\n", p.Out.Red("error:"), Visible(why(s.Error)))
	}
	if err := p.showFields("", s.Output); err != nil {
		return err
	}
	if s.Text != "" {
		_, err := fmt.Fprintf(p.Out, "\n%s\n", Visible(s.Text))
		return err
	}
	return nil
}

// showCompaction tells what was dropped and what was kept.
func (p *Printer) showCompaction(c api.Compaction) {
	var what string
	switch {
	case c.Scope == protocol.ScopeVisit:
		what = fmt.Sprintf("dropped its oldest %s with all results, kept what follows", protocol.Plural(c.Replies, "turn"))
	case c.Covers < c.Prior:
		what = fmt.Sprintf("dropped %s, kept %s", visits(1, c.Covers), visits(c.Covers+1, c.Prior))
	default:
		what = fmt.Sprintf("dropped %s, kept none", visits(1, c.Covers))
	}
	by := "written by " + c.Model
	if c.Model == "" {
		by = "an extract" + Because(OneLine(c.Error, 160))
	}
	fmt.Fprintf(p.Out, "  %s %s; %d → about %d tokens  %s\n", p.Out.Dim("compacted"), what, c.TokensBefore, c.TokensAfter, ShortOf(c.Record))
	fmt.Fprintf(p.Out, "  %s %s\n    %s\n", p.Out.Dim("summary"), Visible(by), IndentLines(c.Summary, "    "))
}

// visits names a range of visits.
func visits(from, to int) string {
	if from == to {
		return fmt.Sprintf("visit %d", from)
	}
	return fmt.Sprintf("visits %d–%d", from, to)
}
