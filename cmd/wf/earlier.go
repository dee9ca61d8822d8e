package main

import (
	"context"
	"errors"
	"path/filepath"
	"wf/cas"
	"wf/protocol"
	"wf/service/compose"
	"wf/service/query"
)

// tellEarlier says where the runs of the project in dir are that were made before it had the
// store of its own that is in use: in that of the user. One that cannot be read is not told of.
func (a *app) tellEarlier(ctx context.Context, dir, used string) {
	abs, err := filepath.Abs(dir)
	users, userErr := compose.UserDir("XDG_DATA_HOME", ".local/share")
	if errors.Join(err, userErr) != nil || used == users || !compose.HoldsStore(users) {
		return
	}
	s, err := cas.Open(ctx, users, cas.Options{MustExist: true, ReadOnly: true, Seal: a.Seal()})
	if err != nil {
		return
	}
	n, err := startedIn(ctx, s, compose.ProjectOf(abs))
	if err = errors.Join(err, s.Close()); err == nil && n > 0 {
		a.Progress("%s of this project from before it had a store of its own: wf ls --store %s", protocol.Plural(n, "run"), users)
	}
}

// startedIn counts the runs of a project in a store.
func startedIn(ctx context.Context, s *cas.Store, project string) (n int, err error) {
	heads, err := query.Newest(ctx, s)
	for _, h := range heads {
		if started, err := query.Started(ctx, s, protocol.RunOf(h.Name)); err == nil && started.Parent == nil && compose.ProjectOf(started.StartedIn()) == project {
			n++
		}
	}
	return n, err
}
