package client

import (
	"context"
	"fmt"

	"wf/protocol"
)

// Blocks reads blocks of a server, and keeps small ones that were read. Each is hashed. It is not safe for
// concurrent use.
type Blocks struct {
	API  *API
	held map[protocol.Link][]byte
}

var _ protocol.Blocks = (*Blocks)(nil)

// How much is kept.
const (
	mostHeld    = 1000    // blocks
	largestHeld = 1 << 20 // bytes of a block
)

// Block reads a block; one that does not hash to its name is an error wrapping
// protocol.ErrCorrupt.
func (b *Blocks) Block(ctx context.Context, l protocol.Link) ([]byte, error) {
	if data, ok := b.held[l]; ok {
		return data, nil
	}
	data, err := b.API.Block(ctx, l)
	if err != nil {
		return nil, err
	}
	sum, err := l.CID().Prefix().Sum(data)
	if err != nil || !sum.Equals(l.CID()) {
		return nil, fmt.Errorf("the server sent %s for block %s: %w", sum, l, protocol.ErrCorrupt)
	}
	if len(data) <= largestHeld && len(b.held) < mostHeld {
		if b.held == nil {
			b.held = map[protocol.Link][]byte{}
		}
		b.held[l] = data
	}
	return data, nil
}
