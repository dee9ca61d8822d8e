package main

import (
	"context"

	"wf/api"
	"wf/cas"
	"wf/protocol"
	"wf/service"
)

// resolve finds what a user wrote in a store of this machine.
func (a *app) resolve(ctx context.Context, s *cas.Store, arg string) (api.Ref, error) {
	return service.Resolve(ctx, a.Setup, s, written(arg))
}

// resolveRun is the run that a user wrote.
func (a *app) resolveRun(ctx context.Context, s *cas.Store, arg string) (protocol.RunID, error) {
	r, err := a.resolve(ctx, s, arg)
	if err == nil {
		err = r.MustBeRun(written(arg))
	}
	return r.Run, err
}
