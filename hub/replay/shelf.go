package replay

import (
	"context"
	"sync"

	"wf/hub/internal/lately"
	"wf/protocol"
)

// What is kept for crowds at most, in bytes.
const (
	shelfBytes = 16 << 20 // batches that were read
	cacheBytes = 16 << 20 // events as JSON
)

// A shelf keeps batches that were read from the store for other cursors of the same run, so that
// a crowd reads a journal about once. A batch is good for a cursor at the same event while the
// head is the one under which it was read: then it is a piece of the present history.
type shelf struct {
	batches lately.Map[spot, shelved]

	mu   sync.Mutex
	runs map[protocol.RunID]*crowd
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
	tip   protocol.Link
	batch []protocol.Entry
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
			s.clear(run)
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
	if x, _ := s.batches.Get(at); x.tip == tip {
		return x.batch
	}
	return nil
}

func (s *shelf) put(at spot, tip protocol.Link, batch []protocol.Entry) {
	bytes := 0
	for i := range batch {
		bytes += len(batch[i].Raw) + 200
	}
	s.batches.Put(at, shelved{tip, batch}, bytes)
}

// clear forgets what was read of a run.
func (s *shelf) clear(run protocol.RunID) {
	s.batches.Drop(func(at spot) bool { return at.run == run })
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
