package tui

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"wf/api"
	"wf/cmd/internal/render"
	"wf/protocol"
)

// Reader is a Source of the runs that Service and Follower find, in a store or at a server.
type Reader struct {
	Service  api.Service
	Follower api.Follower
}

const (
	listed  = 300              // runs in the list
	timeout = 30 * time.Second // bounds what is asked of the service
)

// Runs lists the newest runs.
func (s Reader) Runs(ctx context.Context) ([]api.Row, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	l, err := s.Service.List(ctx, api.Query{Limit: listed})
	if err != nil {
		return nil, err
	}
	return l.Items, nil
}

// Run is one run with its steps.
func (s Reader) Run(ctx context.Context, id protocol.RunID) (*api.Run, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return s.Service.Run(ctx, id, api.Window{Limit: api.MaxSteps})
}

// Follow tells of everything that happens to a run from now on.
func (s Reader) Follow(ctx context.Context, id protocol.RunID, moved func()) error {
	tip, err := s.tip(ctx, id)
	if err != nil {
		return err
	}
	return s.Follower.Follow(ctx, id, api.Following{From: tip, Until: api.Never}, func(u api.Update) error {
		if u.Entry != nil || u.Reset != nil {
			moved()
		}
		return nil
	})
}

// tip is the newest event of a run.
func (s Reader) tip(ctx context.Context, id protocol.RunID) (protocol.Seq, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	v, err := s.Service.Run(ctx, id, api.Window{Limit: 1})
	if err != nil {
		return 0, err
	}
	return v.Seq, nil
}

// Answer answers what a run waits for.
func (s Reader) Answer(ctx context.Context, id protocol.RunID, q api.Waiting, text string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := s.Service.Answer(ctx, id, api.Answer{Step: q.Step, Text: text, Shown: q.Shown, Source: "terminal"})
	return err
}

// Page is the text of a page.
func (s Reader) Page(ctx context.Context, id protocol.RunID, step string, p Page) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	of := map[Page]func(context.Context, protocol.RunID, string) (string, error){
		Output: s.output, Messages: s.messages, Events: s.events, Diff: s.diff, Cost: s.cost, Verify: s.verified,
	}
	if step == "" && (p == Output || p == Messages || p == Diff) {
		return "", nil // the run has no step yet
	}
	return of[p](ctx, id, step)
}

func (s Reader) output(ctx context.Context, id protocol.RunID, step string) (string, error) {
	x, err := s.Service.Step(ctx, id, step)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %d ms  %s\n", x.ID, x.Status, x.MS, protocol.Plural(x.ToolCalls, "tool call"))
	for i, at := range x.Attempts {
		if at.Error != nil {
			fmt.Fprintf(&b, "attempt %d: %s\n", i+1, at.Error.Message)
		}
	}
	if x.Error != nil {
		fmt.Fprintf(&b, "error: %s\n", x.Error.Message)
	}
	if x.EdgePrompt != "" {
		fmt.Fprintf(&b, "\n── handed over\n%s\n", x.EdgePrompt)
	}
	if x.Text != "" {
		fmt.Fprintf(&b, "\n── text\n%s\n", x.Text)
	}
	if out := string(x.Output); out != "" && out != "{}" && out != "null" {
		pretty, err := json.MarshalIndent(x.Output, "", "  ")
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "\n── output\n%s\n", pretty)
	}
	return b.String(), nil
}

func (s Reader) messages(ctx context.Context, id protocol.RunID, step string) (string, error) {
	m, err := s.Service.Messages(ctx, id, step)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "digest %s\n", m.Digest)
	for i, x := range m.Messages {
		shared := ""
		if i < m.SharedPrefix {
			shared = "  (as before, from the cache)"
		}
		fmt.Fprintf(&b, "\n── %s%s\n%s\n", x.Role, shared, x.Content)
	}
	return b.String(), nil
}

// recent is how many events back the page of events begins.
const recent = 2000

// events are those of a step, and of none.
func (s Reader) events(ctx context.Context, id protocol.RunID, step string) (string, error) {
	tip, err := s.tip(ctx, id)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = s.Follower.Follow(ctx, id, api.Following{From: max(0, tip-recent)}, func(u api.Update) error {
		if e := u.Entry; e != nil && (step == "" || u.Step == step || u.Step == "") {
			fmt.Fprintf(&b, "%5d  %s  %-18s %s\n", e.Seq, e.Time().Format("15:04:05.000"), e.Type, render.Event(u.Data))
		}
		return nil
	})
	return b.String(), err
}

func (s Reader) diff(ctx context.Context, id protocol.RunID, step string) (string, error) {
	d, err := s.Service.VisitDiff(ctx, id, step)
	switch {
	case err != nil:
		return "", err
	case d.Previous == nil:
		return "the first visit: all of it is new\n\n" + d.Unified, nil
	case d.Equal:
		return "the same as " + *d.Previous, nil
	}
	return strings.Join(d.Changed, "\n") + "\n\n" + d.Unified, nil
}

func (s Reader) cost(ctx context.Context, id protocol.RunID, _ string) (string, error) {
	c, err := s.Service.Cost(ctx, id, "step")
	if err != nil {
		return "", err
	}
	return render.CostText(c, "step"), nil
}

func (s Reader) verified(ctx context.Context, id protocol.RunID, _ string) (string, error) {
	v, err := s.Service.Verify(ctx, id)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if v.OK {
		fmt.Fprintf(&b, "✓ every byte was read again and hashes to its name: %d events, %d records, %d blocks\n", v.Checked.Events, v.Checked.Records, v.Checked.Blocks)
	}
	for _, f := range v.Findings {
		fmt.Fprintf(&b, "✗ %s: %s\n    expected %s\n    actual   %s\n    fix      %s\n", f.Where, f.Kind, f.Expected, f.Actual, f.Fix)
	}
	for _, n := range v.NotProven {
		fmt.Fprintf(&b, "not proven: %s\n", n)
	}
	return b.String(), nil
}
