package proof

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"wf/agentkit/prompt"
	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/protocol"
	"wf/service/compose"
	"wf/store"
)

// Replay decides every edge and builds every prompt of a run again.
func Replay(ctx context.Context, u *compose.Setup, s store.Store, run protocol.RunID) (*engine.CheckReport, error) {
	return u.Engine(s, nil).CheckAll(ctx, run, Rebuilt)
}

// ReplayArchive is Replay for a run of a source, in a store that is made of its archive.
func ReplayArchive(ctx context.Context, u *compose.Setup, source api.Archive, run protocol.RunID) (r *engine.CheckReport, err error) {
	dir, err := os.MkdirTemp("", "wf-check-")
	if err != nil {
		return nil, fmt.Errorf("check run %s: %w", run, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := cas.Open(ctx, dir, cas.Options{Seal: u.Seal()})
	if err != nil {
		return nil, err
	}
	err = Archived(ctx, source, run, api.ExportOptions{}, func(archive io.Reader) error {
		_, err := cas.Import(ctx, archive, s, cas.ImportOptions{})
		return err
	})
	if err == nil {
		r, err = Replay(ctx, u, s, run)
	}
	return r, errors.Join(err, s.Close())
}

// Rebuilt renders a request as it was hashed.
func Rebuilt(t protocol.Turn) ([]byte, protocol.Link, error) {
	messages, err := prompt.Rebuild(t)
	if err != nil {
		return nil, protocol.Link{}, err
	}
	return prompt.Bytes(t.History.Tools, messages), prompt.Digest(t.History.Tools, messages), nil
}
