package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"wf/cmd/internal/render"
	"wf/daemon"
	"wf/hub/client"
	"wf/hub/queue"
	"wf/protocol"
)

// hubCommands are those that manage a hub: the one that --hub or WF_HUB names, else the user's own.
func hubCommands(a *app) []*cobra.Command {
	var data string
	at := func(f func(ctx context.Context, hub *client.API, args []string) error) func(*cobra.Command, []string) error {
		return func(cmd *cobra.Command, args []string) error {
			hub, err := a.managedHub(data)
			if err != nil {
				return err
			}
			defer hub.Close()
			return f(cmd.Context(), hub, args)
		}
	}
	jobs := &cobra.Command{
		Use:   "jobs",
		Short: "List the jobs that have not begun, and those that were given up",
		Long: `List the jobs of a hub in the order in which they are begun, with the reason for which one waits:
no_worker (none that has the workflow is connected), no_key (those that are cannot open it yet), draining,
no_capacity, grace_period (the hub has just started). A dead one says why it was given up.`,
		Example: "  wf hub jobs\n  wf hub jobs --hub https://hub.example.org -o json",
		Args:    takes(0, 0),
		RunE:    at(func(ctx context.Context, hub *client.API, _ []string) error { return a.hubJobs(ctx, hub) }),
	}
	workers := &cobra.Command{
		Use:     "workers",
		Short:   "List the workers, with what they drive",
		Long:    "List the workers of a hub, also those that are away, with how many runs each drives and may drive.",
		Example: "  wf hub workers",
		Args:    takes(0, 0),
		RunE: at(func(ctx context.Context, hub *client.API, _ []string) error {
			raw, err := hub.Agents(ctx)
			return a.hubWorkers(raw, err)
		}),
	}
	var dead bool
	purge := ofJobs(a, at, "purge JOB...", "Forget jobs with all that is kept of them", `Forget jobs: what a hub keeps of them, and their request ids. One that a worker begins is refused.
--dead means all that were given up.`, "  wf hub purge 7K3QZ\n  wf hub purge --dead", "is forgotten", (*client.API).PurgeJob, &dead)
	purge.Flags().BoolVar(&dead, "dead", false, "all jobs that were given up")
	var off bool
	drain := ofWorker(a, at, "drain WORKER", "Give a worker no more jobs", `Give a worker no more jobs; the runs that it has go on, and it stays connected. It is kept over restarts, until --off.`,
		"  wf hub drain desk-1\n  wf hub drain desk-1 --off", func(hub *client.API, ctx context.Context, id string) ([]byte, error) {
			return hub.DrainWorker(ctx, id, !off)
		})
	drain.Flags().BoolVar(&off, "off", false, "give it jobs again")
	all := []*cobra.Command{jobs, workers,
		ofJobs(a, at, "retry JOB...", "Try jobs again that were given up", `Put jobs that were given up back at their places, with all their attempts. One whose content the hub no longer
keeps, a week after it came, is submitted again instead.`, "  wf hub retry 7K3QZ", "is queued again", (*client.API).RetryJob, nil),
		ofJobs(a, at, "cancel JOB...", "Take jobs out that no worker has begun", `Take jobs out of the queue that no worker has begun; wf cancel ends a run.`, "  wf hub cancel 7K3QZ", "is cancelled", (*client.API).CancelJob, nil),
		purge, drain,
		ofWorker(a, at, "forget WORKER", "Forget a worker that is gone for good", `Forget a worker that will not come back. Jobs that it alone could open are given up, with the reason no_recipient.`,
			"  wf hub forget desk-1", (*client.API).ForgetWorker)}
	for _, cmd := range all {
		cmd.Flags().StringVar(&data, "data", "", "directory of the hub on this machine (default: in the user's state directory)")
	}
	return all
}

// managedHub is the hub that the command line or WF_HUB names, else that of the user on this machine.
func (a *app) managedHub(data string) (*client.API, error) {
	if url := a.hubURL(); url != "" {
		if data != "" {
			return nil, usagef("--data %s names a hub on this machine, and --hub %s another one", data, url)
		}
		way := a.reach
		way.URL = url
		return way.Dial()
	}
	return daemon.HubOptions{ListenOptions: daemon.ListenOptions{Addresses: []string{defaultHub}}, Data: data}.Dial()
}

type atHub = func(func(context.Context, *client.API, []string) error) func(*cobra.Command, []string) error

