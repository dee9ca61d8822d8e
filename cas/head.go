package cas

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	bolt "go.etcd.io/bbolt"

	"wf/protocol"
)

// Head is where a name points. The zero Head is a name that points nowhere yet.
type Head struct {
	Name string
	Link protocol.Link
	Seq  protocol.Seq // of the newest event; 0 for a head that is no journal
	TS   int64        // unix µs of the last move
}

// Head reads a head; one that does not exist is the zero Head and no error.
func (s *Store) Head(ctx context.Context, name string) (h Head, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) (err error) {
		h, err = s.readHead(tx, name)
		return err
	})
	return h, err
}

// Tip is the newest event of a run; see protocol.Feed.
func (s *Store) Tip(ctx context.Context, run protocol.RunID) (protocol.Link, protocol.Seq, error) {
	h, err := s.runHead(ctx, run)
	return h.Link, h.Seq, err
}

// Heads lists the heads with names that begin with prefix, by name.
func (s *Store) Heads(ctx context.Context, prefix string) ([]Head, error) {
	var out []Head
	err := s.view(ctx, func(tx *bolt.Tx) error {
		out = nil
		c := tx.Bucket(bucketRefs).Cursor()
		for k, v := c.Seek([]byte(prefix)); k != nil && bytes.HasPrefix(k, []byte(prefix)); k, v = c.Next() {
			h, err := parseHead(string(k), v)
			if err == nil {
				err = s.checkHead(tx, h)
			}
			if err != nil {
				return err
			}
			out = append(out, h)
		}
		return nil
	})
	return out, err
}

// readHead reads a head, and checks it; the zero Head is one that does not exist.
func (s *Store) readHead(tx *bolt.Tx, name string) (Head, error) {
	v := tx.Bucket(bucketRefs).Get([]byte(name))
	if v == nil {
		return Head{}, nil
	}
	h, err := parseHead(name, v)
	if err != nil {
		return h, err
	}
	return h, s.checkHead(tx, h)
}

// checkHead finds a head that was damaged on disk. The value has no checksum, but the last line of
// the reflog says the same. Where the two differ, or the reflog is lost, the event decides.
func (s *Store) checkHead(tx *bolt.Tx, h Head) error {
	last, ok := lastMove(tx, h.Name)
	if ok && last.New == h.Link && last.Seq == h.Seq && last.TS == h.TS || h.Seq == 0 {
		return nil
	}
	data, err := s.newLookup(tx).block(h.Link)
	var e protocol.Event
	if err == nil {
		err = protocol.DecodeEvent(data, &e)
	}
	if err == nil && (e.Seq != h.Seq || ok && e.TS != h.TS) {
		err = fmt.Errorf("it names event %d of %d µs, its value says %d and %d µs: %w", e.Seq, e.TS, h.Seq, h.TS, protocol.ErrCorrupt)
	}
	if err != nil {
		return fmt.Errorf("head %s: %w", h.Name, lost(err))
	}
	return nil
}

func parseHead(name string, v []byte) (Head, error) {
	r := reader{b: v}
	h := Head{Name: name, Link: r.link(), Seq: protocol.Seq(r.uint()), TS: r.int()}
	if r.bad || !h.Link.Defined() {
		return Head{}, fmt.Errorf("head %s: its value %x is no head: %w", name, v, protocol.ErrCorrupt)
	}
	return h, nil
}

// moveHead sets a head from old, notes it in the reflog, and keeps the index up to date.
func moveHead(tx *bolt.Tx, old Head, m Move) error {
	now := Head{Name: m.Name, Link: m.New, Seq: old.Seq, TS: m.TS}
	if n := len(m.Events); n > 0 {
		now.Seq = m.Events[n-1].Seq
	}
	v := binary.AppendVarint(binary.AppendUvarint(appendLink(nil, now.Link), uint64(now.Seq)), now.TS)
	if err := tx.Bucket(bucketRefs).Put([]byte(m.Name), v); err != nil {
		return err
	}
	if err := appendReflog(tx, old, now, m.Note); err != nil {
		return err
	}
	events := sub(tx, indexEvents)
	for _, e := range m.Events {
		if e.Seq%checkpoint == 0 {
			if err := events.Put(eventKey(m.Name, e.Seq), []byte(sumOf(e.CID))); err != nil {
				return err
			}
		}
	}
	if m.Base == "" || len(m.Events) == 0 {
		return nil
	}
	return setBase(tx, m.Name, baseValue(protocol.RunHead(m.Base), m.Events[0].Seq-1))
}

// baseValue is a value of index/bases.
func baseValue(base string, shared protocol.Seq) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(shared)), base...)
}

// setBase notes which head a fork shares events with: v is a value of index/bases.
func setBase(tx *bolt.Tx, fork string, v []byte) error {
	if err := sub(tx, indexBases).Put([]byte(fork), v); err != nil {
		return err
	}
	if base, _, ok := parseBase(v); ok {
		return sub(tx, indexForks).Put(forkKey(base, fork), nil)
	}
	return nil
}

// dropBase removes what setBase noted.
func dropBase(tx *bolt.Tx, fork string) error {
	bases := sub(tx, indexBases)
	if base, _, ok := parseBase(bases.Get([]byte(fork))); ok {
		if err := sub(tx, indexForks).Delete(forkKey(base, fork)); err != nil {
			return err
		}
	}
	return bases.Delete([]byte(fork))
}

// forkKey is a key of index/forks.
func forkKey(base, fork string) []byte { return slices.Concat([]byte(base), []byte{0}, []byte(fork)) }

// indexOfForks makes index/forks of index/bases: a store of an older wf lacks it.
func indexOfForks(tx *bolt.Tx) error {
	forks := sub(tx, indexForks)
	if forks != nil {
		return nil
	}
	forks, err := tx.Bucket(bucketIndex).CreateBucket(indexForks)
	bases := sub(tx, indexBases)
	if err != nil || bases == nil {
		return err
	}
	return bases.ForEach(func(k, v []byte) error {
		base, _, ok := parseBase(v)
		if !ok {
			return nil
		}
		return forks.Put(forkKey(base, string(k)), nil)
	})
}

// Base is the run that a fork shares its first events with, and the last event that they share; "" where the run is no
// fork, or that one is not in the store.
func (s *Store) Base(ctx context.Context, run protocol.RunID) (base protocol.RunID, shared protocol.Seq, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		base, shared = "", 0
		if bases := sub(tx, indexBases); bases != nil {
			if name, seq, ok := parseBase(bases.Get([]byte(protocol.RunHead(run)))); ok {
				base, shared = protocol.RunOf(name), seq
			}
		}
		return nil
	})
	return base, shared, err
}

// parseBase reads a value of index/bases.
func parseBase(v []byte) (name string, shared protocol.Seq, ok bool) {
	if len(v) < 8 {
		return "", 0, false
	}
	return string(v[8:]), protocol.Seq(binary.BigEndian.Uint64(v)), true
}
