package service

import (
	"context"
	"errors"
	"io"
	"slices"

	"wf/api"
	"wf/cas"
	"wf/protocol"
)

// Export writes a run, with the runs of its sub-workflows, as an archive.
func (l *Local) Export(ctx context.Context, run protocol.RunID, o api.ExportOptions, w io.Writer) error {
	children, err := l.Engine.Descendants(ctx, run)
	if err != nil {
		return err
	}
	_, err = cas.Export(ctx, w, l.Store, cas.ExportOptions(o), run, children...)
	return err
}

// Contents tells what Export writes.
func (l *Local) Contents(ctx context.Context, run protocol.RunID, o api.ExportOptions, begin func(protocol.Archive) error, each func([]protocol.Link) error) error {
	children, err := l.Engine.Descendants(ctx, run)
	if err != nil {
		return err
	}
	return cas.Contents(ctx, l.Store, cas.ExportOptions(o), run, children, begin, each)
}

// Parts writes some blocks of a run as an archive of their own.
func (l *Local) Parts(ctx context.Context, run protocol.RunID, blocks []protocol.Link, w io.Writer) error {
	if _, _, err := l.Store.Tip(ctx, run); err != nil {
		return err
	}
	return cas.WriteParts(ctx, w, l.Store, blocks)
}

// Lacking are those of some blocks that the store does not have.
func (l *Local) Lacking(ctx context.Context, blocks []protocol.Link) ([]protocol.Link, error) {
	return l.Store.Lacks(ctx, blocks)
}

// Import reads an archive into the store. A run that is there and goes on to the head of the archive must not be
// driven meanwhile, and came from elsewhere from then on.
func (l *Local) Import(ctx context.Context, archive io.Reader, o api.ImportOptions) (*api.Imported, error) {
	if o.Worker != "" {
		return nil, protocol.ErrUsage.With("name a worker only at a hub", "%s is no worker here: this is the store itself", o.Worker)
	}
	var held []cas.Claim // on runs that go on to the head of the archive
	got, err := cas.Import(ctx, archive, l.Store, cas.ImportOptions{Run: o.Run, Before: func(forwarded []protocol.RunID) error {
		for _, run := range forwarded {
			claim, err := l.Store.Claim(ctx, run)
			if err != nil {
				return err
			}
			held = append(held, claim)
		}
		return l.Pins(l.Store).Disown(ctx, forwarded)
	}})
	for _, claim := range held {
		err = errors.Join(err, claim.Release(context.WithoutCancel(ctx)))
	}
	switch {
	case errors.As(err, new(*cas.CARError)), errors.Is(err, protocol.ErrVerify):
		return nil, api.ArchiveFault(err)
	case err != nil:
		return nil, err
	}
	came := slices.DeleteFunc(slices.Concat(got.Runs, got.Children), func(run protocol.RunID) bool { return slices.Contains(got.Held, run) })
	if err := l.Engine.Arrived(context.WithoutCancel(ctx), came); err != nil {
		l.Warn(err) // they are there
	}
	out := &api.Imported{Schema: "wf.import/v1", Runs: append([]protocol.RunID{}, got.Runs...), Roots: make([]string, len(got.Roots)), Blocks: got.Blocks, Bytes: got.Bytes,
		Children: got.Children, Forwarded: got.Forwarded, Held: got.Held}
	for i, root := range got.Roots {
		out.Roots[i] = root.String()
	}
	return out, nil
}
