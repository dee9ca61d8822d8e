package main

import (
	"context"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/protocol"
	"wf/service/compose"
	"wf/service/notify"
)

func newHook(a *app) *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "hook",
		Short: "See and retry notifications about runs",
		Long: `Notifications tell people and programs that a run waits, failed, is done or reached a limit. Where they go is said
by notify: in your config, in that of a project or in a workflow, once these are trusted. wf serve delivers them, and
wf run does so for its own run, for at most 5 seconds. What does not get through is attempted for three days. At a server only its owner sees more of an address than its host, and retries.`,
		Example: `  wf hook ls
  wf hook retry --all`,
	}, newHookLs(a), newHookRetry(a))
	cmd.PersistentFlags().StringVar(&a.worker, "worker", "", "id of the worker whose notifications are meant, at a hub that has several")
	return cmd
}

func newHookLs(a *app) *cobra.Command {
	var about string
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List where notifications go, and what was not delivered",
		Long: `List the sinks of notifications, each with what waits and what is dead. --run lists those about one run, the newest first:
what was delivered too, as long as it is among the last 200 of its sink. At a hub that asks the worker that has the run.`,
		Example: `  wf hook ls
  wf hook ls --run -1
  wf hook ls --run 7K3Q -o json | jq '.items[] | select(.status != "delivered")'`,
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if about != "" {
				return a.at(ctx, func(p *target) error {
					run, err := p.run(ctx, about)
					if err != nil {
						return err
					}
					all, err := p.Notifications(ctx, api.NotificationQuery{Run: run})
					return answer(a, all, err, a.ShowNotifications)
				})
			}
			if dir, _, err := a.StoreName(); a.hubURL() == "" && err == nil && !compose.HoldsStore(dir) {
				sinks, err := a.Sinks()
				if err != nil {
					return err
				}
				return a.showHooks(notify.List(ctx, nil, sinks, api.NotificationQuery{}))
			}
			return a.at(ctx, func(p *target) error { return a.showHooks(p.Notifications(ctx, api.NotificationQuery{})) })
		},
	}
	cmd.Flags().StringVar(&about, "run", "", "those about this run, delivered ones too")
	return cmd
}

func (a *app) showHooks(all *api.NotificationList, err error) error {
	if err != nil {
		return err
	}
	return answer(a, all.Hooks(), nil, a.ShowHooks)
}

func newHookRetry(a *app) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "retry [ID]...",
		Short: "Attempt notifications again that failed",
		Long: `Have notifications attempted again at once, for three more days: dead ones, and those that wait for their next
attempt. An ID may be cut short. wf serve delivers them.`,
		Example: `  wf hook retry msg_km5nlk6zdgskrwuxgg4fxui5r7yus25c
  wf hook retry --all`,
		Args: takes(0, -1),
		PreRunE: func(_ *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return usagef("wf hook retry wants the ids of notifications, or --all")
			}
			return nil
		},
		RunE: a.inTarget(func(ctx context.Context, p *target, args []string) error {
			done, err := p.RetryNotifications(ctx, api.RetryNotifications{IDs: args, All: all})
			if err != nil {
				return err
			}
			return a.Say(map[string]any{"schema": "wf.hook-retry/v1", "store": p.name, "retried": done.Retried},
				"%s will be attempted again\n", protocol.Plural(len(done.Retried), "notification"))
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "all that failed")
	return cmd
}
