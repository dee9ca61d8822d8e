package cas

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"wf/protocol"
)

// One transaction of After reads at most this much, so that writers get in between.
const (
	readEvents = 256
	readBytes  = 64 << 10
	readTime   = 5 * time.Millisecond
)

// After yields the events of a run with seq > from, in order, each hashed and joined to the
// one before, up to the head at the time of the last read. See protocol.Source for its
// errors; a head that was moved elsewhere (fork, restore) under the reader is ErrHeadMoved.
func (s *Store) After(ctx context.Context, run protocol.RunID, from protocol.Seq) iter.Seq2[protocol.Entry, error] {
	return s.Events(ctx, protocol.RunHead(run), "run "+string(run), from)
}

// Events is After for the journal under any head; see Backing.
func (s *Store) Events(ctx context.Context, head, what string, from protocol.Seq) iter.Seq2[protocol.Entry, error] {
	return func(yield func(protocol.Entry, error) bool) {
		w := walk{s: s, name: head, from: from}
		for {
			batch, err := w.read(ctx)
			if errors.Is(err, errNoCheckpoint) {
				if err = s.recheck(ctx, &w); err == nil {
					continue
				}
			}
			if err != nil {
				yield(protocol.Entry{}, fmt.Errorf("events of %s after %d: %w", what, w.from, err))
				return
			}
			for i := range batch {
				if !yield(batch[i], nil) {
					return
				}
			}
			if w.done {
				return
			}
		}
	}
}

// walk reads a journal window by window. An event knows the one before it, not the one after:
// so a window is read backwards, from its end to from+1. Its end is a checkpoint of the
// index, or the head.
type walk struct {
	s    *Store
	name string        // of the head
	from protocol.Seq  // last event yielded
	last protocol.Link // its name, once known
	done bool          // the head was reached

	// marks are checkpoints found by walking, while the index lacks them.
	marks map[protocol.Seq]protocol.Link
}

// errNoCheckpoint asks for a walk from the head, to find lost checkpoints.
var errNoCheckpoint = errors.New("a checkpoint of the index is gone")

// read gives the next events within one transaction. An error loses none: what was read
// before it is given first.
func (w *walk) read(ctx context.Context) ([]protocol.Entry, error) {
	var out []protocol.Entry
	err := w.s.view(ctx, func(tx *bolt.Tx) error {
		head, err := w.s.readHead(tx, w.name)
		switch {
		case err != nil:
			return err
		case !head.Link.Defined():
			return w.s.absent(tx, w.s.newLookup(tx), w.name)
		case w.from < 0:
			return fmt.Errorf("%d: %w", w.from, protocol.ErrBadCursor)
		case w.from > head.Seq:
			return fmt.Errorf("the head is at %d: %w", head.Seq, protocol.ErrFutureCursor)
		}
		out = make([]protocol.Entry, 0, min(int(head.Seq-w.from), readEvents))
		lk := w.s.newLookup(tx)
		size, begun := 0, time.Now()
		for w.from < head.Seq && len(out)+checkpoint <= readEvents && size < readBytes && time.Since(begun) < readTime {
			end, link := head.Seq, head.Link
			if mark := (w.from/checkpoint + 1) * checkpoint; mark < head.Seq {
				if link, err = w.mark(tx, mark); err != nil {
					return err
				}
				end = mark
			}
			n := len(out)
			if out, err = lk.window(out, w.from, end, link); err != nil {
				out = out[:n]
				return err
			}
			if w.last.Defined() && out[n].Prev != w.last {
				out = out[:n]
				return fmt.Errorf("event %d does not follow the one read before: %w", w.from+1, protocol.ErrHeadMoved)
			}
			for i := n; i < len(out); i++ {
				size += len(out[i].Raw)
			}
			w.from, w.last = end, link
		}
		w.done = w.from == head.Seq
		return nil
	})
	if len(out) > 0 && err != nil {
		return out, nil // the next read meets the error again
	}
	return out, err
}

// window appends the events from+1…end; link is the last.
func (lk *lookup) window(out []protocol.Entry, from, end protocol.Seq, link protocol.Link) ([]protocol.Entry, error) {
	n := len(out)
	out = slices.Grow(out, int(end-from))[:n+int(end-from)]
	for seq := end; seq > from; seq-- {
		e := &out[n+int(seq-from)-1]
		if err := lk.event(e, seq, link); err != nil {
			return out, err
		}
		link = e.Prev
	}
	return out, nil
}

// event reads the event of a journal at seq, which is link.
func (lk *lookup) event(e *protocol.Entry, seq protocol.Seq, link protocol.Link) error {
	raw, err := lk.block(link)
	if err != nil {
		return fmt.Errorf("event %d: %w", seq, lost(err))
	}
	if err := protocol.DecodeEvent(raw, &e.Event); err != nil {
		return fmt.Errorf("event %d (%s) is none: %w: %w", seq, link, protocol.ErrCorrupt, err)
	}
	if e.Seq != seq || e.Prev.Defined() != (seq > 1) {
		return fmt.Errorf("event %s has seq %d and prev %s where seq %d is due: %w", link, e.Seq, orNone(e.Prev), seq, protocol.ErrCorrupt)
	}
	e.CID, e.Raw = link, raw
	return nil
}

// mark finds a checkpoint, in the run or in the one it was forked from.
func (w *walk) mark(tx *bolt.Tx, seq protocol.Seq) (protocol.Link, error) {
	if l, ok := w.marks[seq]; ok {
		return l, nil
	}
	events, bases := sub(tx, indexEvents), sub(tx, indexBases)
	if events == nil || bases == nil {
		return protocol.Link{}, errNoCheckpoint
	}
	for name := w.name; ; {
		if d := events.Get(eventKey(name, seq)); len(d) == 32 {
			return linkOf(0x71, d), nil
		}
		base, shared, ok := parseBase(bases.Get([]byte(name)))
		if !ok || seq > shared {
			return protocol.Link{}, errNoCheckpoint
		}
		name = base
	}
}

// recheck walks from the head to w.from, once, and writes the checkpoints it meets back to
// the index, unless the store may not be written.
func (s *Store) recheck(ctx context.Context, w *walk) error {
	head, err := s.Head(ctx, w.name)
	if err != nil {
		return err
	}
	marks := map[protocol.Seq]protocol.Link{}
	link, seq := head.Link, head.Seq
	for seq > w.from {
		err := s.view(ctx, func(tx *bolt.Tx) error {
			lk := s.newLookup(tx)
			for begun := time.Now(); seq > w.from && time.Since(begun) < readTime; seq-- {
				if seq%checkpoint == 0 {
					marks[seq] = link
				}
				var e protocol.Entry
				if err := lk.event(&e, seq, link); err != nil {
					return err
				}
				link = e.Prev
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	w.marks = marks
	if s.opts.ReadOnly {
		return nil
	}
	return s.update(ctx, func(tx *bolt.Tx) error {
		now, err := s.readHead(tx, w.name)
		if err != nil || now.Seq < head.Seq {
			return err
		}
		events := sub(tx, indexEvents)
		for seq, l := range marks {
			if err := events.Put(eventKey(w.name, seq), []byte(sumOf(l))); err != nil {
				return err
			}
		}
		return nil
	})
}
