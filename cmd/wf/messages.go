package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/cmd/internal/render"
)

func newMessages(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "messages RUN:STEP",
		Short: "Show exactly what an agent was sent",
		Long: `Show the first request of a visit, built again from the records alone: the same bytes on any machine,
at any time. Its digest is that of the prompt event.`,
		Example: `  wf messages -1:coder#2
  wf messages 7K3Q:coder#2 -o json | jq -r .digest`,
		Args: takes(1, 1, "a step, such as -1:coder#2"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.at(ctx, func(p *target) error { return a.messages(ctx, p, args[0]) })
		},
	}
}

func (a *app) messages(ctx context.Context, here *target, arg string) error {
	at, err := here.step(ctx, arg)
	if err != nil {
		return err
	}
	m, err := here.Messages(ctx, at.Run, at.Step)
	switch {
	case err != nil:
		return err
	case a.AsJSON():
		return a.Answer(m.Prompt)
	case m.Command != nil:
		return a.commandLines(at.Step, m.Command)
	}
	return a.messageLines(m)
}

// commandLines shows what a command was given: no model was asked, and so nothing was sent.
func (a *app) commandLines(step string, c *api.Command) error {
	p := a.Out.Paint()
	fmt.Fprintf(a.Out, "%s is a command: no model was asked. It was given\n", p.Bold(step))
	rows := [][]string{{"  " + p.Dim("run"), render.IndentLines(render.Visible(c.Run), "    ")}}
	row := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{"  " + p.Dim(name), render.IndentLines(render.Visible(value), "    ")})
		}
	}
	row("dir", c.Dir)
	for _, v := range c.Env {
		row("env", v.Name+"="+v.Value)
	}
	row("edge prompt", c.EdgePrompt)
	row("stdin", "its turn, wf.turn/v1: the inputs, what happened before, and the messages that an agent in its place would be sent; -o json shows those")
	return render.Table(a.Out, rows)
}

// messageLines shows the messages, and where what the previous visit was sent ends.
func (a *app) messageLines(m *api.Messages) error {
	p := a.Out.Paint()
	if n := len(m.Tools); n > len("[]") {
		fmt.Fprintf(a.Out, "%s %s\n", p.Bold("tools"), p.Dim(fmt.Sprintf("%d bytes", n)))
	}
	for i, msg := range m.Messages {
		if m.Seam != nil && i == m.Seam.Before {
			fmt.Fprintf(a.Out, "%s\n\n", p.Dim(seamLine(m.Seam)))
		}
		fmt.Fprintf(a.Out, "%s %s\n", p.Bold(fmt.Sprintf("%d %s", i, msg.Role)), p.Dim(fmt.Sprintf("%d bytes", len(msg.Content))))
		fmt.Fprintf(a.Out, "%s\n\n", render.Visible(msg.Content))
	}
	_, err := fmt.Fprintf(a.Out, "%s %s\n", p.Dim("digest"), m.Digest)
	return err
}

// seamLine says how much of a prompt the provider has seen before.
func seamLine(s *api.Seam) string {
	if s.Part != "" {
		return fmt.Sprintf("──────── differs from %s's request at byte %d, in its %s ────────", s.Step, s.Shared, s.Part)
	}
	return fmt.Sprintf("──────── identical to %s's request up to here: %d of %d bytes ────────", s.Step, s.Shared, s.Bytes)
}
