package pgstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"

	"wf/protocol"
)

// windowMoves and windowEvents are how many commits one statement reads of a journal at most, and how many events: one that
// came from another store has all of them in one commit.
const (
	windowMoves  = 64
	windowEvents = 1024
)

// Each line of the reflog holds its events, or their digests, so a window is read forwards.
const readWindow = `select seq, moved, new, substr(events, (greatest(0, $2 - seq + moved)*32 + 1)::int, 32 * $3), data, keys
	from wf.reflog where head = (select id from wf.heads where name = $1) and seq > $2 order by seq, n limit $4`

// After yields the events of a run with seq > from; see protocol.Source.
func (s *Store) After(ctx context.Context, run protocol.RunID, from protocol.Seq) iter.Seq2[protocol.Entry, error] {
	return s.Events(ctx, protocol.RunHead(run), "run "+string(run), from)
}

// Events is After for the journal under any head; see cas.Backing.
func (s *Store) Events(ctx context.Context, head, what string, from protocol.Seq) iter.Seq2[protocol.Entry, error] {
	return func(yield func(protocol.Entry, error) bool) {
		at := from
		fail := func(err error) { yield(protocol.Entry{}, fmt.Errorf("events of %s after %d: %w", what, at, err)) }
		h, err := s.Head(ctx, head)
		switch {
		case err != nil:
		case !h.Link.Defined():
			if err = fmt.Errorf("%w", protocol.ErrUnknownRun); strings.HasPrefix(head, protocol.RunHead("")) {
				err = s.absent(ctx, protocol.RunOf(head))
			}
		case from < 0:
			err = fmt.Errorf("%d: %w", from, protocol.ErrBadCursor)
		case from > h.Seq:
			err = fmt.Errorf("the head is at %d: %w", h.Seq, protocol.ErrFutureCursor)
		}
		if err != nil {
			fail(err)
			return
		}
		var last protocol.Link
		for at < h.Seq {
			name, end, err := s.holder(ctx, head, at, h.Seq)
			var got []protocol.Entry
			if err == nil {
				got, err = s.window(ctx, name, at, end, last)
			}
			for _, e := range got {
				if !yield(e, nil) {
					return
				}
				at, last = e.Seq, e.CID
			}
			if err != nil {
				fail(err)
				return
			}
		}
		if last.Defined() && last != h.Link {
			fail(fmt.Errorf("event %d is not its head: %w", at, protocol.ErrHeadMoved))
		}
	}
}

// deepest bounds the forks of forks: a row that names itself as its base must not hang a reader.
const deepest = 10_000

// holder is the head under which the event behind at was written, a journal or what it was forked from, and the last event to
// be read there.
func (s *Store) holder(ctx context.Context, head string, at, end protocol.Seq) (string, protocol.Seq, error) {
	for range deepest {
		got, err := s.query(ctx, `select base, shared from wf.heads where name = $1 and base is not null`, text(head))
		if err != nil {
			return "", 0, err
		}
		if len(got) == 0 || protocol.Seq(readLong(got[0][1])) <= at {
			return head, end, nil
		}
		head, end = string(got[0][0]), min(end, protocol.Seq(readLong(got[0][1])))
	}
	return "", 0, fmt.Errorf("%s is forked in circles: %w", head, protocol.ErrCorrupt)
}

// window reads the next events under a head; those before an error are good.
func (s *Store) window(ctx context.Context, name string, at, end protocol.Seq, last protocol.Link) (out []protocol.Entry, err error) {
	end = min(end, at+windowEvents)
	got, err := s.query(ctx, readWindow, text(name), long(int64(at)), integer(windowEvents), long(windowMoves))
	if err != nil {
		return nil, err
	}
	var due []protocol.Entry
	for _, r := range got {
		if due, err = dueIn(due, r, at, end); err != nil {
			break // once those before it are read
		}
	}
	if err := s.fill(ctx, due); err != nil {
		return nil, err
	}
	if len(due) == 0 && err == nil {
		err = fmt.Errorf("event %d is not in the reflog of %s: %w", at+1, name, protocol.ErrCorrupt)
	}
	for i := range due {
		e, seq := &due[i], at+protocol.Seq(i)+1
		if err := s.complete(ctx, e, seq); err != nil {
			return due[:i], fmt.Errorf("event %d: %w", seq, err)
		}
		if last.Defined() && e.Prev != last {
			return due[:i], fmt.Errorf("event %d: it does not follow event %d: %w", seq, seq-1, protocol.ErrHeadMoved)
		}
		last = e.CID
	}
	return due, err
}

