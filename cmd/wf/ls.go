package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/cmd/internal/complete"
	"wf/protocol"
	"wf/service"
	"wf/service/compose"
)

func newLs(a *app) *cobra.Command {
	var q api.Query
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the runs, the one that moved last first",
		Example: `  wf ls
  wf ls --status waiting
  wf ls -o json | jq -r '.items[].id'`,
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if q.Status != "" && !slices.Contains(complete.Statuses, string(q.Status)) {
				return usagef("--status %q: want %s", q.Status, strings.Join(complete.Statuses, ", "))
			}
			missing, err := a.NoStoreYet()
			switch {
			case a.hubURL() != "":
			case err != nil:
				return err
			case missing:
				none := &api.Page{}
				return errors.Join(a.ShowRuns(none.Items, picks(q)), a.tellStore(ctx, none))
			}
			return a.at(ctx, func(t *target) error { return a.ls(ctx, t, q) })
		},
	}
	flags := cmd.Flags()
	flags.IntVarP(&q.Limit, "limit", "n", 50, "at most this many, 0 is all")
	flags.StringVar((*string)(&q.Status), "status", "", "only these: "+strings.Join(complete.Statuses, ", "))
	flags.StringVar(&q.Tag, "tag", "", "only runs with this tag")
	flags.StringVar(&q.Workflow, "workflow", "", "only runs of this workflow")
	flags.BoolVar(&q.All, "all", false, "the runs of sub-workflows too")
	return cmd
}

// picks reports whether only some of the runs are wanted.
func picks(q api.Query) bool { return q.Status != "" || q.Tag != "" || q.Workflow != "" }

// ls lists runs. Those that cannot be read hide no other, and are errors behind the list.
func (a *app) ls(ctx context.Context, here *target, q api.Query) error {
	p, err := here.List(ctx, q)
	if err != nil {
		return err
	}
	var errs []error
	if len(p.Unread) == 0 || len(p.Items) > 0 || a.AsJSON() {
		errs = append(errs, a.ShowRuns(p.Items, picks(q)), here.about(ctx, p))
	}
	for _, err := range p.Unread {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// tellStore says which store is in use, and where other runs are.
func (a *app) tellStore(ctx context.Context, p *api.Page) error {
	dir, where, err := a.StoreDir()
	if err != nil || a.AsJSON() {
		return err
	}
	if len(p.Items) == 0 && where == compose.ProjectDir {
		a.tellEarlier(ctx, ".", dir)
	}
	a.Progress("store %s (%s)", dir, where)
	return nil
}

// tellEarlier says where the runs of the project in dir are that were made before it had the store of its own
// that is in use.
func (a *app) tellEarlier(ctx context.Context, dir, used string) {
	if n, in := service.Earlier(ctx, a.Setup, dir, used); n > 0 {
		a.Progress("%s of this project from before it had a store of its own: wf ls --store %s", protocol.Plural(n, "run"), in)
	}
}
