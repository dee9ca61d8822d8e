package main

import (
	"context"

	"github.com/spf13/cobra"

	"wf/protocol"
)

func newWatch(a *app) *cobra.Command {
	var from protocol.Seq
	cmd := &cobra.Command{
		Use:   "watch [RUN]",
		Short: "Watch a run that another process drives",
		Long: `Watch a run as it happens, with what models and commands say before it is recorded. It ends when the
run ends or parks, with the exit status of the run. Ctrl-C leaves; the run goes on.`,
		Example: `  wf run workflow.yaml --detach && wf watch -1
  wf watch 7K3Q -o jsonl | jq 'select(.type == "tool_call")'`,
		Args: takes(0, 1),
		PreRunE: func(*cobra.Command, []string) error {
			if from < 0 {
				return fail(protocol.ErrBadCursor, "", "--from %d: want the seq of the last event held, 0 for all", from)
			}
			return nil
		},
		RunE: a.ofRun(func(ctx context.Context, p *target, run protocol.RunID) error {
			if err := a.follow(ctx, p, run, from, a.Stream); err != nil {
				return err
			}
			v, err := a.shown(ctx, p, run)
			if err != nil {
				return err
			}
			return a.tellEnd(v)
		}),
	}
	a.everyFlag(cmd.Flags())
	cmd.Flags().Int64Var((*int64)(&from), "from", 0, "only the events after this seq")
	return cmd
}
