package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/cmd/internal/render"
	"wf/protocol"
	"wf/service/compose"
)

// runStatuses are the states a run can be in.
var runStatuses = []string{
	string(protocol.Running), string(protocol.Waiting), string(protocol.Suspended),
	string(protocol.Done), string(protocol.Failed), string(protocol.Cancelled),
}

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
			if f.status != "" && !slices.Contains(runStatuses, f.status) {
				return usagef("--status %q: want %s", f.status, strings.Join(runStatuses, ", "))
			}
			missing, err := a.NoStoreYet()
			switch {
			case a.hubURL() != "":
			case err != nil:
				return err
			case missing:
				none := &api.Page{}
				return errors.Join(a.lsRows(none.Items, f), a.tellStore(ctx, none))
			}
			return a.at(ctx, func(t *target) error { return a.ls(ctx, t, f) })
		},
	}
	flags := cmd.Flags()
	flags.IntVarP(&f.limit, "limit", "n", 50, "at most this many, 0 is all")
	flags.StringVar(&f.status, "status", "", "only these: "+strings.Join(runStatuses, ", "))
	flags.StringVar(&f.tag, "tag", "", "only runs with this tag")
	flags.StringVar(&f.workflow, "workflow", "", "only runs of this workflow")
	flags.BoolVar(&f.all, "all", false, "the runs of sub-workflows too")
	return cmd
}

// picks reports whether only some of the runs are wanted.
func (f lsFlags) picks() bool {
	return f.status != "" || f.tag != "" || f.workflow != ""
}

func (a *app) lsRows(rows []api.Row, f lsFlags) error {
	switch a.Format {
	case "json":
		return a.Answer(map[string]any{"schema": "wf.runs/v1", "items": nonNil(rows)})
	case "jsonl":
		for _, r := range rows {
			if err := render.WriteLine(a.Out, r); err != nil {
				return err
			}
		}
		return nil
	}
	switch {
	case len(rows) == 0 && f.picks():
		a.Progress("no run is like that; wf ls without flags lists all")
		return nil
	case len(rows) == 0:
		a.Progress("no runs; wf run FILE starts one")
		return nil
	}
	return a.runTable(rows)
}

// ls lists runs. Those that cannot be read hide no other, and are errors behind the list.
func (a *app) ls(ctx context.Context, here *target, f lsFlags) error {
	p, err := here.List(ctx, f.query())
	if err != nil {
		return err
	}
	var errs []error
	if len(p.Unread) == 0 || len(p.Items) > 0 || a.AsJSON() {
		errs = append(errs, a.lsRows(p.Items, f), here.about(ctx, p))
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

func (a *app) runTable(rows []api.Row) error {
	p := a.Out.Paint()
	lines := [][]string{{"RUN", "WORKFLOW", "STATUS", "STEPS", "AGE", "TIME", "TOKENS(cached)", "HEAD", ""}}
	for i := range lines[0] {
		lines[0][i] = p.Dim(lines[0][i])
	}
	for _, r := range rows {
		lines = append(lines, []string{
			p.Bold(string(r.ID)), render.Visible(r.Workflow), render.RowState(r).Sign(p) + " " + render.RowState(r).Word(), fmt.Sprint(r.Steps),
			age(r.Updated), render.Span(time.Duration(r.ActiveMS) * time.Millisecond), shortUsage(r.Usage), render.ShortCID(r.Head), rowNote(r),
		})
	}
	return render.Table(a.Out, lines)
}

// rowNote is what a run waits for, why it stopped, or what goes on with it.
func rowNote(r api.Row) string {
	switch {
	case r.Foreign && !r.Status.Final() && r.Parent == nil:
		return "from elsewhere: wf store adopt " + string(r.ID)
	case r.Foreign:
		return "from elsewhere"
	case r.Idle != "" && r.Parent != nil:
		return "a part of " + *r.Parent
	case r.Idle != "":
		return "wf resume " + string(r.ID) + " goes on"
	}
	if len(r.Waiting) == 0 {
		return render.OneLine(r.Reason, 60)
	}
	w := r.Waiting[0]
	if w.Question == "" {
		return "waits for a " + string(w.Kind)
	}
	return `asks: "` + render.OneLine(w.Question, 50) + `"`
}

// shortUsage is the tokens of a run: all of them, and which part of the prompts was cached.
func shortUsage(u api.RowUsage) string {
	if u.Calls == 0 {
		return "–"
	}
	cached := int64(0)
	if u.Input > 0 {
		cached = 100 * u.Cached / u.Input
	}
	return fmt.Sprintf("%s (%d%%)", thousands(u.Input+u.Output), cached)
}

func thousands(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%.1fk", float64(n)/1000)
}

func age(at string) string {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return "?"
	}
	d := time.Since(t)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
