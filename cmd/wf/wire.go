package main

import (
	"context"
	"wf/cas"
	"wf/protocol"
)

// withRun opens the store and finds a run in it.
func (a *app) withRun(ctx context.Context, arg string, f func(*cas.Store, protocol.RunID) error) error {
	return a.WithStore(ctx, func(s *cas.Store) error {
		run, err := a.resolveRun(ctx, s, arg)
		if err != nil {
			return err
		}
		return f(s, run)
	})
}
