package cas

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"wf/protocol"
)

// begin starts with the next journal: what is met of it, and was not met before, is to be sent.
func (c *copier) begin() {
	if c.v == nil || len(c.v.g.nodes) > nodesKept {
		c.v = NewVerifier(VerifyOptions{}, c.evidence)
		c.v.g.ordered = true
	}
	c.v.g.order = nil
}

// journal verifies the journal under a head, and gives the batch that brings it to the destination, where ours is, and its events.
func (c *copier) journal(ctx context.Context, head, ours Head, base protocol.RunID, shared protocol.Seq) (batch Batch, chain []chainEvent, err error) {
	noted, err := c.evidence.Moves(ctx, Head{Name: head.Name})
	if err != nil {
		return batch, nil, err
	}
	c.v.hints = noted
	if err = c.sound(ctx, head); err != nil {
		return batch, nil, err
	}
	chain, _, err = c.v.chain(ctx, head, nil)
	if err != nil {
		return batch, nil, err
	}
	m := Move{Name: head.Name, Old: ours.Link, New: head.Link, TS: head.TS, Note: "copy"}
	after := ours.Seq
	if !ours.Link.Defined() && base != "" && 0 < shared && shared < head.Seq {
		there, err := c.there(ctx, protocol.RunHead(base), true)
		if err != nil {
			return batch, nil, err
		}
		same, err := holds(ctx, c.to, there, Head{Link: chain[shared-1].name.link(), Seq: shared})
		if err != nil {
			return batch, nil, err
		}
		if same {
			m.Base, after = base, shared
		}
	}
	m.Events = refsOf(chain[after:]) // the chain is whole: it was found sound
	if strings.HasPrefix(head.Name, protocol.RunHead("")) && !ours.Link.Defined() {
		if batch.Derived, err = kinOf(chain).begins(ctx, c.to, &m, chain); err != nil {
			return batch, nil, err
		}
	}
	batch.Moves = []Move{m}
	return batch, chain, nil
}

// sound verifies a journal of the source.
func (c *copier) sound(ctx context.Context, head Head) error {
	err := c.v.run(ctx, head, nil)
	if err == nil {
		err = c.v.ended(ctx)
	}
	if err == nil {
		err = c.v.report.Err()
	}
	return err
}

// files adds what keeps the files of a run, where the destination does not keep them.
func (c *copier) files(ctx context.Context, kept Head, batch *Batch, again bool) error {
	if !kept.Link.Defined() {
		return nil
	}
	ours, err := c.there(ctx, kept.Name, again)
	if err != nil || ours.Link == kept.Link {
		return err
	}
	if ours.Link.Defined() {
		if held, err := keeps(ctx, c.to.Block, ours.Link, kept.Link); err != nil || held {
			return err
		}
	}
	c.v.hints = nil
	n := len(batch.Moves)
	if err := importFiles(ctx, c.v, c.to, kept, batch); err != nil {
		return fmt.Errorf("its files: %w", err)
	}
	for i := n; i < len(batch.Moves); i++ {
		batch.Moves[i].Note = "copy"
	}
	return nil
}

// store sends the blocks that the destination lacks, and last, with the rest of them, the batch.
func (c *copier) store(ctx context.Context, batch Batch) error {
	if len(batch.Moves) == 0 {
		return nil
	}
	from := readingAhead(c.evidence)
	size := 0
	var blocks []Block
	commit := func(b Batch) error {
		c.pause() // a commit may take its time
		if err := c.to.Commit(ctx, b); err != nil {
			return err
		}
		c.out.Blocks += int64(len(blocks))
		c.out.Bytes += int64(size)
		blocks, size = nil, 0
		c.progress()
		return nil
	}
	for names := range slices.Chunk(c.v.g.order, aheadBlocks) {
		links := make([]protocol.Link, len(names))
		for i, n := range names {
			links[i] = n.link()
		}
		c.pause()
		lacking, err := c.to.Lacks(ctx, links)
		if err != nil {
			return err
		}
		for i, l := range lacking {
			if from.have[l] == nil {
				if err := from.want(ctx, lacking[i:]); err != nil {
					return err
				}
			}
			data, err := from.Block(ctx, l)
			if err != nil {
				return fmt.Errorf("block %s: %w", l, lost(err))
			}
			blocks = append(blocks, Block{l, data})
			if size += len(data); size >= importBatch {
				if err := commit(Batch{Blocks: blocks}); err != nil {
					return err
				}
			}
		}
	}
	batch.Blocks = append(blocks, batch.Blocks...)
	return commit(batch)
}
