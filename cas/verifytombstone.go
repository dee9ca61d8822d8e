package cas

import (
	"context"
	"errors"
	"fmt"

	"wf/protocol"
)

// tombstones are those of the runs that were deleted, each held against its head.
func (v *Verifier) tombstones(ctx context.Context, heads []Head) (map[protocol.RunID]*protocol.Tombstone, error) {
	out := map[protocol.RunID]*protocol.Tombstone{}
	have := map[string]bool{}
	for _, h := range heads {
		have[h.Name] = true
	}
	for _, h := range heads {
		run, ok := protocol.RunDeleted(h.Name)
		if !ok || v.o.Run != "" && run != v.o.Run {
			continue
		}
		t, err := v.tombstone(ctx, h)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			v.find(Finding{Kind: "tombstone", Where: h.Name, Expected: "the tombstone of run " + string(run), Actual: oneLine(err), Fix: restoreFix})
			continue
		case have[protocol.RunHead(run)]:
			v.find(Finding{Kind: "tombstone", Where: h.Name, Expected: "no run " + string(run) + ", which was deleted", Actual: "a head of it", Fix: restoreFix})
		}
		out[run] = t
	}
	return out, nil
}

// tombstone reads the one that a head names.
func (v *Verifier) tombstone(ctx context.Context, h Head) (*protocol.Tombstone, error) {
	data, err := v.block(ctx, h.Link)
	if err != nil {
		return nil, err
	}
	return readTombstone(h.Name, data)
}

// readTombstone decodes the one that a head names.
func readTombstone(head string, data []byte) (*protocol.Tombstone, error) {
	t := new(protocol.Tombstone)
	if err := Decode(data, t); err != nil {
		return nil, err
	}
	_, err := protocol.ParseLink(t.Head)
	switch {
	case t.Kind != protocol.KindTombstone:
		return nil, fmt.Errorf("a block of kind %q", t.Kind)
	case protocol.DeletedHead(t.Run) != head:
		return nil, fmt.Errorf("the tombstone of run %s", t.Run)
	case err != nil || t.Seq < 1:
		return nil, errors.New("a tombstone that names no event")
	}
	return t, nil
}
