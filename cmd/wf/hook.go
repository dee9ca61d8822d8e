package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"wf/cas"
	"wf/protocol"
	"wf/service/compose"
	"wf/service/notify"
)

func newHook(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "hook",
		Short: "See and retry notifications about runs",
		Long: `Notifications tell people and programs that a run waits, failed, is done or reached a limit. Where they go is said
by notify: in your config, in that of a project or in a workflow, once these are trusted. wf serve delivers them, and
wf run does so for its own run, for at most 5 seconds. What does not get through is attempted for three days.`,
		Example: `  wf hook ls
  wf hook retry --all`,
	}, newHookLs(a), newHookRetry(a))
}

func newHookLs(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List where notifications go, and what was not delivered",
		Example: `  wf hook ls
  wf hook ls -o json`,
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			sinks, err := a.Sinks()
			if err != nil {
				return err
			}
			if dir, _, err := a.StoreDir(); err == nil && !compose.HoldsStore(dir) {
				all, err := notify.List(ctx, nil, sinks)
				return answer(a, all, err, a.ShowHooks)
			}
			return a.WithStore(ctx, func(s *cas.Store) error {
				all, err := notify.List(ctx, s, sinks)
				return answer(a, all, err, a.ShowHooks)
			})
		},
	}
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
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if all == (len(args) > 0) {
				return usagef("wf hook retry wants the ids of notifications, or --all")
			}
			return a.WithStore(ctx, func(s *cas.Store) error { return a.retryHooks(ctx, s, all, args) })
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all that failed")
	return cmd
}

func (a *app) retryHooks(ctx context.Context, s *cas.Store, all bool, ids []string) error {
	done, err := notify.Retry(ctx, s, time.Now(), compose.User(), all, ids)
	if err != nil {
		return err
	}
	if done == nil {
		done = []string{}
	}
	return a.Say(map[string]any{"schema": "wf.hook-retry/v1", "store": s.Dir(), "retried": done},
		"%s will be attempted again\n", protocol.Plural(len(done), "notification"))
}
