package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"wf/protocol"
)

// What is read before it is written.
const (
	batchEvents = 256
	batchBytes  = 64 << 10
)

// A Sink takes what a cursor reads, in order, from one goroutine. An error ends the
// subscription. The batch is the sink's until it returns.
type Sink interface {
	// Events are the next ones, of one chain without a hole. live says that replay_complete
	// was sent before.
	Events(ctx context.Context, batch []protocol.Entry, live bool) error
	// Frame is a replay_complete, heartbeat, delta or reset, without id.
	Frame(ctx context.Context, f *protocol.Frame) error
}

// A failure is an error with the numbers that its frame shows.
type failure struct {
	error
	head, seq protocol.Seq
}

func (f failure) Unwrap() error { return f.error }

// errorFrame is the replay_error of err.
func errorFrame(id string, err error) *protocol.Frame {
	f := protocol.ReplayError(id, err)
	if with, ok := errors.AsType[failure](err); ok {
		f.HeadSeq, f.Seq = with.head, with.seq
	}
	return f
}

// cursor is one subscription: the last event that the client has.
type cursor struct {
	feed      protocol.Feed
	run       protocol.RunID
	from      protocol.Seq
	last      protocol.Link // null at 0
	end       protocol.Seq  // of the window, 0 where there is no bound
	sink      Sink
	ring      *ring // nil without live output
	completed bool

	batch []protocol.Entry // its own buffer
	shelf *shelf
	crowd *crowd
}

