package replay

import (
	"container/list"
	"context"
	"sync"

	"wf/protocol"
)

// shelfBytes bounds what is kept of the batches that were read.
const shelfBytes = 16 << 20

// A shelf keeps batches that were read from the store for other cursors of the same run, so that
// a crowd reads a journal about once. A batch is good for a cursor at the same event while the
// head is the one under which it was read: then it is a piece of the present history.
type shelf struct {
	mu    sync.Mutex
	by    map[spot]*list.Element
	order list.List // of shelved, the newest first
	bytes int
	runs  map[protocol.RunID]*crowd
}

// crowd is the cursors of a run; the one that reads for all of them holds turn.
type crowd struct {
	n    int
	turn sync.Mutex
}

// spot is a place in a journal.
type spot struct {
	run  protocol.RunID
	seq  protocol.Seq
	last protocol.Link
}

type shelved struct {
	at    spot
	tip   protocol.Link
	batch []protocol.Entry
	bytes int
}

// join counts a cursor in until leave.
func (s *shelf) join(run protocol.RunID) (c *crowd, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c = s.runs[run]
	if c == nil {
		if s.runs == nil {
			s.runs = map[protocol.RunID]*crowd{}
		}
		c = &crowd{}
		s.runs[run] = c
	}
	c.n++
	return c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if c.n--; c.n == 0 {
			delete(s.runs, run)
			s.drop(run)
		}
	}
}

// crowded reports whether several cursors read a run.
func (s *shelf) crowded(run protocol.RunID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.runs[run]
	return c != nil && c.n > 1
}

func (s *shelf) find(at spot, tip protocol.Link) []protocol.Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.by[at]
	if e == nil || e.Value.(*shelved).tip != tip {
		return nil
	}
	s.order.MoveToFront(e)
	return e.Value.(*shelved).batch
}

func (s *shelf) put(at spot, tip protocol.Link, batch []protocol.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = map[spot]*list.Element{}
	}
	if e := s.by[at]; e != nil {
		s.remove(e)
	}
	x := &shelved{at: at, tip: tip, batch: batch}
	for i := range batch {
		x.bytes += len(batch[i].Raw) + 200
	}
	s.by[at] = s.order.PushFront(x)
	for s.bytes += x.bytes; s.bytes > shelfBytes && s.order.Len() > 1; {
		s.remove(s.order.Back())
	}
}

func (s *shelf) remove(e *list.Element) {
	x := s.order.Remove(e).(*shelved)
	s.bytes -= x.bytes
	delete(s.by, x.at)
}

// clear forgets what was read of a run.
func (s *shelf) clear(run protocol.RunID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(run)
}

// drop is clear; the caller holds mu.
func (s *shelf) drop(run protocol.RunID) {
	for at, e := range s.by {
		if at.run == run {
			s.remove(e)
		}
	}
}

// together gives the batch behind the cursor, from the shelf or by reading it for everyone. It
// is empty at the head. The batch is shared: it must not be changed.
func (c *cursor) together(ctx context.Context) ([]protocol.Entry, error) {
	at := spot{c.run, c.from, c.last}
	tip, head, err := c.feed.Tip(ctx, c.run)
	if err != nil || head <= c.from {
		return nil, err // at the head, or beyond it: drain looks
	}
	if batch := c.shelf.find(at, tip); batch != nil {
		return batch, nil
	}
	c.crowd.turn.Lock()
	defer c.crowd.turn.Unlock()
	if tip, _, err = c.feed.Tip(ctx, c.run); err != nil {
		return nil, err
	}
	if batch := c.shelf.find(at, tip); batch != nil {
		return batch, nil
	}
	var batch []protocol.Entry
	size := 0
	for e, err := range c.feed.After(ctx, c.run, c.from) {
		if err := c.follows(batch, e, err); err != nil {
			if len(batch) > 0 {
				return batch, nil // the next one meets the error again
			}
			return nil, err
		}
		batch = append(batch, e)
		if size += len(e.Raw); len(batch) >= batchEvents || size >= batchBytes {
			break
		}
	}
	after, _, err := c.feed.Tip(ctx, c.run)
	if err == nil && after == tip && len(batch) > 0 {
		c.shelf.put(at, tip, batch)
	}
	return batch, err
}
