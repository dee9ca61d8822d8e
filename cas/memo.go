package cas

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"time"

	"wf/protocol"
)

// Memos are results that may be reused. They are derived: each is sealed by its user, losing one has its visit performed
// again, and archives and backups hold none. A collection keeps what they lead to.
//
//	memo/KEY    ─► the Memo and its payloads
//	memo-of/ID  ─► what the newest result of a role followed from, to say what differs

const (
	memoPrefix  = "memo/"
	memoOfs     = "memo-of/"
	MemosKept   = 10_000              // after a collection, the newest
	memosKeptAt = 90 * 24 * time.Hour // how long one is kept after it was stored
)

// A StoredMemo is a memo as a store has it.
type StoredMemo struct {
	Memo protocol.Link
	At   int64 // unix µs, when it was stored here
	Data []byte
}

// FindMemo finds a memo that this user stored; ok is false where there is none.
func FindMemo(ctx context.Context, s DerivedReader, key string) (m StoredMemo, ok bool, err error) {
	return memoAt(ctx, s, memoPrefix+key)
}

// FindMemoOf finds what the newest result of a role followed from.
func FindMemoOf(ctx context.Context, s DerivedReader, id string) (m StoredMemo, ok bool, err error) {
	return memoAt(ctx, s, memoOfs+id)
}

func memoAt(ctx context.Context, s DerivedReader, at string) (m StoredMemo, ok bool, err error) {
	d, sealed, err := s.Derived(ctx, at)
	if err != nil || !sealed || !d.Head.Defined() || len(d.Data) < 8 {
		return m, false, err
	}
	return StoredMemo{d.Head, int64(binary.BigEndian.Uint64(d.Data)), d.Data[8:]}, true, nil
}

// PutMemo is what a batch holds under Derived for a memo, and PutMemoOf for what it followed from.
func PutMemo(key string, m StoredMemo) Derived { return putMemo(memoPrefix+key, m) }

// PutMemoOf is PutMemo for MemoOf.
func PutMemoOf(id string, m StoredMemo) Derived { return putMemo(memoOfs+id, m) }

func putMemo(at string, m StoredMemo) Derived {
	return Derived{at, m.Memo, append(binary.BigEndian.AppendUint64(nil, uint64(m.At)), m.Data...)}
}

// DropMemo has a memo removed.
func DropMemo(key string) Derived { return Derived{Key: memoPrefix + key} }

// memoEntry is a memo without its data.
type memoEntry struct {
	key  string
	memo protocol.Link
	at   int64
}

// memos lists those under a prefix; what cannot be read is listed as of long ago.
func (s *Store) memos(ctx context.Context, prefix string) (out []memoEntry, err error) {
	end := prefix[:len(prefix)-1] + "0" // behind the slash
	err = s.eachPart(ctx, [][]byte{bucketIndex, indexDerived}, []byte(prefix), []byte(end), func(part []entry) error {
		for _, it := range part {
			m := memoEntry{key: string(it.key)}
			if len(it.value) > sumSize {
				r := reader{b: it.value[sumSize:]}
				m.memo = r.link()
				if r.take(sumSize); !r.bad && len(r.b) >= 8 {
					m.at = int64(binary.BigEndian.Uint64(r.b))
				}
			}
			out = append(out, m)
		}
		return nil
	})
	return out, err
}

// dropMemos removes those that are old, and the oldest of those that are too many.
func (c *collector) dropMemos(ctx context.Context) error {
	for _, prefix := range []string{memoPrefix, memoOfs} {
		all, err := c.s.memos(ctx, prefix)
		if err != nil {
			return err
		}
		slices.SortFunc(all, newestFirst)
		drop := surplus(all, MemosKept, c.clock-memosKeptAt.Microseconds())
		if err := c.dropDerived(ctx, drop, func(key string) []string { return []string{key} }); err != nil {
			return err
		}
	}
	return nil
}

// newestFirst orders entries by when they were stored.
func newestFirst(a, b memoEntry) int {
	return cmp.Or(cmp.Compare(b.at, a.at), strings.Compare(a.key, b.key))
}

// reachMemos marks what memos lead to. One of which a part is missing is of no use, and harms nothing.
func (c *collector) reachMemos(ctx context.Context) error {
	all, err := c.s.memos(ctx, memoPrefix)
	if err != nil {
		return err
	}
	for _, m := range all {
		if err := c.from(ctx, m.memo, m.key); err != nil && (ctx.Err() != nil || !errors.Is(err, protocol.ErrCorrupt)) {
			return err
		}
	}
	return nil
}
