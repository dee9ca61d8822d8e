package cas

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ipfs/go-cid"
	bolt "go.etcd.io/bbolt"

	"wf/protocol"
)

// reach marks everything from the heads and the reflog on, and then what the runs that were deleted reached.
func (c *collector) reach(ctx context.Context) error {
	heads, err := c.s.rawHeads(ctx)
	if err != nil {
		return err
	}
	c.heads = heads
	var stones []protocol.Link
	for name, h := range heads {
		if err := c.from(ctx, h, "head "+name); err != nil {
			return err
		}
		if _, ok := protocol.RunDeleted(name); ok {
			stones = append(stones, h)
		}
	}
	since := c.clock - ReflogKept.Microseconds()
	err = c.s.eachPart(ctx, [][]byte{bucketReflog}, nil, nil, func(part []entry) error {
		for _, it := range part {
			if err := c.lines(ctx, it, since); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := c.reachMemos(ctx); err != nil {
		return err
	}
	for _, l := range stones {
		n, _ := nameOf(l)
		for _, was := range c.marks.stones[n.sum] {
			if was, ok := nameOf(was); ok {
				c.bury(was)
			}
		}
	}
	return nil
}

// lines marks what the moves of a head in a chunk of the reflog lead to, as far as it is still there: what is not was
// collected when it was older than the reflog kept.
func (c *collector) lines(ctx context.Context, chunk entry, since int64) error {
	moves, err := movesIn(chunk, since)
	for _, n := range moves {
		if err == nil && c.has(ctx, n) {
			name, _, _ := strings.Cut(string(chunk.key), "\x00")
			err = c.from(ctx, n.link(), "reflog of "+name)
		}
	}
	return err
}

// movesIn is what a head moved to since then, by a chunk of its reflog.
func movesIn(chunk entry, since int64) (out []blockName, err error) {
	var x rawLine
	for rd := (reader{b: chunk.value}); len(rd.b) > 0; {
		x = rd.rawLine(x)
		line, err := x.line()
		if rd.bad || err != nil {
			name, _, _ := strings.Cut(string(chunk.key), "\x00")
			return nil, fmt.Errorf("the reflog of %s is damaged; wf verify tells more: %w", name, protocol.ErrCorrupt)
		}
		if n, ok := nameOf(line.New); ok && line.TS >= since {
			out = append(out, n)
		}
	}
	return out, nil
}

// rawHeads are the heads by name.
func (s *Store) rawHeads(ctx context.Context) (map[string]protocol.Link, error) {
	var all []entry
	err := s.view(ctx, func(tx *bolt.Tx) error {
		all = nil
		return tx.Bucket(bucketRefs).ForEach(func(k, v []byte) error {
			all = append(all, entry{bytes.Clone(k), bytes.Clone(v)})
			return nil
		})
	})
	out := make(map[string]protocol.Link, len(all))
	for _, it := range all {
		h, damage := parseHead(string(it.key), it.value)
		if damage != nil {
			return nil, damage
		}
		out[h.Name] = h.Link
	}
	return out, err
}

// has reports whether a block is stored.
func (c *collector) has(ctx context.Context, n blockName) bool {
	return c.ensure(ctx, c.s, n) == nil
}

// blockSource gives blocks: a store, or one transaction of it.
type blockSource interface {
	Block(context.Context, protocol.Link) ([]byte, error)
}

// ensure takes a block into the graph that was stored after its pack was passed.
func (c *collector) ensure(ctx context.Context, from blockSource, n blockName) error {
	if id, ok := c.marks.ids[n.sum]; ok && c.marks.blocks[id].state&gcStored != 0 {
		return nil
	}
	data, err := from.Block(ctx, n.link())
	if err != nil {
		return err
	}
	b := lookAt(&unpacked{n.codec, n.sum, data})
	c.marks.add(&b)
	return nil
}

// from marks what a block leads to.
func (c *collector) from(ctx context.Context, root protocol.Link, what string) error {
	return c.follow(ctx, c.s, root, what)
}

func (c *collector) follow(ctx context.Context, source blockSource, root protocol.Link, what string) error {
	n, ok := nameOf(root)
	if !ok {
		return noBlockOfStore(what, root)
	}
	missing := func(sum [32]byte, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("%s reaches block %s, which is missing or damaged; nothing was removed, wf verify tells more: %w: %w", what, linkOf(0x71, sum[:]), protocol.ErrCorrupt, err)
	}
	if err := c.ensure(ctx, source, n); err != nil {
		return missing(n.sum, err)
	}
	for todo := []uint32{c.marks.ids[n.sum]}; len(todo) > 0; {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		b := &c.marks.blocks[id]
		if b.state&gcLive != 0 {
			continue
		}
		if b.state&gcStored == 0 {
			if err := c.ensureAny(ctx, source, c.marks.sums[id]); err != nil {
				return missing(c.marks.sums[id], err)
			}
			b = &c.marks.blocks[id]
		}
		if b.state&gcOdd != 0 {
			return missing(c.marks.sums[id], errors.New("it is not strict DAG-CBOR"))
		}
		b.state |= gcLive
		c.fresh = append(c.fresh, id)
		todo = append(todo, b.links...)
		if len(todo)%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

func noBlockOfStore(what string, l protocol.Link) error {
	return fmt.Errorf("%s: %s is no block of this store: %w", what, l, protocol.ErrCorrupt)
}

// ensureAny is ensure for a block of which only the digest is known.
func (c *collector) ensureAny(ctx context.Context, source blockSource, sum [32]byte) error {
	err := c.ensure(ctx, source, blockName{0x71, sum})
	if errors.Is(err, protocol.ErrNotFound) {
		err = c.ensure(ctx, source, blockName{cid.Raw, sum})
	}
	return err
}

// bury marks what the newest event of a deleted run leads to and nothing else reaches.
func (c *collector) bury(n blockName) {
	id, ok := c.marks.ids[n.sum]
	if !ok {
		return // collected before
	}
	for todo := []uint32{id}; len(todo) > 0; {
		b := &c.marks.blocks[todo[len(todo)-1]]
		todo = todo[:len(todo)-1]
		if b.state&(gcLive|gcBuried) == 0 && b.state&gcStored != 0 {
			b.state |= gcBuried
			todo = append(todo, b.links...)
		}
	}
}
