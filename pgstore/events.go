package pgstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"wf/cas"
	"wf/protocol"
)

// windowMoves and windowEvents are how many commits one statement reads of a journal at most, and how many events: one that
// came from another store has all of them in one commit.
const (
	windowMoves  = 64
	windowEvents = 1024
)

// Each line of the reflog holds the digests of its events, so a window is read forwards: an event that is missing has no data.
const readWindow = `select e.seq, e.cid, b.data
	from (select seq, new, events from wf.reflog where name = $1 and seq > $2 order by seq, n limit $4) r,
	lateral (select r.seq - length(r.events)/32 + i as seq,
		case when i*32 < length(r.events) then decode('01711220', 'hex') || substr(r.events, (i*32+1)::int, 32) else r.new end as cid
		from generate_series(greatest(0, $2 + 1 - r.seq + length(r.events)/32), least(length(r.events)/32, $3 - r.seq + length(r.events)/32)) i) e
	left join wf.blocks b using (cid)
	where e.seq > $2 and e.seq <= $3 order by e.seq`

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
	got, err := s.query(ctx, readWindow, text(name), long(int64(at)), long(int64(min(end, at+windowEvents))), long(windowMoves))
	if err != nil {
		return nil, err
	}
	if len(got) == 0 {
		return nil, fmt.Errorf("event %d is not in the reflog of %s: %w", at+1, name, protocol.ErrCorrupt)
	}
	for _, r := range got {
		seq := at + protocol.Seq(len(out)) + 1
		e, err := entryOf(r, seq)
		if err == nil && last.Defined() && e.Prev != last {
			err = fmt.Errorf("it does not follow event %d: %w", seq-1, protocol.ErrHeadMoved)
		}
		if err != nil {
			return out, fmt.Errorf("event %d: %w", seq, err)
		}
		out, last = append(out, e), e.CID
	}
	return out, nil
}

// entryOf is the event in a row of readWindow, which is due at seq.
func entryOf(r [][]byte, seq protocol.Seq) (e protocol.Entry, err error) {
	if have := protocol.Seq(readLong(r[0])); have != seq {
		return e, fmt.Errorf("the reflog goes on with %d: %w", have, protocol.ErrCorrupt)
	}
	if e.CID, err = protocol.CastLink(r[1]); err != nil {
		return e, fmt.Errorf("the reflog names %x: %w", r[1], protocol.ErrCorrupt)
	}
	if r[2] == nil {
		return e, fmt.Errorf("its block %s is missing: %w", e.CID, protocol.ErrCorrupt)
	}
	if e.Raw, err = cas.UnpackBlock(e.CID, r[2]); err != nil {
		return e, err
	}
	if err := protocol.DecodeEvent(e.Raw, &e.Event); err != nil {
		return e, errors.Join(protocol.ErrCorrupt, err)
	}
	if e.Seq != seq || e.Prev.Defined() != (seq > 1) {
		return e, fmt.Errorf("%s has seq %d: %w", e.CID, e.Seq, protocol.ErrCorrupt)
	}
	return e, nil
}
