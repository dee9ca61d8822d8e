package main

import (
	"context"

	"github.com/spf13/cobra"

	"wf/protocol"
)

func newWatch(a *app) *cobra.Command {
	var w eventWindow
	cmd := &cobra.Command{
		Use:   "watch [RUN]",
		Short: "Watch a run that another process drives",
		Long: `Watch a run as it happens, with what models and commands say before it is recorded. It ends when the
run ends or parks, with the exit status of the run. Ctrl-C leaves; the run goes on.`,
		Example: `  wf run workflow.yaml --detach && wf watch -1
  wf watch 7K3Q -o jsonl | jq 'select(.type == "tool_call")'`,
		Args:    takes(0, 1),
		PreRunE: func(*cobra.Command, []string) error { return w.check(false, false) },
		RunE: a.ofRun(func(ctx context.Context, p *target, run protocol.RunID) error {
			if err := a.follow(ctx, p, run, w.from, a.Stream); err != nil {
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
	cmd.Flags().Int64Var((*int64)(&w.from), "from", 0, "only the events after this seq")
	return cmd
}
