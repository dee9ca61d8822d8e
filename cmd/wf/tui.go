package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/cmd/internal/render"
	"wf/cmd/internal/tui"
	"wf/daemon"
	"wf/engine"
	"wf/hub/client"
	"wf/protocol"
)

func newTUI(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "tui",
		Short: "Look through the runs in the terminal",
		Long: `Look through the runs in the terminal: the list, the chain of steps with their visits, and of each the output,
messages, events, the difference to the visit before, cost and proof. What moves is followed; ? lists the keys.`,
		Example: `  wf tui
  wf tui --hub http://127.0.0.1:8766`,
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.wantsTerminal("tui", "wf ls and wf show"); err != nil {
				return err
			}
			ctx := cmd.Context()
			if url := a.hubURL(); url != "" {
				return a.atServer(url, func(p *target) error { return a.tui(ctx, p.server) })
			}
			s, err := a.OpenStore(ctx)
			if err != nil {
				return err
			}
			return errors.Join(daemon.Private(a.Setup, s, "", func(_ *daemon.Daemon, api *client.API) error { return a.tui(ctx, api) }), s.Close())
		},
	}
}

// wantsTerminal refuses a command that draws on a screen where there is none.
func (a *app) wantsTerminal(name, instead string) error {
	if a.interactive() && a.Out.TTY {
		return nil
	}
	return usagef("wf %s needs a terminal; %s do the same without one", name, instead)
}

func (a *app) tui(ctx context.Context, api *client.API) error {
	defer func(quiet bool) { a.Quiet = quiet }(a.Quiet)
	a.Quiet = true // a word on stderr would tear the screen
	return onScreen(ctx, tui.New(ctx, tuiSource{api}))
}

// tuiSource reads runs over the API of a daemon.
type tuiSource struct{ api *client.API }

// tuiList is how many runs are listed.
const tuiList = 300

// Runs lists the newest runs.
func (s tuiSource) Runs(ctx context.Context) ([]tui.Run, error) {
	ctx, cancel := context.WithTimeout(ctx, chatTimeout)
	defer cancel()
	l, err := s.api.Runs(ctx, client.Query{Limit: tuiList})
	if err != nil {
		return nil, err
	}
	out := make([]tui.Run, len(l.Items))
	for i, raw := range l.Items {
		var r api.Row
		if err := json.Unmarshal(raw, &r); err != nil {
			return nil, fmt.Errorf("a run of the list: %w", err)
		}
		out[i] = tui.Run{ID: r.ID, Workflow: r.Workflow, Title: r.Title, Status: render.RowState(r).Word(), Steps: r.Steps, Updated: r.Updated}
	}
	return out, nil
}

// tuiView is what the screen needs of wf.run/v1.
type tuiView struct {
	chatView
	ID     protocol.RunID `json:"id"`
	Reason string         `json:"reason"`
	api.Driving
	Steps []tuiStep `json:"steps"`
	Total int       `json:"steps_total"`

	Waiting []struct {
		Step     string            `json:"step"`
		Question string            `json:"question"`
		Choices  []protocol.Choice `json:"choices"`
		Shown    string            `json:"shown"`
	} `json:"waiting"`
}

type tuiStep struct {
	ID       string              `json:"id"`
	Status   string              `json:"status"`
	CID      *string             `json:"cid"`
	Resumes  *string             `json:"resumes"`
	Prompt   string              `json:"edge_prompt"`
	Text     string              `json:"text"`
	Output   json.RawMessage     `json:"output"`
	Error    *protocol.ErrorInfo `json:"error"`
	MS       int64               `json:"ms"`
	Calls    int                 `json:"tool_calls"`
	Attempts []struct {
		Error *protocol.ErrorInfo `json:"error"`
	} `json:"attempts"`
}

func (s tuiSource) view(ctx context.Context, id protocol.RunID) (v tuiView, err error) {
	ctx, cancel := context.WithTimeout(ctx, chatTimeout)
	defer cancel()
	raw, err := s.api.Run(ctx, id)
	if err == nil {
		err = json.Unmarshal(raw, &v)
	}
	return v, err
}

// Run is one run with its steps.
func (s tuiSource) Run(ctx context.Context, id protocol.RunID) (tui.View, error) {
	v, err := s.view(ctx, id)
	if err != nil {
		return tui.View{}, err
	}
	out := tui.View{Run: tui.Run{ID: id, Workflow: v.Workflow, Title: v.Info.Title, Status: render.State{Status: v.Status, Idle: v.Idle}.Word(), Steps: max(v.Total, len(v.Steps))}, Reason: v.Reason}
	for _, x := range v.Steps {
		step := tui.Step{ID: x.ID, Status: x.Status, Resumes: x.Resumes != nil, Prompt: x.Prompt}
		if x.CID != nil {
			step.CID = *x.CID
		}
		out.Steps = append(out.Steps, step)
	}
	for _, w := range v.Waiting {
		out.Waiting = append(out.Waiting, tui.Question{Step: w.Step, Text: w.Question, Choices: w.Choices, Shown: w.Shown})
	}
	return out, nil
}

// Page is the text of a page.
func (s tuiSource) Page(ctx context.Context, id protocol.RunID, step string, p tui.Page) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, chatTimeout)
	defer cancel()
	switch p {
	case tui.Output:
		return s.output(ctx, id, step)
	case tui.Messages:
		return s.messages(ctx, id, step)
	case tui.Events:
		return s.events(ctx, id, step)
	case tui.Diff:
		return s.diff(ctx, id, step)
	case tui.Cost:
		return costText(ctx, s.api, id, "step")
	default:
		return s.verified(ctx, id)
	}
}

