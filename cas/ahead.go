package cas

import (
	"context"

	"wf/protocol"
)

// Together is a store that reads many blocks at once faster than one after another.
type Together interface {
	// Blocks gives those of the blocks that are there and undamaged: of long ones, and of a long list, as many as are worth one
	// answer (some MB). What it leaves out is read with Block, which says why.
	Blocks(ctx context.Context, links []protocol.Link) ([]Block, error)
}

// EventAt is the place of an event.
type EventAt struct {
	Run protocol.RunID
	Seq protocol.Seq
}

// Scattered is a store that reads single events of many journals at once faster than one after another.
type Scattered interface {
	// EventsAt gives the events at places, in their order. One that is not there, is damaged, or lies in the journal of what a run was forked
	// from may be left out, as the zero Entry: After gives it, or says why it does not.
	EventsAt(ctx context.Context, at []EventAt) ([]protocol.Entry, error)
}

// Bounds of what is read ahead: blocks that are asked for at once, and bytes that are kept.
const (
	aheadBlocks = 256
	aheadBytes  = 16 << 20
)

// ahead reads blocks, and those that are about to be asked for with them where the store reads many together.
type ahead struct {
	protocol.Blocks
	many Together // nil: one after another
	have map[protocol.Link][]byte
	size int
}

func readingAhead(b protocol.Blocks) *ahead {
	many, _ := b.(Together)
	return &ahead{Blocks: b, many: many}
}

// Block gives a block, once where it was read ahead.
func (a *ahead) Block(ctx context.Context, l protocol.Link) ([]byte, error) {
	if data, ok := a.have[l]; ok {
		delete(a.have, l)
		a.size -= len(data)
		return data, nil
	}
	return a.Blocks.Block(ctx, l)
}

// want reads blocks ahead, aheadBlocks at most; what is there already is not read again.
func (a *ahead) want(ctx context.Context, links []protocol.Link) error {
	if a.many == nil || len(links) == 0 {
		return nil
	}
	if a.have == nil || a.size > aheadBytes { // what was read and not asked for
		a.have, a.size = map[protocol.Link][]byte{}, 0
	}
	got, err := a.many.Blocks(ctx, links)
	for _, b := range got {
		if a.have[b.Link] == nil {
			a.have[b.Link] = b.Data
			a.size += len(b.Data)
		}
	}
	return err
}
