package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"wf/api"
	"wf/cmd/internal/complete"
	"wf/cmd/internal/render"
	"wf/protocol"
	"wf/service"
	"wf/service/compose"
	"wf/service/query"
	"wf/store"
)

func newLs(a *app) *cobra.Command {
	var q api.Query
	var more finding
	var deleted bool
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the runs, the one that moved last first",
		Long: `List the runs, the one that moved last first. WALL is the time from the beginning of a run to its end, or until
now; TIME is that in which something was at work: waits for people and timers, and the
time in which a run was suspended or no process drove it, are not counted. STEPS counts each item of a fan-out.

--search finds runs by what was said in them: titles, inputs, prompts, answers, errors, and questions with the answers of
people. All words must occur in a run, in any case and order. A word of three letters or more also finds longer words that
begin with it, and so does a shorter one with a * behind it. Below each run are excerpts with the words.`,
		Example: `  wf ls
  wf ls --status waiting
  wf ls --search "connection refused" --since 7d
  wf ls --person anna --cost-min 0.50
  wf ls --deleted
  wf ls -o json | jq -r '.items[].id'`,
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if q.Status != "" && !slices.Contains(complete.Statuses, string(q.Status)) {
				return usagef("--status %q: want %s", q.Status, strings.Join(complete.Statuses, ", "))
			}
			if err := more.read(cmd.Flags(), &q); err != nil {
				return err
			}
			if deleted && (picks(q) || q.All) {
				return usagef("of runs that were deleted nothing is kept to choose them by: leave the other filters out")
			}
			if a.worker != "" && !deleted {
				return usagef("--worker belongs to --deleted: the runs of all workers are listed")
			}
			missing, err := a.NoStoreYet()
			switch {
			case deleted:
				return a.at(ctx, func(t *target) error {
					list, err := t.Deletions(ctx, api.Part{Limit: q.Limit})
					return answer(a, list, err, a.ShowDeletions)
				})
			case a.hubURL() != "":
			case err != nil:
				return err
			case missing:
				none := &api.Page{}
				return errors.Join(a.ShowRuns(none, picks(q)), a.tellStore(ctx, none))
			}
			return a.at(ctx, func(t *target) error { return a.ls(ctx, t, q) })
		},
	}
	flags := cmd.Flags()
	flags.IntVarP(&q.Limit, "limit", "n", 50, "at most this many, 0 is all")
	flags.StringVar((*string)(&q.Status), "status", "", "only these: "+strings.Join(complete.Statuses, ", "))
	flags.StringVar(&q.Tag, "tag", "", "only runs with this tag")
	flags.StringVar(&q.Workflow, "workflow", "", "only runs of this workflow")
	more.flags(flags, &q)
	flags.BoolVar(&q.All, "all", false, "the runs of sub-workflows too")
	flags.BoolVar(&deleted, "deleted", false, "those that were deleted: by which user, when and why")
	flags.StringVar(&a.worker, "worker", "", "with --deleted: id of the worker whose runs are meant, at a hub that has several")
	return cmd
}

// picks reports whether only some of the runs are wanted.
func picks(q api.Query) bool {
	q.Limit, q.All = 0, false
	return q != api.Query{}
}

// finding are the flags of wf ls that are read as a whole.
type finding struct {
	since, until         string
	costMin, costMax     float64
	tokensMin, tokensMax int64
}

func (f *finding) flags(flags *pflag.FlagSet, q *api.Query) {
	flags.StringVar(&q.Search, "search", "", "only runs in which these words were said")
	flags.StringVar(&f.since, "since", "", "only runs that moved last since then: 2h, 7d, or 2026-05-01T12:00:00Z")
	flags.StringVar(&f.until, "until", "", "only runs that moved last until then, likewise")
	flags.Float64Var(&f.costMin, "cost-min", 0, "only runs that cost at least so many USD")
	flags.Float64Var(&f.costMax, "cost-max", 0, "only runs that cost at most so many USD")
	flags.Int64Var(&f.tokensMin, "tokens-min", 0, "only runs of at least so many tokens, input and output")
	flags.Int64Var(&f.tokensMax, "tokens-max", 0, "only runs of at most so many tokens")
	flags.StringVar(&q.Person, "person", "", "only runs that this person began or answered in, or that were begun for it")
}