// dueIn adds the events behind at, up to end, that a row of readWindow names: where they are, by Seq, their names, and their bytes where they lie in the line.
func dueIn(due []protocol.Entry, r [][]byte, at, end protocol.Seq) ([]protocol.Entry, error) {
	seq, moved := protocol.Seq(readInt(r[0])), protocol.Seq(readInt(r[1]))
	first := seq - moved + 1
	next := max(first, at+1)
	add := func(l protocol.Link, raw []byte) {
		if next <= end {
			e := protocol.Entry{CID: l, Raw: raw}
			e.Seq = next
			due = append(due, e)
		}
		next++
	}
	if r[4] != nil {
		in, err := eventsIn(r[4], r[5], int(moved))
		if err != nil {
			return due, fmt.Errorf("event %d: %w", first, err)
		}
		for _, b := range in[min(next-first, moved):] {
			add(b.Link, b.Data)
		}
		return due, nil
	}
	for digests := r[3]; next < seq && next <= end && len(digests) >= 32; digests = digests[32:] {
		l, err := protocol.CastLink(append([]byte(eventPrefix), digests[:32]...))
		if err != nil {
			return due, err
		}
		add(l, nil)
	}
	if next != seq {
		return due, nil
	}
	l, err := protocol.CastLink(r[2])
	if err != nil {
		return due, fmt.Errorf("event %d: the reflog names %x: %w", seq, r[2], protocol.ErrCorrupt)
	}
	add(l, nil)
	return due, nil
}

// fill reads the events that do not lie in their lines; those that are missing, or damaged, stay without bytes.
func (s *Store) fill(ctx context.Context, due []protocol.Entry) error {
	at := map[protocol.Link][]int{}
	var links []protocol.Link
	for i, e := range due {
		if e.Raw == nil {
			at[e.CID] = append(at[e.CID], i)
			links = append(links, e.CID)
		}
	}
	if len(links) == 0 {
		return nil
	}
	got, err := s.storedTogether(ctx, links, math.MaxInt64)
	for _, r := range got {
		l, bad := protocol.CastLink(r[0])
		if bad != nil {
			continue
		}
		if raw, bad := unpacked(l, r[1], yes(r[2])); bad == nil {
			for _, i := range at[l] {
				due[i].Raw = raw
			}
		}
	}
	return err
}

// complete makes the event of its bytes; it is due at seq.
func (s *Store) complete(ctx context.Context, e *protocol.Entry, seq protocol.Seq) (err error) {
	if e.Seq != seq {
		return fmt.Errorf("the reflog goes on with %d: %w", e.Seq, protocol.ErrCorrupt)
	}
	if e.Raw == nil { // which this tells more of
		e.Raw, err = s.Block(ctx, e.CID)
	}
	if errors.Is(err, protocol.ErrNotFound) {
		err = fmt.Errorf("its block %s is missing: %w", e.CID, protocol.ErrCorrupt)
	}
	if err != nil {
		return err
	}
	e.Event = protocol.Event{}
	if err := protocol.DecodeEvent(e.Raw, &e.Event); err != nil {
		return errors.Join(protocol.ErrCorrupt, err)
	}
	if e.Seq != seq || e.Prev.Defined() != (seq > 1) {
		return fmt.Errorf("%s has seq %d: %w", e.CID, e.Seq, protocol.ErrCorrupt)
	}
	return nil
}
