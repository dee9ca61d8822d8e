package cas

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	bolt "go.etcd.io/bbolt"

	"wf/protocol"
)

// A run is deleted in one transaction: its head, its reflog and what was derived of it go, and a head of the name
// deleted/<run> points to a Tombstone. The blocks stay until the next collection.
//
//	run/R ─► event 9 ─► … ─► event 1          before
//	deleted/R ─► Tombstone{head: "event 9"}    after; a new run/R is refused
//
// A wf that knows layout 1 alone would begin the run again for its request id: so the first deletion raises the
// number of the layout, and such a wf refuses the store.

// Deletion puts a tombstone in the place of a run, whose head must still be where the writer last saw it.
type Deletion struct {
	head      Head // of the run, as it was read
	tombstone Block
	ts        int64 // unix µs, as in the tombstone
}

// Bury is the deletion of the run with this head; t says by which user, when and why, and what kept its files.
func Bury(h Head, t protocol.Tombstone) (Deletion, error) {
	t.Kind, t.V, t.Run, t.Head, t.Seq = protocol.KindTombstone, protocol.RecordVersion, protocol.RunOf(h.Name), h.Link.String(), h.Seq
	b, err := Encode(t)
	return Deletion{h, b, t.At}, err
}

// Rebury is the deletion of a run that is not there, and that was deleted in another store: by its tombstone there. Commit refuses it with
// protocol.ErrHeadMoved where the run is there.
func Rebury(run protocol.RunID, tombstone Block) (d Deletion, err error) {
	t, err := readTombstone(protocol.DeletedHead(run), tombstone.Data)
	if err != nil {
		return d, err
	}
	return Deletion{Head{Name: protocol.RunHead(run)}, tombstone, t.At}, nil
}

// Run is the run that is deleted.
func (d Deletion) Run() protocol.RunID { return protocol.RunOf(d.head.Name) }

// Head is the head of the run as it was read: it must not have moved.
func (d Deletion) Head() protocol.Link { return d.head.Link }

// Tombstone is the block that takes the place of the run, under protocol.DeletedHead.
func (d Deletion) Tombstone() Block { return d.tombstone }

// TS is when the run was deleted, unix µs.
func (d Deletion) TS() int64 { return d.ts }

// tombstone is that of the run under a head, or nil.
func (s *Store) tombstone(tx *bolt.Tx, lk *lookup, head string) (*protocol.Tombstone, error) {
	run, ok := strings.CutPrefix(head, protocol.RunHead(""))
	if !ok {
		return nil, nil
	}
	h, err := s.readHead(tx, protocol.DeletedHead(protocol.RunID(run)))
	if err != nil || !h.Link.Defined() {
		return nil, err
	}
	data, err := lk.buried[h.Link], error(nil)
	if data == nil {
		data, err = lk.block(h.Link)
	}
	t := new(protocol.Tombstone)
	if err == nil {
		err = Decode(data, t)
	}
	if err != nil {
		return nil, fmt.Errorf("the tombstone of run %s: %w", run, lost(err))
	}
	return t, nil
}

// deleted is an error wrapping protocol.ErrRunDeleted where the run under a head was deleted.
func (s *Store) deleted(tx *bolt.Tx, lk *lookup, head string) error {
	t, err := s.tombstone(tx, lk, head)
	if err == nil && t != nil {
		err = t.Error()
	}
	return err
}

// absent says why there is no head.
func (s *Store) absent(tx *bolt.Tx, lk *lookup, head string) error {
	if err := s.deleted(tx, lk, head); err != nil {
		return err
	}
	return protocol.ErrUnknownRun
}

// runHead is the head of a run, or why there is none.
func (s *Store) runHead(ctx context.Context, run protocol.RunID) (h Head, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		name := protocol.RunHead(run)
		if h, err = s.readHead(tx, name); err == nil && !h.Link.Defined() {
			err = s.absent(tx, s.newLookup(tx), name)
		}
		return err
	})
	if errors.Is(err, protocol.ErrUnknownRun) {
		err = fmt.Errorf("run %s: %w", run, err)
	}
	return h, err
}

