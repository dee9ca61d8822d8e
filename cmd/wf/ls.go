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
	"wf/service/compose"
)

type lsFlags struct {
	limit    int
	status   string
	tag      string
	workflow string
	all      bool
}

func (f lsFlags) query() api.Query {
	return api.Query{Limit: f.limit, Status: protocol.RunStatus(f.status), Tag: f.tag, Workflow: f.workflow, All: f.all}
}

func newLs(a *app) *cobra.Command {
	var f lsFlags
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
			if f.status != "" && !slices.Contains(complete.Statuses, f.status) {
				return usagef("--status %q: want %s", f.status, strings.Join(complete.Statuses, ", "))
			}
			missing, err := a.NoStoreYet()
			switch {
			case a.hubURL() != "":
			case err != nil:
				return err
			case missing:
				none := &api.Page{}
				return errors.Join(a.ShowRuns(none.Items, f.picks()), a.tellStore(ctx, none))
			}
			return a.at(ctx, func(t *target) error { return a.ls(ctx, t, f) })
		},
	}
	flags := cmd.Flags()
	flags.IntVarP(&f.limit, "limit", "n", 50, "at most this many, 0 is all")
	flags.StringVar(&f.status, "status", "", "only these: "+strings.Join(complete.Statuses, ", "))
	flags.StringVar(&f.tag, "tag", "", "only runs with this tag")
	flags.StringVar(&f.workflow, "workflow", "", "only runs of this workflow")
	flags.BoolVar(&f.all, "all", false, "the runs of sub-workflows too")
	return cmd
}

// picks reports whether only some of the runs are wanted.
func (f lsFlags) picks() bool {
	return f.status != "" || f.tag != "" || f.workflow != ""
}

// ls lists runs. Those that cannot be read hide no other, and are errors behind the list.
func (a *app) ls(ctx context.Context, here *target, f lsFlags) error {
	p, err := here.List(ctx, f.query())
	if err != nil {
		return err
	}
	var errs []error
	if len(p.Unread) == 0 || len(p.Items) > 0 || a.AsJSON() {
		errs = append(errs, a.ShowRuns(p.Items, f.picks()), here.about(ctx, p))
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
