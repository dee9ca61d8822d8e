package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"wf/api"
	"wf/cmd/internal/render"
	"wf/engine"
	"wf/protocol"
	"wf/service/proof"
)

func newReplay(a *app) *cobra.Command {
	var w eventWindow
	var follow, check bool
	cmd := &cobra.Command{
		Use:   "replay [RUN]",
		Short: "Read a run's journal again, event by event",
		Long: `Read the journal of a run, every event hashed and joined to the one before. --check decides every edge
and builds every prompt again from the records, and exits 1 where something differs.`,
		Example: `  wf replay -1 -o jsonl | grep '"type":"tool_call"'
  wf replay 7K3Q --from 120 --follow -o jsonl
  wf replay 7K3Q --from 9000 --limit 100
  wf replay -1 --check`,
		Args:    takes(0, 1),
		PreRunE: func(*cobra.Command, []string) error { return w.check(follow, check) },
		RunE: a.ofRun(func(ctx context.Context, p *target, run protocol.RunID) error {
			if check {
				return a.checkReplay(ctx, p, run)
			}
			return a.replay(ctx, p, run, w, follow)
		}),
	}
	flags := cmd.Flags()
	w.flags(flags)
	flags.BoolVarP(&follow, "follow", "f", false, "go on while the run does")
	flags.BoolVar(&check, "check", false, "decide and build everything again, and compare")
	return cmd
}

// eventWindow chooses events of a run: those after from, up to to, at most limit; 0 is no bound.
type eventWindow struct {
	from, to protocol.Seq
	limit    int
}

func (w *eventWindow) flags(f *pflag.FlagSet) {
	f.Int64Var((*int64)(&w.from), "from", 0, "only the events after this seq")
	f.Int64Var((*int64)(&w.to), "to", 0, "only the events up to this seq")
	f.IntVar(&w.limit, "limit", 0, "at most so many events")
}

// check refuses a window that cannot be.
func (w *eventWindow) check(follow, check bool) error {
	bounded := w.to != 0 || w.limit != 0
	switch {
	case w.from < 0:
		return protocol.ErrBadCursor.With("", "--from %d: want the seq of the last event held, 0 for all", w.from)
	case w.to < 0 || w.to > 0 && w.to < w.from:
		return protocol.ErrBadCursor.With("", "--to %d: want the seq of the last event to show, from %d on", w.to, max(1, w.from))
	case w.limit < 0:
		return usagef("--limit %d: want a number of events", w.limit)
	case bounded && follow:
		return usagef("--follow goes on while the run does; leave out --to and --limit")
	case check && (bounded || w.from > 0):
		return usagef("--check builds everything of a run again; leave out --from, --to and --limit")
	}
	return nil
}

// end is the last event of the window, 0 where there is no bound.
func (w *eventWindow) end() protocol.Seq {
	r := protocol.Request{FromSeq: &w.from, ToSeq: w.to, Limit: w.limit}
	return r.End()
}

func (a *app) replay(ctx context.Context, p *target, run protocol.RunID, w eventWindow, follow bool) error {
	if a.Format != "json" {
		return a.logEvents(ctx, p, api.Ref{Run: run}, w, follow, false, nil)
	}
	if follow {
		return usagef("--follow streams; it needs -o jsonl")
	}
	events := []render.EventJSON{}
	err := a.events(ctx, p, api.Ref{Run: run}, w, false, func(u api.Update) error {
		j, err := render.NewEventJSON(u.Entry, u.Data)
		events = append(events, j)
		return err
	})
	if err != nil {
		return err
	}
	return a.Answer(map[string]any{"schema": "wf.replay/v1", "run": run, "items": events})
}

// checkReplay decides every edge and builds every prompt of a run again; one of a server here, from its archive.
func (a *app) checkReplay(ctx context.Context, p *target, run protocol.RunID) error {
	var r *engine.CheckReport
	var err error
	if p.here != nil {
		r, err = proof.Replay(ctx, a.Setup, p.here.Store, run)
	} else {
		r, err = proof.ReplayArchive(ctx, a.Setup, p, run)
	}
	if err != nil {
		return err
	}
	if a.AsJSON() {
		err = a.Answer(struct {
			Schema string         `json:"schema"`
			Run    protocol.RunID `json:"run"`
			OK     bool           `json:"ok"`
			*engine.CheckReport
		}{"wf.check/v1", run, r.OK(), r})
	} else {
		err = a.checkLines(r)
	}
	if err != nil {
		return err
	}
	if !r.OK() {
		return silent{errDifference}
	}
	return nil
}

func (a *app) checkLines(r *engine.CheckReport) error {
	mark := func(t engine.Tally) string {
		if t.Equal == t.Checked {
			return a.Out.Green("✓")
		}
		return a.Out.Red("✗")
	}
	for _, f := range r.Findings {
		fmt.Fprintf(a.Out, "%s %s: %s\n    expected %s\n    actual   %s\n", a.Out.Red("✗"), render.Visible(f.Where), f.Kind, render.Visible(f.Expected), render.Visible(f.Actual))
	}
	events := protocol.Plural(r.Events, "event")
	if r.Children > 0 {
		events += " of " + protocol.Plural(r.Children+1, "run")
	}
	part := func(t engine.Tally, none, format string) string {
		if t.Checked == 0 {
			return a.Out.Dim("– " + none)
		}
		return fmt.Sprintf("%s "+format, mark(t), t.Equal, t.Checked)
	}
	reused := ""
	if r.Results.Checked > 0 {
		reused = "  " + part(r.Results, "", "reused results %d/%d")
	}
	_, err := fmt.Fprintf(a.Out, "%s %s  %s  %s  %s%s\n", a.Out.Green("✓"), events,
		part(r.Prompts, "no prompts to rebuild", "prompts rebuilt %d/%d byte-identical"),
		part(r.Prefixes, "no prefixes to compare", "prefixes %d/%d"),
		part(r.Decisions, "no edges to decide", "edges decided again %d/%d equal"), reused)
	return err
}
