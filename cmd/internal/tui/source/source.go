// Package source gives the screen of package tui the runs of a store or of a server.
package source

import (
	"context"
	"time"

	"wf/api"
	"wf/cmd/internal/render"
	"wf/cmd/internal/tui"
	"wf/protocol"
)

// Source reads runs where Service and Follower find them.
type Source struct {
	Service  api.Service
	Follower api.Follower
}

var _ tui.Source = Source{}

const (
	listed  = 300              // runs in the list
	timeout = 30 * time.Second // bounds what is asked of the service
)

// Runs lists the newest runs.
func (s Source) Runs(ctx context.Context) ([]tui.Run, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	l, err := s.Service.List(ctx, api.Query{Limit: listed})
	if err != nil {
		return nil, err
	}
	out := make([]tui.Run, len(l.Items))
	for i, r := range l.Items {
		out[i] = tui.Run{ID: r.ID, Workflow: r.Workflow, Title: r.Title, Status: render.RowState(r).Word(), Steps: r.Steps, Updated: r.Updated}
	}
	return out, nil
}

// Run is one run with its steps.
func (s Source) Run(ctx context.Context, id protocol.RunID) (tui.View, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	v, err := s.Service.Run(ctx, id, api.Window{Limit: api.MaxSteps})
	if err != nil {
		return tui.View{}, err
	}
	out := tui.View{Run: tui.Run{ID: id, Workflow: v.Workflow, Title: v.Info.Title, Status: render.StateOf(v).Word(), Steps: v.Count()}, Reason: v.Reason}
	for _, x := range v.Steps {
		step := tui.Step{ID: x.ID, Status: x.Status, Resumes: x.Resumes != nil, Prompt: x.EdgePrompt}
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

// Follow tells of everything that happens to a run from now on.
func (s Source) Follow(ctx context.Context, id protocol.RunID, moved func()) error {
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
func (s Source) tip(ctx context.Context, id protocol.RunID) (protocol.Seq, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	v, err := s.Service.Run(ctx, id, api.Window{Limit: 1})
	if err != nil {
		return 0, err
	}
	return v.Seq, nil
}

// Answer answers what a run waits for.
func (s Source) Answer(ctx context.Context, id protocol.RunID, q tui.Question, text string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := s.Service.Answer(ctx, id, api.Answer{Step: q.Step, Text: text, Shown: q.Shown})
	return err
}
