package main

import (
	"context"
	"fmt"

	"wf/cmd/internal/render"
	"wf/engine"
	"wf/protocol"
	"wf/service/proof"
)

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
	_, err := fmt.Fprintf(a.Out, "%s %s  %s  %s  %s\n", a.Out.Green("✓"), events,
		part(r.Prompts, "no prompts to rebuild", "prompts rebuilt %d/%d byte-identical"),
		part(r.Prefixes, "no prefixes to compare", "prefixes %d/%d"),
		part(r.Decisions, "no edges to decide", "edges decided again %d/%d equal"))
	return err
}
