package render

import (
	"fmt"

	"wf/api"
)

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
	fmt.Fprintf(p.Out, "%s is a command: no model was asked. It was given\n", p.Out.Bold(step))
	rows := [][]string{{"  " + p.Out.Dim("run"), IndentLines(Visible(c.Run), "    ")}}
	row := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{"  " + p.Out.Dim(name), IndentLines(Visible(value), "    ")})
		}
	}
	row("dir", c.Dir)
	for _, v := range c.Env {
		row("env", v.Name+"="+v.Value)
	}
	row("edge prompt", c.EdgePrompt)
	row("stdin", "its turn, wf.turn/v1: the inputs, what happened before, and the messages that an agent in its place would be sent; -o json shows those")
	return Table(p.Out, rows)
}

// messageLines shows the messages, and where what the previous visit was sent ends.
func (p *Printer) messageLines(m *api.Messages) error {
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
