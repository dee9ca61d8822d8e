package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/ipfs/go-cid"

	"wf/cas"
	"wf/protocol"
)

// blockID is a block by its codec and its digest: what differs between the CIDs that a store holds.
type blockID [1 + 32]byte

// cidHead and cidHash stand in a CID before and behind its codec.
const (
	cidHead = "\x01"
	cidHash = "\x12\x20"
)

// idIn is the block that a CID in its bytes names; false for one that no store holds.
func idIn(c []byte) (id blockID, ok bool) {
	if len(c) != 36 || string(c[:1]) != cidHead || string(c[2:4]) != cidHash || c[1] != cid.DagCBOR && c[1] != cid.Raw {
		return id, false
	}
	id[0] = c[1]
	copy(id[1:], c[4:])
	return id, true
}

func (id blockID) cid() []byte {
	return append([]byte{cidHead[0], id[0], cidHash[0], cidHash[1]}, id[1:]...)
}

// A walk reads blocks and what they lead to, each of them once. What it remembers of a block are 33 bytes.
type walk struct {
	s    *Store
	seen map[blockID]struct{}
	todo []blockID
	// visit is told the length of each block; nil for nothing.
	visit func(size int64)
	// fault is what becomes of the walk where a block is missing, an error wrapping protocol.ErrNotFound, or damaged.
	fault func(l protocol.Link, err error) error
}

func (s *Store) newWalk() *walk {
	return &walk{s: s, seen: map[blockID]struct{}{}, fault: func(l protocol.Link, err error) error {
		return fmt.Errorf("block %s: %w: %w", l, protocol.ErrCorrupt, err)
	}}
}

// add has a block read, unless it was.
func (w *walk) add(id blockID) {
	if _, ok := w.seen[id]; !ok {
		w.seen[id] = struct{}{}
		w.todo = append(w.todo, id)
	}
}

// walkBlocks is how many blocks one statement of a walk reads. Their bytes are taken as they arrive.
const walkBlocks = 512

// Of a payload nothing but its length is wanted: the beginning of its stored form tells it. The codec of a CID is its second byte.
var readSome = fmt.Sprintf(`select cid, case when get_byte(cid, 1) = %d and not packed then substr(data, 1, %d) else data end, packed from (`+heldBlocks+`) x`, cid.Raw, cas.PackedHead)

// run reads what was added, and what that leads to.
func (w *walk) run(ctx context.Context) error {
	for len(w.todo) > 0 {
		n := min(walkBlocks, len(w.todo))
		cids, left := make([][]byte, n), make(map[string]error, n)
		for i, id := range w.todo[len(w.todo)-n:] {
			cids[i] = id.cid()
			left[string(cids[i])] = protocol.ErrNotFound
		}
		w.todo = w.todo[:len(w.todo)-n]
		err := w.s.each(ctx, func(row [][]byte) error {
			at := string(row[0])
			if _, ok := left[at]; !ok {
				return nil // it was found in another place
			}
			l, err := protocol.CastLink(row[0])
			if err != nil {
				return err // it was made here
			}
			size, links, err := look(l, row[1], yes(row[2]))
			if err == nil {
				delete(left, at)
				w.found(size, links)
			} else if !errors.Is(err, protocol.ErrNotFound) {
				left[at] = err
			}
			return nil
		}, readSome, byteas(cids))
		if err != nil {
			return err
		}
		for _, c := range cids {
			if bad, ok := left[string(c)]; ok {
				l, err := protocol.CastLink(c)
				if err == nil {
					err = w.fault(l, bad)
				}
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// found takes a block that was read.
func (w *walk) found(size int64, links []protocol.Link) {
	if w.visit != nil {
		w.visit(size)
	}
	for _, to := range links {
		if id, ok := idIn(to.Bytes()); ok {
			w.add(id)
		}
	}
}

// look is what a walk wants of a block, out of what may hold it.
func look(l protocol.Link, stored []byte, packed bool) (size int64, links []protocol.Link, err error) {
	if l.CID().Type() == cid.Raw && !packed {
		size, err = cas.PackedLen(l, stored)
		return size, nil, err
	}
	data, err := unpacked(l, stored, packed)
	if err != nil {
		return 0, nil, err
	}
	links, err = cas.LinksIn(l, data)
	return int64(len(data)), links, err
}

// movedEvents are what addMove wants of lines.
const movedEvents = `select l.seq, l.moved, l.new, l.events, l.data, l.keys, l.head from wf.reflog l`

// addMove adds the events of a move of a journal, by a row of movedEvents, up to last. A chain that is followed from its end gives up
// one block at a time; the reflog has, or names, all of them at once.
func (w *walk) addMove(row [][]byte, last protocol.Seq) error {
	seq, moved, new := protocol.Seq(readInt(row[0])), protocol.Seq(readInt(row[1])), row[2]
	if row[4] != nil {
		in, err := eventsIn(row[4], row[5], int(moved))
		if err != nil {
			return fmt.Errorf("event %d of head %d in the reflog, of which wf verify tells more: %w", seq, readInt(row[6]), err)
		}
		for _, b := range in[:max(0, min(moved, last-(seq-moved)))] {
			id, ok := idIn(b.Link.Bytes())
			if _, seen := w.seen[id]; seen || !ok {
				continue
			}
			w.seen[id] = struct{}{}
			links, err := cas.LinksIn(b.Link, b.Data)
			if err != nil {
				return w.fault(b.Link, err)
			}
			w.found(int64(len(b.Data)), links)
		}
		return nil
	}
	n := protocol.Seq(len(row[3]) / 32)
	for i := range min(n, last-(seq-n)+1) {
		id := blockID{cid.DagCBOR}
		copy(id[1:], row[3][32*i:])
		w.add(id)
	}
	if id, ok := idIn(new); ok && seq <= last {
		w.add(id)
	}
	return nil
}

// addEvents adds the events of a journal up to last, with those that it shares.
func (w *walk) addEvents(ctx context.Context, head string, last protocol.Seq) error {
	for range deepest {
		err := w.s.each(ctx, func(row [][]byte) error { return w.addMove(row, last) },
			movedEvents+` where head = (select id from wf.heads where name = $1) and seq - moved < $2`, text(head), long(int64(last)))
		if err != nil {
			return err
		}
		base, err := w.s.query(ctx, `select base, shared from wf.heads where name = $1 and base is not null`, text(head))
		if err != nil || len(base) == 0 {
			return err
		}
		head, last = string(base[0][0]), min(last, protocol.Seq(readLong(base[0][1])))
	}
	return fmt.Errorf("%s is forked in circles: %w", head, protocol.ErrCorrupt)
}

// Reach is how many bytes the blocks have that event seq of a run leads to, each counted once. Of payloads the database
// tells the length, and they are not hashed.
func (s *Store) Reach(ctx context.Context, run protocol.RunID, seq protocol.Seq) (size int64, err error) {
	w := s.newWalk()
	w.visit = func(n int64) { size += n }
	for e, err := range s.After(ctx, run, seq-1) {
		if err != nil {
			return 0, err
		}
		if id, ok := idIn(e.CID.Bytes()); ok {
			w.add(id)
		}
		break
	}
	if err = w.addEvents(ctx, protocol.RunHead(run), seq); err == nil {
		err = w.run(ctx)
	}
	if err != nil {
		return 0, fmt.Errorf("run %s: %w", run, err)
	}
	return size, nil
}
