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
	listed  = 300              // runs that are read at a time
	timeout = 30 * time.Second // bounds what is asked of the service
)

// Runs lists runs.
func (s Reader) Runs(ctx context.Context, text, before string) (*api.Page, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return s.Service.List(ctx, api.Query{Limit: listed, Text: text, Before: before})
}

// Run is one run with some of its steps.
func (s Reader) Run(ctx context.Context, id protocol.RunID, w api.Window) (*api.Run, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return s.Service.Run(ctx, id, w)
}

// Follow tells of everything that happens to a run after an event.
func (s Reader) Follow(ctx context.Context, id protocol.RunID, from protocol.Seq, moved func()) error {
	return s.Follower.Follow(ctx, id, api.Following{From: from, Until: api.Never}, func(u api.Update) error {
		if u.Entry != nil || u.Reset != nil {
			moved()
		}
		return nil
	})
}

// Items is how many items a fan-out has.
func (s Reader) Items(ctx context.Context, id protocol.RunID, began protocol.Seq) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	u, err := api.EventOf(ctx, s.Follower, id, began)
	d, _ := u.Data.(protocol.StepStarted) // no other event begins an item
	return d.Of, err
}

// Answer answers what a run waits for.
func (s Reader) Answer(ctx context.Context, id protocol.RunID, a api.Answer) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := s.Service.Answer(ctx, id, a)
	return err
}

// Resume goes on with a run.
func (s Reader) Resume(ctx context.Context, id protocol.RunID) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return s.Service.Resume(ctx, id, api.Resume{})
}

// Cancel ends a run.
func (s Reader) Cancel(ctx context.Context, id protocol.RunID) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return s.Service.Cancel(ctx, id, "")
}

// Fork makes a new run of an old one.
func (s Reader) Fork(ctx context.Context, id protocol.RunID, step string, hold bool) (api.Accepted, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return s.Service.Fork(ctx, id, api.Fork{Step: step, Hold: hold})
}

// Delete deletes a run, or tells what would be.
func (s Reader) Delete(ctx context.Context, id protocol.RunID, dry bool) (*api.Deleted, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return s.Service.Delete(ctx, id, api.Delete{DryRun: dry})
}

// Page is the text of a page.
func (s Reader) Page(ctx context.Context, id protocol.RunID, step Step, p Page) (Text, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if step.ID == "" && (p == Output || p == Messages || p == Diff) {
		return Text{}, nil // the run has no step yet
	}
	switch {
	case p == Events:
		return s.events(ctx, id, step)
	case p == Output && step.Shown != nil: // nothing has to be read for it
		text, err := outputOf(step.Shown)
		return Text{Text: text}, err
	}
	of := map[Page]func(context.Context, protocol.RunID, string) (string, error){
		Output: s.output, Messages: s.messages, Diff: s.diff, Cost: s.cost, Verify: s.verified,
	}
	text, err := of[p](ctx, id, step.ID)
	return Text{Text: text}, err
}

func (s Reader) output(ctx context.Context, id protocol.RunID, step string) (string, error) {
	x, err := s.Service.Step(ctx, id, step)
	if err != nil {
		return "", err
	}
	return outputOf(x.Step)
}

// outputOf is how a step went, and what it concluded.
func outputOf(x *api.Step) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %s", x.ID, x.Status, render.Span(time.Duration(x.MS)*time.Millisecond))
	if x.ToolCalls > 0 {
		fmt.Fprintf(&b, "  %s", protocol.Plural(x.ToolCalls, "tool call"))
	}
	b.WriteByte('\n')
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
	if m.Command != nil {
		fmt.Fprintf(&b, "%s %s\n", step, render.IsCommand)
		for _, x := range render.Given(m.Command) {
			fmt.Fprintf(&b, "\n── %s\n%s\n", x[0], x[1])
		}
		return b.String(), nil
	}
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

// recent is how many events a part of the page of events is made from.
const recent = 2000

// events are those of a step, and of none.
func (s Reader) events(ctx context.Context, id protocol.RunID, step Step) (Text, error) {
	first, last := max(0, step.Began-1), step.Ended
	if last == 0 || step.ID == "" {
		last = step.Newest
	}
	if step.Before > 0 {
		last = min(last, step.Before-1)
	}
	from := max(first, last-recent)
	var b strings.Builder
	err := s.Follower.Follow(ctx, id, api.Following{From: from, To: last}, func(u api.Update) error {
		if e := u.Entry; e != nil && (step.ID == "" || u.Step == step.ID || u.Step == "") {
			fmt.Fprintf(&b, "%5d  %s  %-18s %s\n", e.Seq, e.Time().Format("15:04:05.000"), e.Type, render.Event(u.Data))
		}
		return nil
	})
	x := Text{Text: b.String()}
	if from > first {
		x.Earlier = from + 1
		x.Text = fmt.Sprintf("events %d–%d of %d; < shows earlier ones\n", from+1, last, last) + x.Text
	}
	return x, err
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
