package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"wf/api"
	"wf/protocol"
)

func newShow(a *app) *cobra.Command {
	var w api.Window
	cmd := &cobra.Command{
		Use:   "show [RUN[:STEP] | CID]",
		Short: "Show a run, a step or a block",
		Long: `Show a run with its last 200 steps; -o json has all of them. --limit and --before page through the steps
of a long run: where there are earlier ones, the output ends with the command that shows them.`,
		Example: `  wf show -1
  wf show 7K3Q:coder#2
  wf show -1 -o json | jq '.steps[].edge_prompt'`,
		Args: takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.at(ctx, func(t *target) error { return a.show(ctx, t, latestUnless(args), w) })
		},
	}
	cmd.Flags().BoolVar(&a.every, "all", false, "every step, items of a fan-out on lines of their own")
	windowFlags(cmd.Flags(), &w)
	return cmd
}

// everyFlag is --all of commands that show events.
func (a *app) everyFlag(f *pflag.FlagSet) {
	f.BoolVar(&a.every, "all", false, "every event of the items of long fan-outs too")
}

// windowFlags choose steps of a run.
func windowFlags(f *pflag.FlagSet, w *api.Window) {
	f.IntVar(&w.Limit, "limit", 0, "at most so many steps, the newest (default 200; all with --all and -o json)")
	f.Int64Var((*int64)(&w.Before), "before", 0, "only the steps that began before this event")
}

// checkWindow fills in what a person is shown.
func (a *app) checkWindow(w api.Window) (api.Window, error) {
	switch {
	case w.Limit < 0:
		return w, usagef("--limit %d: want a number of steps", w.Limit)
	case w.Before < 0:
		return w, fail(protocol.ErrBadCursor, "", "--before %d: want the seq of an event", w.Before)
	case w.Limit == 0 && !a.asJSON() && !a.every:
		w.Limit = lastSteps
	}
	return w, nil
}

func (a *app) show(ctx context.Context, here *target, arg string, w api.Window) error {
	w, err := a.checkWindow(w)
	if err != nil {
		return err
	}
	at, err := here.find(ctx, arg)
	switch {
	case err != nil:
		return err
	case at.Block.Defined():
		data, err := here.Block(ctx, at.Block)
		if err != nil {
			return err
		}
		return a.writeBlock(at.Block, data)
	case at.Step == "":
		v, err := here.Run(ctx, at.Run, w)
		if err != nil {
			return err
		}
		if a.asJSON() {
			return a.answer(v)
		}
		return a.showRun(v)
	}
	step, err := here.Step(ctx, at.Run, at.Step)
	if err != nil {
		return err
	}
	if a.asJSON() {
		return a.answer(step)
	}
	return a.showStep(step.Step)
}

func (a *app) showRun(v *api.Run) error {
	p := paint{a.out.color}
	atRest(v)
	stands := standingOf(v)
	fmt.Fprintf(a.out, "%s %s  run %s  %s  def %s\n", stands.sign(p), p.bold(visible(v.Info.Title)), v.ID, stands.word(), shortCID(v.Definition))
	rows := [][]string{}
	row := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{"  " + p.dim(name), visible(value)})
		}
	}
	row("description", oneLine(v.Info.Description, 100))
	row("reason", v.Reason)
	row("state", stands.why())
	if v.Foreign {
		row("origin", "from elsewhere: no process goes on with it before wf store adopt "+string(v.ID))
	}
	row("started", v.Started+" by "+orWord(v.Info.CreatedBy, "someone"))
	if v.Info.ForkedFrom != nil {
		row("forked from", shortOf(v.Info.ForkedFrom))
	}
	row("time", span(time.Duration(v.ActiveMS)*time.Millisecond))
	row("workspace", v.Info.Workspace)
	if parent := v.Info.Parent; parent != nil {
		row("parent", string(parent.Run)+":"+parent.Step)
	}
	row("tags", strings.Join(v.Info.Tags, ", "))
	row("inputs", string(v.Info.Inputs))
	if err := table(a.out, rows); err != nil {
		return err
	}
	if v.Earlier > 0 {
		fmt.Fprintln(a.out, "  "+p.dim(fmt.Sprintf("%d of %d steps; wf show %s --before %d shows earlier ones", len(v.Steps), v.Total, v.ID, v.Earlier)))
	}
	if err := a.stepTable(v.Steps); err != nil {
		return err
	}
	for _, w := range v.Waiting {
		if err := a.showQuestion(w); err != nil {
			return err
		}
	}
	if v.Result != nil && !noOutputs(v.Outputs) {
		fmt.Fprintln(a.out, "  "+p.dim("outputs"))
		if err := a.showFields("  ", v.Outputs); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(a.out, "  %s %s  seq %d\n  %s %s\n", p.dim("head"), v.Head, v.Seq, p.dim("next"), next(v))
	return err
}

