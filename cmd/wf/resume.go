package main

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/cmd/internal/render"
	"wf/protocol"
	"wf/service"
	"wf/service/compose"
)

func newResume(a *app) *cobra.Command {
	var limits []string
	var record string
	var here bool
	cmd := &cobra.Command{
		Use:   "resume [RUN]",
		Short: "Go on with a run that was suspended, cut off or answered",
		Long: `Go on with a run: after Ctrl-C or a crash, an error that was put right, an answer, or with a higher
limit. What is recorded already is not done again. Without RUN it is the latest.

A run that an error or a bound suspended goes on at all of its steps: each failed step is tried again,
and each reached bound of an edge or role lets one more round pass.`,
		Example: `  wf resume -1

  # after a limit was reached
  wf resume 7K3Q --limit steps=60 --limit cost_usd=3

  # its files are on another machine: in a copy of what was recorded of them last
  wf resume 7K3Q --here`,
		Args: takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range []string{"steps", "tokens", "cost-usd", "duration"} {
				if f := cmd.Flags().Lookup(name); f.Changed {
					limits = append(limits, strings.ReplaceAll(name, "-", "_")+"="+f.Value.String())
				}
			}
			raised, err := raisedLimits(limits)
			if err != nil {
				return err
			}
			if err := a.forRunsHere("", record); err != nil {
				return err
			}
			stop, err := a.recordTo(record)
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			return errors.Join(a.at(ctx, func(p *target) error { return a.resume(ctx, p, args, api.Resume{Limits: raised, Here: here}) }), stop())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&record, "record", "", "append every model call to a file, which tape/FILE answers from")
	flags.StringArrayVar(&limits, "limit", nil, "a new limit: steps=60, tokens=500000, cost_usd=3 or duration=30m")
	flags.BoolVar(&here, "here", false, "go on in a copy of files that are on another machine; that machine keeps what it has")
	a.driveFlags(flags)
	a.everyFlag(flags)
	flags.Int64("steps", 0, "short for --limit steps=")
	flags.Int64("tokens", 0, "short for --limit tokens=")
	flags.Float64("cost-usd", 0, "short for --limit cost_usd=")
	flags.Duration("duration", 0, "short for --limit duration=")
	return cmd
}

func (a *app) resume(ctx context.Context, p *target, args []string, x api.Resume) error {
	run, err := p.run(ctx, latestUnless(args))
	if err != nil {
		return err
	}
	if len(args) == 0 {
		a.Progress("the latest run here is %s, in the store %s", run, p.name)
	}
	before, err := a.shown(ctx, p, run)
	if err != nil {
		return err
	}
	if before.Status.Final() {
		return a.tellEnd(before)
	}
	if err := p.Resume(ctx, run, x); err != nil && (p.here != nil || !errors.Is(err, protocol.ErrRunLive)) {
		return err
	}
	if err := a.headline(ctx, p, run); err != nil {
		return err
	}
	if before.Queue != nil {
		a.Progress("run %s %s", run, render.Queued(before.Queue))
	}
	return a.attend(ctx, p, run, before.Seq)
}

// raisedLimits reads all of --limit as an API takes them.
func raisedLimits(given []string) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	for _, text := range given {
		if _, err := service.ParseLimit(text, compose.User()); err != nil {
			return nil, err
		}
		name, value, _ := strings.Cut(text, "=")
		if out[name] = json.RawMessage(value); !json.Valid(out[name]) {
			out[name] = json.RawMessage(strconv.Quote(value))
		}
	}
	return out, nil
}
