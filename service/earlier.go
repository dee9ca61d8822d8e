package service

import (
	"context"
	"errors"
	"path/filepath"

	"wf/cas"
	"wf/protocol"
	"wf/service/compose"
	"wf/service/query"
	"wf/store"
)

// Earlier counts the runs of the project in dir that were made before it had the store of its own that is used:
// those in the store of the user, at in. What cannot be read counts nothing.
func Earlier(ctx context.Context, u *compose.Setup, dir, used string) (n int, in string) {
	abs, err := filepath.Abs(dir)
	in, userErr := compose.UserDir("XDG_DATA_HOME", ".local/share")
	if errors.Join(err, userErr) != nil || used == in || !compose.HoldsStore(in) {
		return 0, in
	}
	s, err := cas.Open(ctx, in, cas.Options{MustExist: true, ReadOnly: true, Seal: u.Seal()})
	if err != nil {
		return 0, in
	}
	n, err = startedIn(ctx, s, compose.ProjectOf(abs))
	if errors.Join(err, s.Close()) != nil {
		return 0, in
	}
	return n, in
}

// startedIn counts the runs of a project in a store.
func startedIn(ctx context.Context, s store.Store, project string) (n int, err error) {
	heads, err := s.Newest(ctx)
	for _, h := range heads {
		if started, err := query.Started(ctx, s, protocol.RunOf(h.Name)); err == nil && started.Parent == nil && compose.ProjectOf(started.StartedIn()) == project {
			n++
		}
	}
	return n, err
}
