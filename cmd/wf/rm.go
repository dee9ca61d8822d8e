package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"wf/agentkit/config"
	"wf/api"
	"wf/cmd/internal/complete"
	"wf/cmd/internal/render"
	"wf/protocol"
	"wf/service/compose"
)

// removing is what wf rm is asked for.
type removing struct {
	api.Delete
	q         api.Query
	before    string
	yes       bool
	retention bool
}

func newRm(a *app) *cobra.Command {
	var r removing
	cmd := &cobra.Command{
		Use:   "rm [RUN]...",
		Short: "Delete runs that have ended",
		Long: `Delete runs that have ended, with the runs of their sub-workflows. A tombstone stays: which run it was, its
newest event, who deleted it, when and why. The id stays taken, so that no schedule, webhook or request begins the
run again. What the runs were about is removed from the disk by the next wf gc. Forks that share their steps keep
them, and so do archives and backups. A run that has not ended is refused: wf cancel ends it.

Without RUN, those are deleted that fit the filters, which pass over runs that have not ended.`,
		Example: `  wf rm 7K3Q
  wf rm 7K3Q 9F2M --yes --why "held customer data"

  # failed runs that have not moved for 30 days
  wf rm --status failed --before 30d --dry-run
  wf rm --status failed --before 30d --yes && wf gc --yes

  # what  retention: {done: 30d, failed: 90d, keep_last: 20}  in your own config deletes
  wf rm --retention --dry-run`,
		Args: takes(0, -1),
		RunE: a.inTarget(func(ctx context.Context, p *target, args []string) error { return a.remove(ctx, p, args, r) }),
	}
	flags := cmd.Flags()
	flags.StringVar((*string)(&r.q.Status), "status", "", "those of this status: done, failed, cancelled")
	flags.StringVar(&r.q.Workflow, "workflow", "", "those of this workflow")
	flags.StringVar(&r.q.Tag, "tag", "", "those with this tag")
	flags.StringVar(&r.before, "before", "", "those that have not moved for this long: 30d, 12h")
	flags.BoolVar(&r.retention, "retention", false, "those that retention: in your own config deletes; wf serve does so each hour")
	flags.StringVar(&r.Why, "why", "", "why, kept in the tombstones")
	flags.BoolVar(&r.DryRun, "dry-run", false, "tell what would be deleted, and change nothing")
	flags.BoolVarP(&r.yes, "yes", "y", false, "do not ask")
	return cmd
}

// removed is wf.rm/v1.
type removed struct {
	Schema string         `json:"schema"`
	DryRun bool           `json:"dry_run"`
	Items  []*api.Deleted `json:"items"`
}

