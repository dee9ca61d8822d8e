package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"wf/cas"
	"wf/cmd/internal/render"
	"wf/protocol"
	"wf/service/compose"
	"wf/service/query"
)

func newStore(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Accept a store, or runs of it, that came from elsewhere",
		Example: `  wf store adopt
  wf store adopt 7K3Q --yes`,
		Args: known,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newStoreAdopt(a))
	return cmd
}

func newStoreAdopt(a *app) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "adopt [RUN]...",
		Short: "Let runs that came from elsewhere go on here",
		Long: `Let runs go on that this user has not begun on this machine, or that are older than what was seen of
them: after a backup was put back, a move to another machine or directory, wf import. Until then such runs are
shown, verified, exported and forked, but nothing drives them, and their timers do not fire. Without RUN all
such runs of the store are adopted. It lists what they would run, and asks.`,
		Example: `  wf store adopt
  wf store adopt 7K3Q
  wf store adopt --yes -o json`,
		Args: takes(0, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.WithStore(ctx, func(s *cas.Store) error { return a.adopt(ctx, s, args, yes) })
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// adoptable is a run that came from elsewhere, as wf store adopt lists it.
type adoptable struct {
	ID       protocol.RunID     `json:"id"`
	Workflow string             `json:"workflow"`
	Status   protocol.RunStatus `json:"status"`
	Why      string             `json:"why"`              // foreign_run or rolled_back
	Runs     []string           `json:"runs"`             // its commands, and its agents that run commands without a sandbox
	Parent   *string            `json:"parent,omitempty"` // RUN:STEP of a sub-workflow

	head cas.Head
}

func (a *app) adopt(ctx context.Context, s *cas.Store, args []string, yes bool) error {
	heads, err := a.headsToAdopt(ctx, s, args)
	if err != nil {
		return err
	}
	list := []adoptable{}
	for _, h := range heads {
		x, err := a.adoptable(ctx, s, h)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			a.Progress("warning: %s is left as it is: %s", protocol.RunOf(h.Name), messageOf(err))
		case x != nil:
			list = append(list, *x)
		}
	}
	if len(list) > 0 {
		a.tellAdoptable(list)
		if !yes {
			agreed, err := a.confirm(ctx, fmt.Sprintf("Let %s go on here?", protocol.Plural(len(list), "run")))
			if err != nil {
				return err
			}
			if !agreed {
				return fail(errRefused, "wf store adopt --yes does it without asking; wf verify proves the runs first", "%s of %s not adopted", protocol.Plural(len(list), "run"), s.Dir())
			}
		}
		var adopted []cas.Head
		for _, x := range list {
			adopted = append(adopted, x.head)
		}
		if err := a.Pins(s).Adopt(ctx, adopted); err != nil {
			return err
		}
	}
	if a.AsJSON() {
		return a.Answer(map[string]any{"schema": "wf.adopt/v1", "store": s.Dir(), "adopted": list})
	}
	_, err = fmt.Fprintf(a.Out, "adopted %s of %s\n", protocol.Plural(len(list), "run"), s.Dir())
	return err
}

// headsToAdopt are the runs that are named, with those of their sub-workflows; without names all.
func (a *app) headsToAdopt(ctx context.Context, s *cas.Store, args []string) ([]cas.Head, error) {
	if len(args) == 0 {
		return query.Newest(ctx, s)
	}
	e := a.Engine(s, nil)
	var out []cas.Head
	for _, arg := range args {
		run, err := a.resolveRun(ctx, s, arg)
		if err != nil {
			return nil, err
		}
		children, err := e.Descendants(ctx, run)
		if err != nil {
			return nil, err
		}
		for _, run := range append([]protocol.RunID{run}, children...) {
			h, err := s.Head(ctx, protocol.RunHead(run))
			if err != nil {
				return nil, err
			}
			out = append(out, h)
		}
	}
	return out, nil
}

// adoptable is nil for a run that is the user's own.
func (a *app) adoptable(ctx context.Context, s *cas.Store, h cas.Head) (*adoptable, error) {
	why := a.Pins(s).Own(ctx, protocol.RunOf(h.Name))
	switch {
	case why == nil:
		return nil, nil
	case !errors.Is(why, protocol.ErrForeign) && !errors.Is(why, protocol.ErrRolledBack):
		return nil, why
	}
	st, err := a.Engine(s, nil).State(ctx, protocol.RunOf(h.Name))
	if err != nil {
		return nil, err
	}
	x := &adoptable{ID: protocol.RunOf(h.Name), Workflow: st.Program().Workflow.Name, Status: st.Status(), Why: protocol.CodeOf(why), Runs: compose.Acts(st.Program()), head: h}
	if p := st.Info.Parent; p != nil {
		parent := string(p.Run) + ":" + p.Step
		x.Parent = &parent
	}
	return x, nil
}

// mostListed is how many runs, and commands of one, people are shown.
const mostListed = 20

// tellAdoptable tells people what they are about to adopt.
func (a *app) tellAdoptable(list []adoptable) {
	count := map[protocol.RunStatus]int{}
	for _, x := range list {
		count[x.Status]++
	}
	var counts []string
	for _, status := range []protocol.RunStatus{protocol.Running, protocol.Waiting, protocol.Suspended, protocol.Done, protocol.Failed, protocol.Cancelled} {
		if count[status] > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", count[status], status))
		}
	}
	a.Progress("%s from elsewhere: %s", protocol.Plural(len(list), "run"), strings.Join(counts, ", "))
	open := slices.DeleteFunc(slices.Clone(list), func(x adoptable) bool { return x.Status.Final() || x.Parent != nil })
	for i, x := range open {
		if i == mostListed {
			a.Progress("  … and %d more that have not ended; -o json lists all", len(open)-i)
			break
		}
		older := ""
		if x.Why == protocol.ErrRolledBack.Code {
			older = ", older than what was seen of it: what came after is done again"
		}
		a.Progress("  %s  %s  %s%s; it may run", x.ID, render.Visible(x.Workflow), x.Status, older)
		for j, act := range x.Runs {
			if j == mostListed {
				a.Progress("      … and %d more; wf show %s", len(x.Runs)-j, x.ID)
				break
			}
			a.Progress("      %s", render.IndentLines(render.Visible(act), "        "))
		}
		if len(x.Runs) == 0 {
			a.Progress("      nothing outside of the sandbox")
		}
	}
}
