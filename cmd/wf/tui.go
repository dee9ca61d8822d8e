package main

import (
	"context"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/cmd/internal/tui"
	"wf/daemon"
	"wf/store"
)

func newTUI(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "tui",
		Short: "Look through the runs in the terminal",
		Long: `Look through the runs in the terminal: the list, the chain of steps with their visits, and of each the output,
messages, events, the difference to the visit before, cost and proof. What moves is followed. Keys answer, resume, fork,
cancel and delete the run under the cursor; ? lists them. Runs that go on in it are suspended when it is left.`,
		Example: `  wf tui
  wf tui --hub http://127.0.0.1:8766`,
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.wantsTerminal("tui", "wf ls and wf show"); err != nil {
				return err
			}
			ctx := cmd.Context()
			if url := a.hubURL(); url != "" {
				return a.atServer(url, func(p *target) error { return a.tui(ctx, p.Service, p.Follower) })
			}
			return a.WithNewStore(ctx, func(s store.Store) error {
				return daemon.Private(a.Setup, s, "", func(d *daemon.Daemon) error { return a.tui(ctx, d.Service, d) })
			})
		},
	}
}

func (a *app) tui(ctx context.Context, s api.Service, f api.Follower) error {
	return a.onScreen(ctx, tui.New(ctx, tui.Reader{Service: s, Follower: f}))
}