// Follow reads a run for a sink as a replay_request asks, until it is complete, or with Live
// until ctx ends. The error is that of ctx or of the sink, or one with a code
// that protocol.ReplayError knows.
func (s *Server) Follow(ctx context.Context, r protocol.Request, sink Sink) error {
	s.init()
	if err := r.CheckWindow(); err != nil {
		return err
	}
	c := &cursor{feed: s.Feed, run: r.SessionID, end: r.End(), sink: sink, shelf: &s.shelf}
	var leave func()
	c.crowd, leave = s.shelf.join(c.run)
	defer leave()
	var moved <-chan error
	var ready <-chan struct{}
	if r.Live {
		l, err := s.notifier.subscribe(ctx, c.run)
		if err != nil {
			return err
		}
		defer s.notifier.unsubscribe(l)
		moved = l.ch
		if s.Deltas != nil {
			c.ring = newRing()
			defer s.Deltas.Subscribe(c.run, c.ring.push)()
			ready = c.ring.ready
		}
	}
	if err := c.place(ctx, r); err != nil {
		return err
	}
	beat := time.NewTicker(cmp.Or(s.Heartbeat, 15*time.Second))
	defer beat.Stop()
	for {
		mark := c.ring.mark()
		if err := c.drain(ctx); err != nil {
			return err
		}
		c.ring.forget(c.from, mark)
		if !c.completed {
			c.completed = true
			if err := c.complete(ctx); err != nil || !r.Live {
				return err
			}
		}
		for waiting := true; waiting; {
			ahead, err := c.deltas(ctx)
			if err != nil {
				return err
			}
			if ahead { // sent after an event that was not read yet
				break
			}
			select {
			case err := <-moved:
				if err != nil {
					return err
				}
				waiting = false
			case <-ready:
			case <-beat.C:
				if err := c.drain(ctx); err != nil {
					return err
				}
				if err := c.tell(ctx, protocol.FrameHeartbeat); err != nil {
					return err
				}
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
}

// complete says that the cursor is where it was to come to; of a window also where the head is.
func (c *cursor) complete(ctx context.Context) error {
	if c.end == 0 {
		return c.tell(ctx, protocol.FrameReplayComplete)
	}
	_, head, err := c.feed.Tip(ctx, c.run)
	if err != nil {
		return err
	}
	return c.sink.Frame(ctx, &protocol.Frame{Type: protocol.FrameReplayComplete, LastSeq: c.from, LastCID: c.last, HeadSeq: head})
}

// atEnd reports whether the window was read.
func (c *cursor) atEnd() bool { return c.end > 0 && c.from >= c.end }

func (c *cursor) tell(ctx context.Context, kind protocol.FrameType) error {
	return c.sink.Frame(ctx, &protocol.Frame{Type: kind, LastSeq: c.from, LastCID: c.last})
}

// errMoved is a head of a history without the event of the cursor.
var errMoved = errors.New("the head of the run was moved to another history")

// putBack reports whether a read failed because the head was put back meanwhile.
func putBack(err error) bool {
	return errors.Is(err, protocol.ErrHeadMoved) || errors.Is(err, protocol.ErrFutureCursor)
}

// place finds the event that the client holds, and whether it is the same here. The head may be put
// back while it is looked for: it is then looked for again.
func (c *cursor) place(ctx context.Context, r protocol.Request) error {
	for {
		tip, head, err := c.feed.Tip(ctx, c.run)
		switch {
		case err != nil:
			return err
		case r.FromSeq == nil:
			c.from, c.last = head, tip
			return nil
		case *r.FromSeq < 0:
			return fmt.Errorf("fromSeq %d: %w", *r.FromSeq, protocol.ErrBadCursor)
		case *r.FromSeq == 0:
			return nil
		case *r.FromSeq > head && !r.LastCID.Defined():
			return failure{error: fmt.Errorf("fromSeq %d, the head of run %s is at %d: %w", *r.FromSeq, c.run, head, protocol.ErrFutureCursor), head: head}
		}
		c.from = *r.FromSeq
		switch {
		case c.from == head:
			c.last = tip
		case c.from < head:
			c.last, err = c.event(ctx, c.from)
		}
		switch {
		case errors.Is(err, errMoved):
			continue
		case err != nil:
			return err
		case r.LastCID.Defined() && c.last != r.LastCID:
			c.last = r.LastCID
			return c.reset(ctx)
		}
		return nil
	}
}

// event is the name of one event; errMoved where the head is before it now.
func (c *cursor) event(ctx context.Context, seq protocol.Seq) (protocol.Link, error) {
	for e, err := range c.feed.After(ctx, c.run, seq-1) {
		switch {
		case putBack(err):
			return protocol.Link{}, errMoved
		case err != nil:
			return protocol.Link{}, c.broken(err, seq)
		}
		return e.CID, nil
	}
	return protocol.Link{}, errMoved
}

// drain reads to the end of the window or to the head, and with a reset wherever that is now.
func (c *cursor) drain(ctx context.Context) error {
	for known := protocol.Seq(0); !c.atEnd(); {
		from := c.from
		err := c.pass(ctx)
		if err == nil {
			var tip protocol.Link
			var head protocol.Seq
			tip, head, err = c.feed.Tip(ctx, c.run)
			switch {
			case err != nil:
				return err
			case head == c.from && tip == c.last:
				return nil
			case head <= c.from:
				err = errMoved
			case c.from == from && from < known: // it was there before the pass
				return c.broken(fmt.Errorf("the head of run %s is at %d, yet nothing follows event %d: %w", c.run, known, from, protocol.ErrCorrupt), from+1)
			}
			known = head
		}
		if errors.Is(err, errMoved) {
			err = c.reset(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pass reads what follows the cursor, a batch at a time, together with others where there are
// any. No transaction is open while a batch is written: see protocol.Source.
func (c *cursor) pass(ctx context.Context) error {
	for alone := false; !alone && !c.atEnd(); {
		var err error
		if c.shelf.crowded(c.run) {
			var batch []protocol.Entry
			if batch, err = c.together(ctx); err == nil && len(batch) == 0 {
				return nil
			}
			err = errors.Join(err, c.write(ctx, batch))
		} else {
			alone, err = c.alone(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// alone reads to the head; false where another cursor came meanwhile.
func (c *cursor) alone(ctx context.Context) (done bool, err error) {
	defer func() {
		clear(c.batch)
		c.batch = c.batch[:0]
	}()
	size := 0
	for e, err := range c.feed.After(ctx, c.run, c.from) {
		if err := c.follows(c.batch, e, err); err != nil {
			return false, errors.Join(c.write(ctx, c.batch), err)
		}
		if c.end > 0 && e.Seq > c.end {
			break
		}
		c.batch = append(c.batch, e)
		if size += len(e.Raw); len(c.batch) < batchEvents && size < batchBytes {
			continue
		}
		if err := c.write(ctx, c.batch); err != nil {
			return false, err
		}
		size = 0
		clear(c.batch)
		c.batch = c.batch[:0]
		if c.shelf.crowded(c.run) {
			return false, nil
		}
	}
	return true, c.write(ctx, c.batch)
}

// follows checks that e, read with err, is the successor of a batch behind the cursor.
func (c *cursor) follows(batch []protocol.Entry, e protocol.Entry, err error) error {
	last, due := c.last, c.from+protocol.Seq(len(batch))+1
	if n := len(batch); n > 0 {
		last = batch[n-1].CID
	}
	switch {
	case putBack(err):
		return errMoved
	case err != nil:
		return c.broken(err, due)
	case e.Seq != due:
		return c.broken(fmt.Errorf("run %s has event %d where %d is due: %w", c.run, e.Seq, due, protocol.ErrCorrupt), due)
	case e.Prev != last:
		return errMoved
	}
	return nil
}

// write hands on what was read, in pieces where something was said between two events.
func (c *cursor) write(ctx context.Context, batch []protocol.Entry) error {
	if over := c.from + protocol.Seq(len(batch)) - c.end; c.end > 0 && over > 0 { // read for others too
		batch = batch[:max(0, protocol.Seq(len(batch))-over)]
	}
	for len(batch) > 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if _, err := c.deltas(ctx); err != nil {
			return err
		}
		n := len(batch)
		if c.ring != nil {
			if n = int(min(protocol.Seq(n), c.ring.first()-c.from)); n < 1 {
				continue // something more was said meanwhile
			}
		}
		if err := c.sink.Events(ctx, batch[:n], c.completed); err != nil {
			return err
		}
		c.from, c.last = batch[n-1].Seq, batch[n-1].CID
		batch = batch[n:]
	}
	return nil
}

// deltas sends what was said up to the cursor. ahead reports that more was said after events
// that are not read yet.
func (c *cursor) deltas(ctx context.Context) (ahead bool, err error) {
	if c.ring == nil {
		return false, nil
	}
	held, dropped, ahead := c.ring.take(c.from)
	for i := range held {
		d := &held[i]
		f := &protocol.Frame{Type: protocol.FrameDelta, AfterSeq: d.After, Step: d.Step, N: d.N, Kind: d.Delta.Kind, Text: d.Delta.Text, Dropped: dropped}
		dropped = 0
		if err := c.sink.Frame(ctx, f); err != nil {
			return ahead, err
		}
	}
	return ahead, nil
}

// broken is an error of reading the journal: gap where it is damaged or lacks a block, with the
// first event that could not be read.
func (c *cursor) broken(err error, due protocol.Seq) error {
	if errors.Is(err, protocol.ErrCorrupt) || errors.Is(err, protocol.ErrNotFound) {
		return failure{error: fmt.Errorf("%w: %w", protocol.ErrGap, err), seq: due}
	}
	return err
}
