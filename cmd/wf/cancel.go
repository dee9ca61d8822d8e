package main

import (
	"github.com/spf13/cobra"

	"wf/cas"
	"wf/protocol"
	"wf/service/compose"
)

func newCancel(a *app) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "cancel RUN",
		Short: "End a run for good",
		Long: `End a run for good, with the sub-workflows it has started. A process that drives it stops its commands.
What is recorded stays; wf fork goes on from any step.`,
		Example: `  wf cancel -1
  wf cancel 7K3Q --reason "wrong branch"`,
		Args: takes(1, 1, "a run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.withRun(ctx, args[0], func(s *cas.Store, run protocol.RunID) error {
				e := a.Engine(s, nil)
				if err := e.Cancel(ctx, run, compose.User(), reason); err != nil {
					return err
				}
				a.Note(ctx, s, run)
				v, err := a.shown(ctx, e, run)
				if err != nil {
					return err
				}
				return a.showOutcome(v)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, kept with the run")
	return cmd
}
