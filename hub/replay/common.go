package replay

import (
	"context"
	"errors"
	"fmt"

	"wf/protocol"
)

// reset finds the newest event that the client's history shares with that of the head, tells the
// client to go back to it, and puts the cursor there. Where that is the cursor itself, only what
// was read behind it has moved, and the client need not know.
func (c *cursor) reset(ctx context.Context) error {
	c.shelf.clear(c.run)
	_, head, err := c.feed.Tip(ctx, c.run)
	if err != nil {
		return err
	}
	seq, link, err := c.common(ctx, head)
	if err != nil {
		return err
	}
	if seq == c.from && link == c.last {
		return nil
	}
	c.from, c.last = seq, link
	return c.sink.Frame(ctx, &protocol.Frame{Type: protocol.FrameReset, Reason: protocol.ResetHeadMoved,
		CommonSeq: seq, CommonCID: link, HeadSeq: head})
}

// common walks back from the cursor over the blocks of the old history, which stay in the store
// until a gc, and compares it with the new one, a window at a time. Where the old blocks are not
// here nothing is known to be shared: that is 0.
func (c *cursor) common(ctx context.Context, head protocol.Seq) (protocol.Seq, protocol.Link, error) {
	seq, link := c.from, c.last
	for seq > 0 {
		low := max(0, seq-batchEvents)
		now, err := c.window(ctx, low, min(seq, head))
		if err != nil {
			return 0, protocol.Link{}, err
		}
		for ; seq > low; seq-- {
			if at := int(seq - low - 1); at < len(now) && now[at] == link {
				return seq, link, nil
			}
			raw, err := c.feed.Block(ctx, link)
			if errors.Is(err, protocol.ErrNotFound) || errors.Is(err, protocol.ErrCorrupt) {
				return 0, protocol.Link{}, nil
			}
			if err != nil {
				return 0, protocol.Link{}, err
			}
			var e protocol.Event
			if protocol.DecodeEvent(raw, &e) != nil || e.Seq != seq {
				return 0, protocol.Link{}, nil // the proof names no event of that seq
			}
			link = e.Prev
		}
	}
	return 0, protocol.Link{}, nil
}

// window is the names of the events low+1…high of the new history.
func (c *cursor) window(ctx context.Context, low, high protocol.Seq) ([]protocol.Link, error) {
	var out []protocol.Link
	if low >= high {
		return nil, nil
	}
	for e, err := range c.feed.After(ctx, c.run, low) {
		switch {
		case putBack(err):
			return out, nil // it moved again; the next pass sees it
		case err != nil:
			return nil, fmt.Errorf("find what the histories share: %w", c.broken(err, low+1))
		}
		out = append(out, e.CID)
		if e.Seq >= high {
			break
		}
	}
	return out, nil
}
