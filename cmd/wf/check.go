package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"wf/agentkit/prompt"
	"wf/cas"
	"wf/cmd/internal/render"
	"wf/engine"
	"wf/protocol"
)

// checkReplay decides every edge and builds every prompt of a run again.
func (a *app) checkReplay(ctx context.Context, s *cas.Store, run protocol.RunID) error {
	r, err := a.Engine(s, nil).CheckAll(ctx, run, rebuilt)
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

// checkArchive is checkReplay for a run of a server, in a store that is made of its archive: the word of another
// machine proves nothing.
func (a *app) checkArchive(ctx context.Context, p *target, run protocol.RunID) (err error) {
	dir, err := os.MkdirTemp("", "wf-check-")
	if err != nil {
		return fmt.Errorf("check run %s: %w", run, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := cas.Open(ctx, dir, cas.Options{Seal: a.Seal()})
	if err != nil {
		return err
	}
	err = archived(ctx, p, run, func(r io.Reader) error {
		_, err := cas.Import(ctx, r, s, cas.ImportOptions{})
		return err
	})
	if err == nil {
		err = a.checkReplay(ctx, s, run)
	}
	return errors.Join(err, s.Close())
}

// rebuilt renders a request as it was hashed.
func rebuilt(t protocol.Turn) ([]byte, protocol.Link, error) {
	messages, err := prompt.Rebuild(t)
	if err != nil {
		return nil, protocol.Link{}, err
	}
	return prompt.Bytes(t.History.Tools, messages), prompt.Digest(t.History.Tools, messages), nil
}

func (a *app) checkLines(r *engine.CheckReport) error {
	p := a.Out.Paint()
	mark := func(t engine.Tally) string {
		if t.Equal == t.Checked {
			return p.Green("✓")
		}
		return p.Red("✗")
	}
	for _, f := range r.Findings {
		fmt.Fprintf(a.Out, "%s %s: %s\n    expected %s\n    actual   %s\n", p.Red("✗"), render.Visible(f.Where), f.Kind, render.Visible(f.Expected), render.Visible(f.Actual))
	}
	events := protocol.Plural(r.Events, "event")
	if r.Children > 0 {
		events += " of " + protocol.Plural(r.Children+1, "run")
	}
	part := func(t engine.Tally, none, format string) string {
		if t.Checked == 0 {
			return p.Dim("– " + none)
		}
		return fmt.Sprintf("%s "+format, mark(t), t.Equal, t.Checked)
	}
	_, err := fmt.Fprintf(a.Out, "%s %s  %s  %s  %s\n", p.Green("✓"), events,
		part(r.Prompts, "no prompts to rebuild", "prompts rebuilt %d/%d byte-identical"),
		part(r.Prefixes, "no prefixes to compare", "prefixes %d/%d"),
		part(r.Decisions, "no edges to decide", "edges decided again %d/%d equal"))
	return err
}
