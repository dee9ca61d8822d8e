package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"wf/api"
	"wf/protocol"
)

func newShow(a *app) *cobra.Command {
	var w api.Window
	cmd := &cobra.Command{
		Use:   "show [RUN[:STEP] | CID]",
		Short: "Show a run, a step or a block",
		Long: `Show a run with its last 200 steps, the files that it keeps, and how many notifications are about it; -o json has all of them. A fan-out of
more than ten items is one line with how many of them ended in which way, and with those below it that failed; --all shows each. RUN:check#1 shows the
fan-out check#1 alone, with all of its items that failed. --limit and
--before page through the steps of a long run: where there are earlier ones, the output says which command shows them. --status and --role show only
such steps, wherever in the run they are; of the states, nonzero is ok with another exit code than 0, and cut_off is ok with an answer that has no end.`,
		Example: `  wf show -1
  wf show -1 --status failed,nonzero
  wf show 7K3Q:coder#2
  wf show -1 -o json | jq '.steps[].edge_prompt'`,
		Args: takes(0, 1),
		RunE: a.inTarget(func(ctx context.Context, p *target, args []string) error {
			return a.show(ctx, p, latestUnless(args), w)
		}),
	}
	cmd.Flags().BoolVar(&a.All, "all", false, "every step, items of a fan-out on lines of their own")
	cmd.Flags().IntVar(&w.Limit, "limit", 0, "at most so many lines of steps, the newest (default 200; all with --all and -o json)")
	cmd.Flags().Int64Var((*int64)(&w.Before), "before", 0, "only the steps that began before this event")
	cmd.Flags().StringSliceVar(&w.States, "status", nil, "only the steps of these states: "+strings.Join(api.StepStates, ", "))
	cmd.Flags().StringVar(&w.Role, "role", "", "only the steps of this role")
	return cmd
}

// everyFlag is --all of commands that show events.
func (a *app) everyFlag(f *pflag.FlagSet) {
	f.BoolVar(&a.All, "all", false, "every event of the items of long fan-outs too")
}

// checkWindow fills in what a person is shown.
func (a *app) checkWindow(w api.Window) (api.Window, error) {
	for _, state := range w.States {
		if !slices.Contains(api.StepStates, state) {
			return w, usagef("--status %s: want one or several of %s", state, strings.Join(api.StepStates, ", "))
		}
	}
	switch {
	case w.Limit < 0:
		return w, usagef("--limit %d: want a number of steps", w.Limit)
	case w.Before < 0:
		return w, protocol.ErrBadCursor.With("", "--before %d: want the seq of an event", w.Before)
	case w.Limit == 0 && !a.AsJSON() && !a.All:
		w.Limit = lastSteps
	}
	return w, nil
}

func (a *app) show(ctx context.Context, here *target, arg string, w api.Window) error {
	w, err := a.checkWindow(w)
	if err != nil {
		return err
	}
	at, err := here.find(ctx, arg)
	switch {
	case err != nil:
		return err
	case at.Block.Defined():
		data, err := here.Block(ctx, at.Block)
		if err != nil {
			return err
		}
		return a.ShowBlock(at.Block, data)
	case at.Step == "":
		v, fans, err := a.folded(ctx, here, at.Run, w)
		return answer(a, v, err, func(v *api.Run) error {
			if err := a.ShowRun(v, fans); err != nil {
				return err
			}
			if err := a.showArtifacts(ctx, here, at.Run, v.Steps); err != nil {
				return err
			}
			all, err := here.Notifications(ctx, api.NotificationQuery{Run: at.Run})
			if err != nil { // such as of a config that does not read, which the run itself does not need
				a.Warn(fmt.Errorf("which notifications are about the run is not known: %w", err))
				return nil
			}
			return a.ShowNotified(at.Run, all)
		})
	}
	step, err := here.Step(ctx, at.Run, at.Step)
	if err != nil {
		v, fans, err := a.fanOut(ctx, here, at, err)
		if err != nil {
			return err
		}
		return a.ShowFan(v.ID, v.Steps, fans)
	}
	return answer(a, step, err, func(s *api.RunStep) error {
		if err := a.showStep(ctx, here, at.Run, s.Step); err != nil {
			return err
		}
		return a.showArtifacts(ctx, here, at.Run, []*api.Step{s.Step})
	})
}

// showStep shows a step; an item of a fan-out with its value.
func (a *app) showStep(ctx context.Context, p *target, run protocol.RunID, s *api.Step) error {
	if s.Item == nil {
		return a.ShowStep(s, "")
	}
	began, err := api.EventOf(ctx, p, run, s.Began)
	if err != nil {
		return err
	}
	item := ""
	if d, ok := began.Data.(protocol.StepStarted); ok && d.Item != nil {
		value, err := protocol.ReadPayload(ctx, p.Blocks, d.Item.Value)
		if err != nil {
			return err
		}
		item = protocol.JSONText(value)
	}
	return a.ShowStep(s, item)
}