// ofJobs is a command that does something to jobs, one after the other.
func ofJobs(a *app, at atHub, use, short, long, example, done string, do func(*client.API, context.Context, string) ([]byte, error), dead *bool) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long, Example: example,
		Args: func(cmd *cobra.Command, args []string) error {
			if dead != nil && *dead {
				return takes(0, 0)(cmd, args)
			}
			if slices.Contains(args, "") {
				return usagef("an empty id names no job: wf hub jobs lists them")
			}
			return takes(1, -1, "a job, by its request id")(cmd, args)
		},
		RunE: at(func(ctx context.Context, hub *client.API, ids []string) error {
			if dead != nil && *dead {
				list, err := jobsOf(ctx, hub)
				if err != nil {
					return err
				}
				for _, e := range list {
					if e.State == queue.Dead {
						ids = append(ids, e.ID)
					}
				}
			}
			items := []json.RawMessage{}
			for _, id := range ids {
				raw, err := do(hub, ctx, written(id))
				if dead != nil && *dead && protocol.CodeOf(err) == queue.ErrUnknownJob.Code {
					continue // another client was faster
				}
				if err != nil {
					return err
				}
				if items = append(items, raw); !a.AsJSON() {
					if err := a.Say(nil, "job %s %s\n", render.Visible(id), done); err != nil {
						return err
					}
				}
			}
			if !a.AsJSON() {
				return nil
			}
			return render.AnswerAll(a.Printer, map[string]any{"schema": "wf.queue/v1", "items": items}, items)
		}),
	}
}

// ofWorker is a command that does something to a worker, and lists the workers.
func ofWorker(a *app, at atHub, use, short, long, example string, do func(*client.API, context.Context, string) ([]byte, error)) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long, Example: example, Args: takes(1, 1, "a worker, by its id"),
		RunE: at(func(ctx context.Context, hub *client.API, args []string) error {
			raw, err := do(hub, ctx, written(args[0]))
			return a.hubWorkers(raw, err)
		}),
	}
}

// jobsOf reads the queue of a hub.
func jobsOf(ctx context.Context, hub *client.API) ([]queue.Entry, error) {
	raw, err := hub.Queue(ctx)
	if errors.Is(err, protocol.ErrNotFound) {
		return nil, protocol.ErrUsage.With("name a hub with --hub; wf serve begins every run at once", "this server has no queue")
	}
	var list struct{ Items []queue.Entry }
	if err == nil {
		err = json.Unmarshal(raw, &list)
	}
	return list.Items, err
}

func (a *app) hubJobs(ctx context.Context, hub *client.API) error {
	list, err := jobsOf(ctx, hub)
	if err != nil {
		return err
	}
	if a.AsJSON() {
		return render.AnswerAll(a.Printer, map[string]any{"schema": "wf.queue/v1", "items": append([]queue.Entry{}, list...)}, list)
	}
	if len(list) == 0 {
		a.Progress("no job waits, and none was given up")
	}
	var rows [][]string
	for _, e := range list {
		why := e.Reason
		switch {
		case e.State == queue.Leased:
			why = "at " + e.Worker
		case why == "":
			why = e.Why
		}
		priority := ""
		if e.Priority != 0 {
			priority = fmt.Sprintf("%+d", e.Priority)
		}
		rows = append(rows, []string{a.Out.Bold(render.Visible(e.ID)), render.Visible(e.Workflow), string(e.State), render.Visible(why), priority, attempts(e.Attempts), render.Ago(time.Since(e.Submitted))})
	}
	return render.Table(a.Out, withoutEmpty(rows))
}

func attempts(n int) string {
	if n == 0 {
		return ""
	}
	return "attempt " + strconv.Itoa(n)
}

func (a *app) hubWorkers(raw []byte, err error) error {
	var list struct{ Items []queue.Worker }
	if err == nil {
		err = json.Unmarshal(raw, &list)
	}
	if err != nil {
		return err
	}
	if a.AsJSON() {
		return render.AnswerAll(a.Printer, json.RawMessage(raw), list.Items)
	}
	if len(list.Items) == 0 {
		a.Progress("the hub knows no worker: wf serve --hub connects one")
	}
	var rows [][]string
	for _, w := range list.Items {
		state := "away for " + render.Ago(time.Since(w.Seen))
		if w.Live {
			state = "connected"
		}
		if w.Draining {
			state += ", draining"
		}
		drives := ""
		switch {
		case w.Live && w.Capacity > 0:
			drives = fmt.Sprintf("drives %d of %d", w.Busy, w.Capacity)
		case w.Live:
			drives = "drives any number"
		}
		rows = append(rows, []string{a.Out.Bold(render.Visible(w.ID)), render.Visible(w.Name), state, drives, strings.TrimSpace(fmt.Sprint(w.Runs, " runs"))})
	}
	return render.Table(a.Out, withoutEmpty(rows))
}
