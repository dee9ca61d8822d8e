package main

import (
	"context"

	"github.com/spf13/cobra"

	"wf/api"
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
		RunE: a.ofStep(func(ctx context.Context, p *target, at api.Ref) error {
			m, err := p.Messages(ctx, at.Run, at.Step)
			if err != nil {
				return err
			}
			return a.ShowMessages(at.Step, m)
		}),
	}
}