// read puts the flags that were given into a query.
func (f *finding) read(flags *pflag.FlagSet, q *api.Query) (err error) {
	now := time.Now()
	for _, x := range []struct {
		name, text string
		at         *int64
	}{{"since", f.since, &q.Since}, {"until", f.until, &q.Until}} {
		if !flags.Changed(x.name) {
			continue
		}
		if *x.at, err = protocol.TimeOrAgo(x.text, now); err != nil {
			return usagef("--%s %v", x.name, err)
		}
	}
	for name, at := range map[string]**float64{"cost-min": &q.CostMin, "cost-max": &q.CostMax} {
		if n := map[string]*float64{"cost-min": &f.costMin, "cost-max": &f.costMax}[name]; flags.Changed(name) {
			if *at = n; !(*n >= 0) {
				return usagef("--%s %v: want US dollars, as in 0.25", name, *n)
			}
		}
	}
	for name, at := range map[string]**int64{"tokens-min": &q.TokensMin, "tokens-max": &q.TokensMax} {
		if n := map[string]*int64{"tokens-min": &f.tokensMin, "tokens-max": &f.tokensMax}[name]; flags.Changed(name) {
			if *at = n; *n < 0 {
				return usagef("--%s %d: want a number of tokens", name, *n)
			}
		}
	}
	if flags.Changed("search") {
		if _, err := api.ReadSearch(q.Search); err != nil {
			return usagef("--%v", err)
		}
	}
	return nil
}

// ls lists runs. Those that cannot be read hide no other, and are errors behind the list.
func (a *app) ls(ctx context.Context, here *target, q api.Query) error {
	if here.here != nil && (q.Search != "" || q.Person != "") {
		tell := a.telling("%s: %d of %d runs", "what was said is indexed for searches")
		if err := here.here.IndexAll(ctx, tell); err != nil {
			return err
		}
	}
	p, err := here.List(ctx, q)
	if err != nil {
		return err
	}
	var errs []error
	if len(p.Unread) == 0 || len(p.Items) > 0 || a.AsJSON() {
		errs = append(errs, a.ShowRuns(p, picks(q)), here.about(ctx, p))
	}
	for _, err := range p.Unread {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// tellStore says which store is in use, and where other runs are.
func (a *app) tellStore(ctx context.Context, p *api.Page) error {
	dir, where, err := a.StoreName()
	if err != nil || a.AsJSON() {
		return err
	}
	if len(p.Items) == 0 && where == compose.ProjectDir {
		a.tellEarlier(ctx, ".", dir)
	}
	a.Progress("store %s (%s)", store.Shown(dir), where)
	return nil
}

// tellEarlier says where the runs of the project in dir are that were made before it had the store of its own
// that is in use.
func (a *app) tellEarlier(ctx context.Context, dir, used string) {
	if n, in := service.Earlier(ctx, a.Setup, dir, used); n > 0 {
		a.Progress("%s of this project from before it had a store of its own: wf ls --store %s", protocol.Plural(n, "run"), protocol.ShellWord(in))
	}
}

// home is what wf alone shows: the last runs and what to do next, or the first steps.
func (a *app) home(ctx context.Context) error {
	missing, err := a.NoStoreYet()
	if err != nil {
		return err
	}
	if missing {
		return a.firstSteps()
	}
	return a.WithStore(ctx, func(s store.Store) error { return a.lastRuns(ctx, s) })
}

func (a *app) lastRuns(ctx context.Context, s store.Store) error {
	rows, unread, err := query.Runs(ctx, a.Engine(s, nil), api.Query{Limit: 8})
	if err != nil {
		return err
	}
	for _, err := range unread {
		a.Progress("warning: %s", messageOf(err))
	}
	if a.AsJSON() {
		return a.Answer(map[string]any{"schema": "wf.runs/v1", "items": rows})
	}
	if len(rows) == 0 {
		return a.firstSteps()
	}
	if err := a.RunTable(rows); err != nil {
		return err
	}
	v, err := a.Engine(s, nil).ViewWindow(ctx, rows[0].ID, api.Window{Limit: 1})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Out, "\n  next   %s\n  more   wf --help\n", render.Next(v))
	return err
}

func (a *app) firstSteps() error {
	return a.Say(map[string]any{"schema": "wf.runs/v1", "items": []api.Row{}}, `No runs yet.

  wf demo                 watch a workflow repair a failing Go module, without a key
  wf init                 write a first workflow, here
  wf run workflow.yaml    run it
  wf --help               everything else
`)
}
