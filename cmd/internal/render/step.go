package render

import (
	"fmt"

	"wf/api"
	"wf/protocol"
)

// ShowStep writes a step with what led to it, how it went, and what it concluded. item is its item of a fan-out, "" of none.
func (p *Printer) ShowStep(s *api.Step, item string) error {
	fmt.Fprintf(p.Out, "%s %s  visit %d  %s  %s\n", p.Out.sign(s.Status), p.Out.Bold(s.ID), s.Visit, result(s), ShortOf(s.CID))
	if item != "" {
		fmt.Fprintf(p.Out, "  %s %s\n", p.Out.Dim("item"), IndentLines(Visible(item), "    "))
	}
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
	if s.Held != "" {
		fmt.Fprintf(p.Out, "  %s %s\n", p.Out.Yellow("held:"), Visible(s.Held))
	}
	if s.CutOff {
		fmt.Fprintf(p.Out, "  %s\n", p.Out.Yellow(cutOff))
	}
	if s.Error != nil {
		fmt.Fprintf(p.Out, "  %s %s\n", p.Out.Red("error:"), Visible(why(s.Error)))
	}
	if err := p.showAnswered("", s.Output, s.Text); err != nil {
		return err
	}
	text := s.Text
	if fields, body := answered(text); len(fields) > 0 && within(fields, s.Output) {
		text = body // the fields are above
	}
	if text != "" {
		_, err := fmt.Fprintf(p.Out, "\n%s\n", Visible(text))
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

// ShowMessages writes what a visit was sent first; a command was sent nothing, but given something.
func (p *Printer) ShowMessages(step string, m *api.Messages) error {
	switch {
	case p.AsJSON():
		return p.Answer(m.Prompt)
	case m.Command != nil:
		return p.commandLines(step, m.Command)
	}
	return p.messageLines(m)
}

// commandLines shows what a command was given: no model was asked, and so nothing was sent.
func (p *Printer) commandLines(step string, c *api.Command) error {
	fmt.Fprintf(p.Out, "%s %s\n", p.Out.Bold(step), IsCommand)
	var rows [][]string
	for _, x := range Given(c) {
		rows = append(rows, []string{"  " + p.Out.Dim(x[0]), IndentLines(Visible(x[1]), "    ")})
	}
	return Table(p.Out, rows)
}

// IsCommand follows the name of a step, and comes before what it was given.
const IsCommand = "is a command: no model was asked. It was given"

// Given is what a command was given, as pairs of a name and a value.
func Given(c *api.Command) (rows [][2]string) {
	row := func(name, value string) {
		if value != "" {
			rows = append(rows, [2]string{name, value})
		}
	}
	row("item", protocol.JSONText(c.Item))
	row("run", c.Run)
	row("dir", c.Dir)
	for _, v := range c.Env {
		row("env", v.Name+"="+v.Value)
	}
	row("edge prompt", c.EdgePrompt)
	const turn = "its turn, wf.turn/v1: the inputs, what happened before, and the messages that an agent in its place would be sent; -o json shows those"
	switch {
	case c.Stdin == nil:
		row("stdin", turn)
	case c.Stdin.File != "":
		row("stdin", "the file "+c.Stdin.File)
	default:
		row("stdin", c.Stdin.Text)
	}
	if c.Stdin != nil {
		row("WF_TURN", turn)
	}
	return rows
}

// messageLines shows the messages, and where what the previous visit was sent ends.
func (p *Printer) messageLines(m *api.Messages) error {
	if m.ReusedFrom != "" {
		fmt.Fprintf(p.Out, "%s\n", p.Out.Yellow("nothing was sent: the answer is that of "+Visible(m.ReusedFrom)+". The request would have been"))
	}
	if n := len(m.Tools); n > len("[]") {
		fmt.Fprintf(p.Out, "%s %s\n", p.Out.Bold("tools"), p.Out.Dim(fmt.Sprintf("%d bytes", n)))
	}
	for i, msg := range m.Messages {
		if m.Seam != nil && i == m.Seam.Before {
			fmt.Fprintf(p.Out, "%s\n\n", p.Out.Dim(seamLine(m.Seam)))
		}
		fmt.Fprintf(p.Out, "%s %s\n", p.Out.Bold(fmt.Sprintf("%d %s", i, msg.Role)), p.Out.Dim(fmt.Sprintf("%d bytes", len(msg.Content))))
		fmt.Fprintf(p.Out, "%s\n\n", Visible(msg.Content))
	}
	_, err := fmt.Fprintf(p.Out, "%s %s\n", p.Out.Dim("digest"), m.Digest)
	return err
}

// seamLine says how much of a prompt the provider has seen before.
func seamLine(s *api.Seam) string {
	if s.Part != "" {
		return fmt.Sprintf("──────── differs from %s's request at byte %d, in its %s ────────", s.Step, s.Shared, s.Part)
	}
	return fmt.Sprintf("──────── identical to %s's request up to here: %d of %d bytes ────────", s.Step, s.Shared, s.Bytes)
}
