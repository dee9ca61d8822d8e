package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"wf/cas"
	"wf/protocol"
)

func newReplay(a *app) *cobra.Command {
	var from string
	var follow, check bool
	cmd := &cobra.Command{
		Use:   "replay [RUN]",
		Short: "Read a run's journal again, event by event",
		Long: `Read the journal of a run, every event hashed and joined to the one before. --check decides every edge
and builds every prompt again from the records, and exits 1 where something differs.`,
		Example: `  wf replay -1 -o jsonl | grep '"type":"tool_call"'
  wf replay 7K3Q --from 120 --follow -o jsonl
  wf replay -1 --check`,
		Args: takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			seq, err := strconv.ParseInt(from, 10, 64)
			if err != nil || seq < 0 {
				return fail(protocol.ErrBadCursor, "", "--from %q: want the seq of the last event held, 0 for all", from)
			}
			ctx := cmd.Context()
			return a.withRun(ctx, latestUnless(args), func(s *cas.Store, run protocol.RunID) error {
				if check {
					return a.checkReplay(ctx, s, run)
				}
				return a.replay(ctx, s, run, protocol.Seq(seq), follow)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&from, "from", "0", "only the events after this seq")
	flags.BoolVarP(&follow, "follow", "f", false, "go on while the run does")
	flags.BoolVar(&check, "check", false, "decide and build everything again, and compare")
	return cmd
}

func (a *app) replay(ctx context.Context, s *cas.Store, run protocol.RunID, from protocol.Seq, follow bool) error {
	if a.format != "json" {
		return a.logEvents(ctx, s, ref{run: run}, from, follow, false)
	}
	if follow {
		return usagef("--follow streams; it needs -o jsonl")
	}
	events := []eventJSON{}
	err := a.each(ctx, s, run, from, false, func(e *protocol.Entry, d protocol.Data) error {
		j, err := newEventJSON(e, d)
		events = append(events, j)
		return err
	})
	if err != nil {
		return err
	}
	return a.answer(map[string]any{"schema": "wf.replay/v1", "run": run, "items": events})
}
