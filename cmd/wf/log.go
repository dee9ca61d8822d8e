package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/cas"
	"wf/protocol"
	"wf/service/query"
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
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.WithStore(ctx, func(s *cas.Store) error {
				at, err := a.resolve(ctx, s, latestUnless(args))
				switch {
				case err != nil:
					return err
				case at.block.Defined():
					return usagef("%s is a block; wf show shows it", written(args[0]))
				}
				if !follow && !a.asJSON() && !steps {
					if err := a.logFirst(ctx, s, at); err != nil {
						return err
					}
				}
				fold := a.newFolder()
				if at.step != "" {
					fold = nil
				}
				return a.logEvents(ctx, s, at, eventWindow{}, follow, !steps && at.step == "", fold)
			})
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on while the run does")
	a.everyFlag(cmd.Flags())
	cmd.Flags().BoolVar(&steps, "events", false, "only the events, without the output in front")
	return cmd
}

// logFirst shows the output of the step that failed, waits, or was asked for.
func (a *app) logFirst(ctx context.Context, s *cas.Store, at ref) error {
	e := a.Engine(s, nil)
	read := func() (*api.Run, error) { return a.shown(ctx, e, at.run) }
	if at.step != "" {
		read = func() (*api.Run, error) { return e.ViewStep(ctx, at.run, at.step) }
	}
	v, err := read()
	if err != nil {
		return err
	}
	return a.showFirst(v, at.step)
}

// showFirst is logFirst for a run that was read; step is "" for the one that matters.
func (a *app) showFirst(v *api.Run, step string) error {
	var found *api.Step
	if step != "" {
		var err error
		if found, err = query.StepOf(v, step); err != nil {
			return err
		}
	}
	for i := len(v.Steps) - 1; i >= 0 && found == nil; i-- {
		if s := v.Steps[i]; !ended(s) || s.Status == string(protocol.StepFailed) {
			found = s
		}
	}
	if found == nil {
		return nil
	}
	atRest(v)
	if err := a.showStep(found); err != nil {
		return err
	}
	_, err := fmt.Fprintln(a.out)
	return err
}

// logEvents writes the events of a window, and with follow those that are yet to come,
// until the run is over; with wrote also what commands wrote. fold may be nil.
func (a *app) logEvents(ctx context.Context, s *cas.Store, at ref, w eventWindow, follow, wrote bool, fold *folder) error {
	b := backdrop{ctx: ctx, blocks: s}
	return a.each(ctx, s, w.request(at.run, follow), func(e *protocol.Entry, d protocol.Data) error {
		if at.step != "" && e.StepName() != at.step {
			return nil
		}
		if a.asJSON() {
			j, err := newEventJSON(e, d)
			if err != nil {
				return err
			}
			return line(a.out, j)
		}
		for _, l := range b.logged(at.run, e, d, wrote, fold) {
			if _, err := fmt.Fprintln(a.out, l); err != nil {
				return err
			}
		}
		return nil
	})
}

// logged are the lines of an event in wf log, with wrote also what a command wrote; none for an item
// that is folded.
func (b backdrop) logged(run protocol.RunID, e *protocol.Entry, d protocol.Data, wrote bool, fold *folder) []string {
	own, lines, behind := fold.take(e, d, b.exit)
	if own {
		text := tell(d)
		if d == nil {
			text = string(e.Type)
		}
		lines = append(lines, eventLine(e, text))
		if wrote {
			lines = append(lines, b.wrote(run, e.StepName(), d)...)
		}
	}
	return append(lines, behind...)
}