func (p paint) step(status string) string {
	switch status {
	case string(protocol.StepOK):
		return p.green("✓")
	case string(protocol.StepFailed):
		return p.red("✗")
	case string(protocol.StepSkipped):
		return p.dim("–")
	case "waiting":
		return p.yellow("⏸")
	case "parked", "retrying", string(api.Interrupted):
		return p.yellow("!")
	}
	return p.cyan("●")
}

func (a *app) showStep(s *api.Step) error {
	p := paint{a.out.color}
	fmt.Fprintf(a.out, "%s %s  visit %d  %s  %s\n", p.step(s.Status), p.bold(s.ID), s.Visit, result(s), shortOf(s.CID))
	if s.EdgePrompt != "" {
		fmt.Fprintf(a.out, "  %s %s\n", p.dim("edge prompt"), indentLines(s.EdgePrompt, "    "))
	}
	for _, parent := range s.Parents {
		fmt.Fprintf(a.out, "  %s %s\n", p.dim("after"), shortCID(parent))
	}
	if s.Resumes != nil {
		fmt.Fprintf(a.out, "  %s %s\n", p.dim("resumes"), shortOf(s.Resumes))
	}
	if s.Child != "" {
		fmt.Fprintf(a.out, "  %s %s\n", p.dim("sub-workflow"), "run "+s.Child)
	}
	for _, c := range s.Compactions {
		a.showCompaction(c)
	}
	for i, reasons := range s.Corrections {
		fmt.Fprintf(a.out, "  %s %s\n", p.yellow(fmt.Sprintf("correction %d:", i+1)), indentLines(visible(reasons), "    "))
	}
	for _, t := range s.Attempts {
		if t.Error != nil {
			fmt.Fprintf(a.out, "  %s %s\n", p.yellow(fmt.Sprintf("attempt %d failed:", t.Attempt)), visible(why(t.Error)))
		}
	}
	if s.CutOff {
		fmt.Fprintf(a.out, "  %s\n", p.yellow(cutOff))
	}
	if s.Error != nil {
		fmt.Fprintf(a.out, "  %s %s\n", p.red("error:"), visible(why(s.Error)))
	}
	if err := a.showFields("", s.Output); err != nil {
		return err
	}
	if s.Text != "" {
		_, err := fmt.Fprintf(a.out, "\n%s\n", visible(s.Text))
		return err
	}
	return nil
}

// showCompaction tells what was dropped and what was kept.
func (a *app) showCompaction(c api.Compaction) {
	p := paint{a.out.color}
	var what string
	switch {
	case c.Scope == protocol.ScopeVisit:
		what = fmt.Sprintf("dropped its oldest %s with all results, kept what follows", protocol.Plural(c.Replies, "turn"))
	case c.Covers < c.Prior:
		what = fmt.Sprintf("dropped %s, kept %s", visits(1, c.Covers), visits(c.Covers+1, c.Prior))
	default:
		what = fmt.Sprintf("dropped %s, kept none", visits(1, c.Covers))
	}
	by := "written by " + c.Model
	if c.Model == "" {
		by = "an extract" + because(oneLine(c.Error, 160))
	}
	fmt.Fprintf(a.out, "  %s %s; %d → about %d tokens  %s\n", p.dim("compacted"), what, c.TokensBefore, c.TokensAfter, shortOf(c.Record))
	fmt.Fprintf(a.out, "  %s %s\n    %s\n", p.dim("summary"), visible(by), indentLines(c.Summary, "    "))
}

// visits names a range of visits.
func visits(from, to int) string {
	if from == to {
		return fmt.Sprintf("visit %d", from)
	}
	return fmt.Sprintf("visits %d–%d", from, to)
}
