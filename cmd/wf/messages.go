package main

import (
	"context"

	"github.com/spf13/cobra"
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
	if err != nil {
		return err
	}
	return a.ShowMessages(at.Step, m)
}
