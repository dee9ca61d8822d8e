package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/hub/queue"
	"wf/protocol"
)

func newCancel(a *app) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "cancel RUN",
		Short: "End a run for good",
		Long: `End a run for good, with the sub-workflows it has started. A process that drives it stops its commands.
If the workflow has always roles, they run first; to cancel the run again skips what is left of them.
What is recorded stays; wf fork goes on from any step.`,
		Example: `  wf cancel -1
  wf cancel 7K3Q --reason "wrong branch"`,
		Args: takes(1, 1, "a run"),
		RunE: a.inTarget(func(ctx context.Context, p *target, args []string) error { return a.cancel(ctx, p, args[0], reason) }),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, kept with the run")
	return cmd
}

// cancel ends a run; at a hub also a request that no worker has begun.
func (a *app) cancel(ctx context.Context, p *target, arg, reason string) error {
	run, err := p.run(ctx, arg)
	if p.server != nil && (errors.Is(err, protocol.ErrUnknownRun) || errors.Is(err, protocol.ErrUsage)) { // a request id may hold a colon
		return a.cancelRequest(ctx, p, written(arg), err)
	}
	if err != nil {
		return err
	}
	before, err := p.Run(ctx, run, api.Window{Limit: 1})
	if err != nil {
		return err
	}
	if err := p.Cancel(ctx, run, reason); err != nil {
		return err
	}
	v, err := p.Run(ctx, run, api.Window{Limit: 1})
	if err != nil {
		return err
	}
	if v.Closing != "" {
		a.Progress("its always roles run now; to cancel it again skips them")
		if err := a.follow(ctx, p, run, before.Seq, a.Reporter); err != nil {
			return err
		}
	}
	return a.tell(ctx, p, run)
}

// cancelRequest takes a request out of the queue of a hub; where there is none of that id the answer is
// noRun.
func (a *app) cancelRequest(ctx context.Context, p *target, request string, noRun error) error {
	raw, err := p.server.CancelJob(ctx, request)
	switch {
	case errors.Is(err, queue.ErrUnknownJob), errors.Is(err, protocol.ErrNotFound): // a worker has no queue
		return noRun
	case err != nil:
		return err
	}
	return a.Say(json.RawMessage(raw), "request %s is cancelled: no worker had begun it\n", request)
}
