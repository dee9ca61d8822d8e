package cas

import (
	"context"
	"fmt"

	"wf/protocol"
)

// importFiles verifies what keeps the files of a run in an archive, and has the store keep them too: beside those that it
// has of the run, where these are others.
func importFiles(ctx context.Context, v *Verifier, into Keeper, h Head, batch *Batch) error {
	if err := v.run(ctx, h, nil); err != nil {
		return err
	}
	if err := v.report.Err(); err != nil {
		return err
	}
	old, err := into.Head(ctx, h.Name)
	if err != nil || old.Link == h.Link {
		return err
	}
	m := Move{Name: h.Name, Old: old.Link, New: h.Link, Note: "import"}
	if old.Link.Defined() {
		held, err := keeps(ctx, into.Block, old.Link, h.Link)
		if err != nil || held {
			return err
		}
		further, err := keeps(ctx, v.block, h.Link, old.Link)
		if err != nil {
			return err
		}
		if !further {
			newest, err := filesKept(ctx, v.block, h.Link)
			if err != nil {
				return err
			}
			both, err := Encode(protocol.FilesKept{Kind: protocol.KindFilesKept, V: protocol.RecordVersion, Prev: old.Link, Tree: newest.Tree, Also: h.Link})
			if err != nil {
				return err
			}
			m.New, batch.Blocks = both.Link, append(batch.Blocks, both)
		}
	}
	batch.Moves = append(batch.Moves, m)
	return nil
}

// block reads a block of what is verified.
func (v *Verifier) block(ctx context.Context, l protocol.Link) ([]byte, error) {
	if _, ok := nameOf(l); !ok {
		return nil, fmt.Errorf("%s is no block of a store: %w", l, errForeign)
	}
	return v.g.from.Block(ctx, l)
}

func filesKept(ctx context.Context, read func(context.Context, protocol.Link) ([]byte, error), l protocol.Link) (f protocol.FilesKept, err error) {
	data, err := read(ctx, l)
	if err == nil {
		err = Decode(data, &f)
	}
	if err == nil && f.Kind != protocol.KindFilesKept {
		err = fmt.Errorf("%s keeps no files: %w", l, protocol.ErrInvalidBlock)
	}
	return f, err
}

// keeps reports whether what is kept at from holds what is kept at what.
func keeps(ctx context.Context, read func(context.Context, protocol.Link) ([]byte, error), from, what protocol.Link) (bool, error) {
	seen := map[protocol.Link]bool{}
	for todo := []protocol.Link{from}; len(todo) > 0; {
		l := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if l == what {
			return true, nil
		}
		if !l.Defined() || seen[l] {
			continue
		}
		seen[l] = true
		f, err := filesKept(ctx, read, l)
		if err != nil {
			return false, err
		}
		todo = append(todo, f.Also, f.Prev)
	}
	return false, nil
}
