package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/cmd/internal/render"
	"wf/protocol"
)

func newLog(a *app) *cobra.Command {
	var follow, steps bool
	cmd := &cobra.Command{
		Use:   "log [RUN[:STEP]]",
		Short: "Show what happened, and what the step that matters said",
		Long: `Show what happened in a run, one line per event, and the last lines of what commands wrote. Items of a
long fan-out are counted, and only those that failed or ask have lines; --all shows each. First comes the
output of the step that failed or that waits, since that is what one looks for. -f goes on while the run does.`,
		Example: `  wf log -1
  wf log 7K3Q:test#2
  wf log -1 -f`,
		Args: takes(0, 1),
		RunE: a.inTarget(func(ctx context.Context, p *target, args []string) error {
			at, err := p.find(ctx, latestUnless(args))
			switch {
			case err != nil:
				return err
			case at.Block.Defined():
				return usagef("%s is a block; wf show shows it", written(args[0]))
			}
			if !follow && !a.AsJSON() && !steps {
				if err := a.logFirst(ctx, p, at); err != nil {
					return err
				}
			}
			fold := a.NewFolder()
			if strings.Contains(at.Step, "[") {
				fold = nil
			}
			return a.logEvents(ctx, p, at, eventWindow{}, follow, !steps && at.Step == "", fold)
		}),
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on while the run does")
	a.everyFlag(cmd.Flags())
	cmd.Flags().BoolVar(&steps, "events", false, "only the events, without the output in front")
	return cmd
}

// logFirst shows the output of the step that failed, waits, or was asked for.
func (a *app) logFirst(ctx context.Context, p *target, at api.Ref) error {
	v, err := a.shown(ctx, p, at.Run)
	if err != nil {
		return err
	}
	if at.Step != "" {
		x, err := p.Step(ctx, at.Run, at.Step)
		if err != nil {
			if v, fans, err := a.fanOut(ctx, p, at, err); err != nil {
				return err
			} else if err := a.ShowFan(v.ID, v.Steps, fans); err != nil {
				return err
			}
			_, err := fmt.Fprintln(a.Out)
			return err
		}
		v.Steps = []*api.Step{x.Step}
	}
	blamed := render.Blamed(v)
	for _, x := range slices.Backward(v.Steps) {
		if at.Step == "" && blamed != "" && x.ID != blamed {
			continue
		}
		if at.Step == "" && x.CID != nil && x.Status != string(protocol.StepFailed) {
			continue
		}
		render.AtRest(v)
		if err := a.showStep(ctx, p, at.Run, x); err != nil {
			return err
		}
		_, err := fmt.Fprintln(a.Out)
		return err
	}
	return nil
}

// logEvents writes the events of a window, and with follow those that are yet to come,
// until the run is over; with wrote also what commands wrote. fold may be nil.
func (a *app) logEvents(ctx context.Context, p *target, at api.Ref, w eventWindow, follow, wrote bool, fold *render.Folder) error {
	b := render.Backdrop{Context: ctx, Blocks: p.Blocks, Fold: fold}
	return a.events(ctx, p, at, w, follow, func(u api.Update) error {
		if a.AsJSON() {
			j, err := render.NewEventJSON(u.Entry, u.Data)
			if err != nil {
				return err
			}
			return render.WriteLine(a.Out, j)
		}
		for _, l := range b.Logged(at.Run, u.Entry, u.Data, wrote) {
			if _, err := fmt.Fprintln(a.Out, l); err != nil {
				return err
			}
		}
		return nil
	})
}

// events calls show with each event of a window of a run, or of a step of it; with follow until the run has ended.
func (a *app) events(ctx context.Context, p *target, at api.Ref, w eventWindow, follow bool, show func(api.Update) error) error {
	f := api.Following{From: w.from, To: w.end()}
	if follow {
		f.Until = api.Ended
	}
	return p.Follow(ctx, at.Run, f, a.showing(ctx, p, func(u api.Update) error {
		if u.Entry == nil || at.Step != "" && u.Step != at.Step && render.FanOf(&api.Step{ID: u.Step}) != at.Step {
			return nil
		}
		return show(u)
	}))
}
