package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"wf/cas"
	"wf/engine"
	"wf/protocol"
	"wf/service"
	"wf/service/compose"
)

func newResume(a *app) *cobra.Command {
	var limits []string
	var record string
	cmd := &cobra.Command{
		Use:   "resume [RUN]",
		Short: "Go on with a run that was suspended, cut off or answered",
		Long: `Go on with a run: after Ctrl-C or a crash, an error that was put right, an answer, or with a higher
limit. What is recorded already is not done again. Without RUN it is the latest.`,
		Example: `  wf resume -1

  # after a limit was reached
  wf resume 7K3Q --limit steps=60 --limit cost_usd=3`,
		Args: takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o := engine.DriveOptions{By: compose.User()}
			for _, name := range []string{"steps", "tokens", "cost-usd", "duration"} {
				if f := cmd.Flags().Lookup(name); f.Changed {
					limits = append(limits, strings.ReplaceAll(name, "-", "_")+"="+f.Value.String())
				}
			}
			var err error
			if o.Limits, err = limitFlags(limits); err != nil {
				return err
			}
			stop, err := a.recordTo(record)
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			err = a.withRun(ctx, latestUnless(args), func(s *cas.Store, run protocol.RunID) error {
				if len(args) == 0 {
					a.progress("the latest run here is %s, in the store %s", run, s.Dir())
				}
				st, err := a.Engine(s, nil).State(ctx, run)
				if err != nil {
					return err
				}
				if st.Status().Final() {
					v, err := a.shown(ctx, a.Engine(s, nil), run)
					if err != nil {
						return err
					}
					return errors.Join(a.showOutcome(v), outcome(v))
				}
				if err := a.Engine(s, nil).Own(ctx, run); err != nil {
					return err
				}
				a.headline(run, st.Program())
				return a.drive(ctx, s, run, o)
			})
			return errors.Join(err, stop())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&record, "record", "", "append every model call to a file, which tape/FILE answers from")
	flags.StringArrayVar(&limits, "limit", nil, "a new limit: steps=60, tokens=500000, cost_usd=3 or duration=30m")
	a.trustFlag(flags)
	a.everyFlag(flags)
	flags.Int64("steps", 0, "short for --limit steps=")
	flags.Int64("tokens", 0, "short for --limit tokens=")
	flags.Float64("cost-usd", 0, "short for --limit cost_usd=")
	flags.Duration("duration", 0, "short for --limit duration=")
	return cmd
}

// limitFlags reads all of --limit.
func limitFlags(given []string) (all []protocol.LimitChanged, err error) {
	for _, g := range given {
		l, err := service.ParseLimit(g, compose.User())
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// latestUnless is the run named on the command line, else the latest.
func latestUnless(args []string) string {
	if len(args) == 0 {
		return "-1"
	}
	return args[0]
}