func (s tuiSource) output(ctx context.Context, id protocol.RunID, step string) (string, error) {
	v, err := s.view(ctx, id)
	if err != nil {
		return "", err
	}
	for _, x := range v.Steps {
		if x.ID != step {
			continue
		}
		var b strings.Builder
		fmt.Fprintf(&b, "%s  %s  %d ms  %s\n", x.ID, x.Status, x.MS, protocol.Plural(x.Calls, "tool call"))
		for i, at := range x.Attempts {
			if at.Error != nil {
				fmt.Fprintf(&b, "attempt %d: %s\n", i+1, at.Error.Message)
			}
		}
		if x.Error != nil {
			fmt.Fprintf(&b, "error: %s\n", x.Error.Message)
		}
		if x.Prompt != "" {
			fmt.Fprintf(&b, "\n── handed over\n%s\n", x.Prompt)
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
	return "", nil
}

func (s tuiSource) messages(ctx context.Context, id protocol.RunID, step string) (string, error) {
	raw, err := s.api.About(ctx, id, "steps", step, "messages")
	if err != nil {
		return "", err
	}
	var m struct {
		Digest   string `json:"digest"`
		Shared   int    `json:"shared_prefix"`
		Messages []struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "digest %s\n", m.Digest)
	for i, x := range m.Messages {
		shared := ""
		if i < m.Shared {
			shared = "  (as before, from the cache)"
		}
		fmt.Fprintf(&b, "\n── %s%s\n%s\n", x.Role, shared, x.Content)
	}
	return b.String(), nil
}

// tuiEvents is how many events back the page of events begins.
const tuiEvents = 2000

func (s tuiSource) events(ctx context.Context, id protocol.RunID, step string) (string, error) {
	tip, err := tipOf(ctx, s.api, id)
	if err != nil {
		return "", err
	}
	blocks := &client.Blocks{API: s.api}
	read := func(l protocol.Link) ([]byte, error) { return blocks.Block(ctx, l) }
	r := s.api.Replay(id)
	r.Codec, r.Cursor.Seq, r.Patience = protocol.CBORFrames, max(0, tip-tuiEvents), -1
	var b strings.Builder
	err = r.Follow(ctx, client.Consumer{Event: func(e client.Event) error {
		if step != "" && e.StepName() != step && e.StepName() != "" {
			return nil
		}
		n, err := engine.ReadUpdate(read, id, e.Entry)
		if err != nil {
			return fmt.Errorf("event %d: %w", e.Seq, err)
		}
		fmt.Fprintf(&b, "%5d  %s  %-18s %s\n", e.Seq, e.Time().Format("15:04:05.000"), e.Type, render.Event(n.Data))
		return nil
	}})
	return b.String(), err
}

func (s tuiSource) diff(ctx context.Context, id protocol.RunID, step string) (string, error) {
	raw, err := s.api.About(ctx, id, "steps", step, "diff")
	if err != nil {
		return "", err
	}
	var d api.VisitDiff
	if err := json.Unmarshal(raw, &d); err != nil {
		return "", err
	}
	switch {
	case d.Previous == nil:
		return "the first visit: all of it is new\n\n" + d.Unified, nil
	case d.Equal:
		return "the same as " + *d.Previous, nil
	}
	return strings.Join(d.Changed, "\n") + "\n\n" + d.Unified, nil
}

func (s tuiSource) verified(ctx context.Context, id protocol.RunID) (string, error) {
	raw, err := s.api.About(ctx, id, "verify")
	if err != nil {
		return "", err
	}
	var v struct {
		OK       bool `json:"ok"`
		Checked  map[string]int64
		Findings []struct{ Kind, Where, Expected, Actual, Fix string }
		Missing  []string `json:"not_proven"`
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return "", err
	}
	var b strings.Builder
	if v.OK {
		fmt.Fprintf(&b, "✓ every byte was read again and hashes to its name: %d events, %d records, %d blocks\n", v.Checked["events"], v.Checked["records"], v.Checked["blocks"])
	}
	for _, f := range v.Findings {
		fmt.Fprintf(&b, "✗ %s: %s\n    expected %s\n    actual   %s\n    fix      %s\n", f.Where, f.Kind, f.Expected, f.Actual, f.Fix)
	}
	for _, n := range v.Missing {
		fmt.Fprintf(&b, "not proven: %s\n", n)
	}
	return b.String(), nil
}

// Follow tells of everything that happens to a run.
func (s tuiSource) Follow(ctx context.Context, id protocol.RunID, moved func()) error {
	r := s.api.Replay(id)
	r.Tail, r.Live = true, true
	return r.Follow(ctx, client.Consumer{
		Event: func(client.Event) error {
			moved()
			return nil
		},
		Reset: func(client.Cursor) error {
			moved()
			return nil
		},
	})
}

// Answer answers what a run waits for.
func (s tuiSource) Answer(ctx context.Context, id protocol.RunID, q tui.Question, text string) error {
	ctx, cancel := context.WithTimeout(ctx, chatTimeout)
	defer cancel()
	_, _, err := s.api.Act(ctx, id, "answer", api.Answer{Step: q.Step, Text: text, Shown: q.Shown})
	return err
}
