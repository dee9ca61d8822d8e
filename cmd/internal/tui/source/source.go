// Package source gives the screen of package tui the runs of a store or of a server.
package source

import (
	"context"
	"time"

	"wf/api"
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
func (s Source) Runs(ctx context.Context) ([]api.Row, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	l, err := s.Service.List(ctx, api.Query{Limit: listed})
	if err != nil {
		return nil, err
	}
	return l.Items, nil
}

// Run is one run with its steps.
func (s Source) Run(ctx context.Context, id protocol.RunID) (*api.Run, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return s.Service.Run(ctx, id, api.Window{Limit: api.MaxSteps})
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
func (s Source) Answer(ctx context.Context, id protocol.RunID, q api.Waiting, text string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := s.Service.Answer(ctx, id, api.Answer{Step: q.Step, Text: text, Shown: q.Shown})
	return err
}
