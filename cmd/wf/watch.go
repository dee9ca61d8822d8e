package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"wf/protocol"
)

func newWatch(a *app) *cobra.Command {
	var from int64
	cmd := &cobra.Command{
		Use:   "watch [RUN]",
		Short: "Watch a run that another process drives",
		Long: `Watch a run as it happens, with what models and commands say before it is recorded. It ends when the
run ends or parks, with the exit status of the run. Ctrl-C leaves; the run goes on.`,
		Example: `  wf run workflow.yaml --detach && wf watch -1
  wf watch 7K3Q -o jsonl | jq 'select(.type == "tool_call")'`,
		Args: takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if from < 0 {
				return fail(protocol.ErrBadCursor, "", "--from %d: want the seq of the last event held, 0 for all", from)
			}
			ctx := cmd.Context()
			return a.at(ctx, func(p *target) error {
				run, err := p.run(ctx, latestUnless(args))
				if err != nil {
					return err
				}
				return a.watch(ctx, p, run, protocol.Seq(from))
			})
		},
	}
	a.everyFlag(cmd.Flags())
	cmd.Flags().Int64Var(&from, "from", 0, "only the events after this seq")
	return cmd
}

// watch shows a run that another process drives until it stops, and ends as it did.
func (a *app) watch(ctx context.Context, p *target, run protocol.RunID, from protocol.Seq) error {
	if err := a.follow(ctx, p, run, from, a.Stream); err != nil {
		return err
	}
	v, err := a.shown(ctx, p, run)
	if err != nil {
		return err
	}
	return errors.Join(a.ShowOutcome(v), outcome(v))
}