// deletable reports whether the heads of runs are where their deletion expects them.
func (s *Store) deletable(tx *bolt.Tx, lk *lookup, all []Deletion) error {
	for _, d := range all {
		h, err := s.readHead(tx, d.head.Name)
		if err == nil && !h.Link.Defined() {
			if d.head.Link.Defined() {
				err = s.absent(tx, lk, d.head.Name)
			} else {
				err = s.deleted(tx, lk, d.head.Name)
			}
		}
		if err == nil && h.Link != d.head.Link {
			err = fmt.Errorf("delete %s: its head is %s, not %s: %w", d.head.Name, h.Link, orNone(d.head.Link), protocol.ErrHeadMoved)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bury takes a run out of the transaction and puts its tombstone there.
func (s *Store) bury(tx *bolt.Tx, lk *lookup, d Deletion) error {
	if lk.buried == nil {
		lk.buried = map[protocol.Link][]byte{}
	}
	lk.buried[d.tombstone.Link] = d.tombstone.Data
	run := protocol.RunOf(d.head.Name)
	for _, name := range []string{d.head.Name, protocol.FilesHead(run)} {
		if err := dropHead(tx, name); err != nil {
			return err
		}
	}
	m := Move{Name: protocol.DeletedHead(run), New: d.tombstone.Link, TS: d.ts}
	if err := moveHead(tx, Head{}, m); err != nil {
		return err
	}
	return tx.Bucket(bucketMeta).Put(keyVersion, []byte{layoutDeleted})
}

// dropHead removes a head with its reflog and what is derived from it.
func dropHead(tx *bolt.Tx, name string) error {
	if err := tx.Bucket(bucketRefs).Delete([]byte(name)); err != nil {
		return err
	}
	for _, b := range []*bolt.Bucket{tx.Bucket(bucketReflog), sub(tx, indexEvents)} {
		if err := dropPrefix(b, append([]byte(name), 0)); err != nil {
			return err
		}
	}
	run, ok := strings.CutPrefix(name, protocol.RunHead(""))
	if !ok {
		return nil
	}
	if err := dropBase(tx, name); err != nil {
		return err
	}
	return sub(tx, indexDerived).Delete([]byte(StateKey(protocol.RunID(run))))
}

// dropPrefix removes the entries with keys that begin with prefix.
func dropPrefix(b *bolt.Bucket, prefix []byte) error {
	var keys [][]byte // a cursor does not survive a removal
	c := b.Cursor()
	for k, _ := c.Seek(prefix); k != nil && bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		keys = append(keys, bytes.Clone(k))
	}
	for _, k := range keys {
		if err := b.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

// layoutOf is the number of the layout that a store needs.
func layoutOf(tx *bolt.Tx) byte {
	prefix := []byte(protocol.DeletedHead(""))
	if k, _ := tx.Bucket(bucketRefs).Cursor().Seek(prefix); bytes.HasPrefix(k, prefix) {
		return layoutDeleted
	}
	return layoutPlain
}

// A Sharer is a fork that shares events with a run.
type Sharer struct {
	Run protocol.RunID
	Seq protocol.Seq // up to which it shares them
}

// Forks are the runs that were forked from a run and share its events, by id. They are those that the index knows.
func (s *Store) Forks(ctx context.Context, run protocol.RunID) (out []Sharer, err error) {
	of := protocol.RunHead(run)
	err = s.view(ctx, func(tx *bolt.Tx) error {
		out = nil
		bases, forks := sub(tx, indexBases), sub(tx, indexForks)
		if bases == nil {
			return nil
		}
		add := func(fork, v []byte) error {
			if base, shared, ok := parseBase(v); ok && base == of && tx.Bucket(bucketRefs).Get(fork) != nil {
				out = append(out, Sharer{protocol.RunOf(string(fork)), shared})
			}
			return nil
		}
		if forks == nil { // a store of an older wf that may not be written
			return bases.ForEach(add)
		}
		prefix := forkKey(of, "")
		c := forks.Cursor()
		for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
			fork := k[len(prefix):]
			if err := add(fork, bases.Get(fork)); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// DropLock removes the file of the lock that this process has on a run: of a run that was deleted it is of no use.
func (s *Store) DropLock(_ context.Context, run protocol.RunID) error {
	return classify(removeIfThere(s.driveLock(run)))
}

// Uncollected are the runs that were deleted and whose newest event is still stored: the next collection frees
// their space.
func (s *Store) Uncollected(ctx context.Context) (n int, err error) {
	all, err := Tombstones(ctx, s)
	if err != nil {
		return 0, err
	}
	for part := range slices.Chunk(all, 64) { // nothing else is kept from the store for long
		stored := 0
		err := s.view(ctx, func(tx *bolt.Tx) error {
			lk := s.newLookup(tx)
			stored = 0
			for _, t := range part {
				l, err := protocol.ParseLink(t.Head)
				if err != nil {
					return fmt.Errorf("the tombstone of run %s: %w", t.Run, err)
				}
				if name, ok := nameOf(l); ok && lk.stored(name.sum) {
					stored++
				}
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
		n += stored
	}
	return n, nil
}