func (a *app) remove(ctx context.Context, p *target, args []string, r removing) error {
	runs, err := a.toRemove(ctx, p, args, r)
	if err != nil {
		return err
	}
	if r.retention && r.Why == "" {
		r.Why = "retention"
	}
	if len(runs) > 0 && !r.DryRun && !r.yes {
		what := protocol.Plural(len(runs), "run")
		if len(runs) == 1 {
			what = "run " + string(runs[0])
		}
		if err := a.confirm(ctx, "Delete "+what+" of "+p.name+" for good?", errRefused); err != nil {
			return err
		}
	}
	out := removed{Schema: "wf.rm/v1", DryRun: r.DryRun, Items: []*api.Deleted{}}
	var errs []error
	for _, d := range removeAll(ctx, p, runs, r.Delete) {
		if d.err != nil {
			errs = append(errs, d.err)
		} else {
			out.Items = append(out.Items, d.Deleted)
		}
	}
	if a.AsJSON() && (len(errs) == 0 || len(out.Items) > 0) {
		errs = append(errs, a.Answer(out))
	} else if !a.AsJSON() && (len(errs) == 0 || len(out.Items) > 0) {
		errs = append(errs, a.tellRemoved(out))
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(errs...)
}

// toRemove are the runs that are named, or that fit.
func (a *app) toRemove(ctx context.Context, p *target, args []string, r removing) (runs []protocol.RunID, err error) {
	filters := picks(r.q) || r.before != ""
	switch {
	case r.retention && (len(args) > 0 || filters):
		return nil, usagef("--retention chooses the runs: leave others and the filters out")
	case r.retention && p.here == nil:
		return nil, usagef("--retention is of this machine: wf serve deletes what has expired there by itself")
	case r.retention:
		c, err := a.Config()
		if err != nil {
			return nil, err
		}
		if c.Retention == nil {
			a.Progress("no retention: in your config %s, so none is deleted by its age", compose.UserConfig())
		}
		expired, err := p.here.Expired(ctx, time.Now())
		for _, x := range expired {
			runs = append(runs, x.Run)
		}
		return runs, err
	case len(args) > 0 && filters:
		return nil, usagef("runs are named, or chosen by filters: leave one of the two out")
	case len(args) == 0 && !filters:
		return nil, usagef("name the runs to delete, or choose them by --status, --workflow, --tag or --before")
	case r.q.Status != "" && !slices.Contains(complete.Statuses, string(r.q.Status)):
		return nil, usagef("--status %q: want done, failed or cancelled", r.q.Status)
	case r.q.Status != "" && !r.q.Status.Final():
		return nil, protocol.ErrNotFinal.With("", "--status %s: what has not ended is not deleted", r.q.Status)
	}
	for _, arg := range args {
		run, err := p.run(ctx, arg)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(runs, run) {
			runs = append(runs, run)
		}
	}
	if !filters {
		return runs, nil
	}
	var age time.Duration
	if r.before != "" {
		if age, err = config.ParseAge(r.before); err != nil {
			return nil, usagef("--before %v", err)
		}
	}
	return fitting(ctx, p, r.q, age)
}

// fitting are the runs that have ended, fit a query and have not moved for so long.
func fitting(ctx context.Context, p *target, q api.Query, age time.Duration) (runs []protocol.RunID, err error) {
	since := time.Now().Add(-age)
	for q.Limit = api.MaxLimit; ; {
		page, err := p.List(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, row := range page.Items {
			moved, err := time.Parse(time.RFC3339, row.Updated)
			if err != nil {
				return nil, fmt.Errorf("run %s: %w", row.ID, err)
			}
			if row.Status.Final() && !moved.After(since) {
				runs = append(runs, row.ID)
			}
		}
		if page.Next == nil {
			return runs, nil
		}
		q.Before = *page.Next
	}
}

// removal is what came of one run.
type removal struct {
	*api.Deleted
	err error
}

// removeAtOnce is how many runs are deleted at the same time: their transactions share one fsync.
const removeAtOnce = 32

// removeAll deletes runs, and stops between two of them when ctx ends.
func removeAll(ctx context.Context, p *target, runs []protocol.RunID, d api.Delete) []removal {
	out := make([]removal, len(runs))
	room := make(chan struct{}, removeAtOnce)
	var all sync.WaitGroup
	for i, run := range runs {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			if out[i].err = context.Cause(ctx); out[i].err == nil {
				out[i].Deleted, out[i].err = p.Delete(ctx, run, d)
			}
		})
	}
	all.Wait()
	return out
}

// tellRemoved says what was deleted, and what still has parts of it.
func (a *app) tellRemoved(r removed) error {
	did := "deleted"
	if r.DryRun {
		did = "would delete"
	}
	var s strings.Builder
	for _, d := range r.Items {
		fmt.Fprintf(&s, "%s run %s", did, d.ID)
		if n := len(d.Runs) - 1; n > 0 {
			fmt.Fprintf(&s, " with %s of its sub-workflows", protocol.Plural(n, "run"))
		}
		s.WriteString("\n")
		for _, h := range d.Held {
			fmt.Fprintf(&s, "  %s %s still holds %d bytes of it\n", h.What, render.Visible(h.Name), h.Bytes)
		}
	}
	if len(r.Items) == 0 {
		s.WriteString("no run fits\n")
	} else if !r.DryRun {
		s.WriteString("wf gc frees the space\n")
	}
	_, err := fmt.Fprint(a.Out, s.String())
	return err
}
