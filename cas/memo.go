package cas

import (
	"context"
	"encoding/binary"
	"errors"
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
	MemoPrefix  = "memo/" // of the keys of memos: what their heads lead to is kept
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
	return memoAt(ctx, s, MemoPrefix+key)
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
func PutMemo(key string, m StoredMemo) Derived { return putMemo(MemoPrefix+key, m) }

// PutMemoOf is PutMemo for MemoOf.
func PutMemoOf(id string, m StoredMemo) Derived { return putMemo(memoOfs+id, m) }

func putMemo(at string, m StoredMemo) Derived {
	return Derived{at, m.Memo, append(binary.BigEndian.AppendUint64(nil, uint64(m.At)), m.Data...)}
}

// DropMemo has a memo removed.
func DropMemo(key string) Derived { return Derived{Key: MemoPrefix + key} }

// memos lists the derived values under a prefix that ends in a slash, which say when they were stored.
func (s *Store) memos(ctx context.Context, prefix string) (out []Stamp, err error) {
	end := prefix[:len(prefix)-1] + "0" // behind the slash
	err = s.eachPart(ctx, [][]byte{bucketIndex, indexDerived}, []byte(prefix), []byte(end), func(part []entry) error {
		for _, it := range part {
			out = append(out, StampOf(string(it.key), it.value))
		}
		return nil
	})
	return out, err
}

// ofDeleted are the keys of memos, and of what they followed from, whose results are of runs that were deleted. One that cannot be read is
// of none.
func ofDeleted(ctx context.Context, s Lists, list func(prefix string) ([]Stamp, error)) (keys []string, err error) {
	stones, err := s.Heads(ctx, protocol.DeletedHead(""))
	if err != nil || len(stones) == 0 {
		return nil, err
	}
	gone := make(map[protocol.RunID]bool, len(stones))
	for _, h := range stones {
		run, _ := protocol.RunDeleted(h.Name)
		gone[run] = true
	}
	for _, prefix := range []string{MemoPrefix, memoOfs} {
		all, err := list(prefix)
		if err != nil {
			return nil, err
		}
		read := s.Reader(ctx)
		for _, x := range all {
			var m protocol.Memo
			if b, err := read(x.Head); err != nil || Decode(b, &m) != nil {
				if ctx.Err() != nil {
					return nil, context.Cause(ctx)
				}
				continue
			}
			if run, _, _ := strings.Cut(m.Origin, ":"); gone[protocol.RunID(run)] {
				keys = append(keys, x.Key)
			}
		}
	}
	return keys, nil
}

// reachMemos marks what memos lead to. One of which a part is missing is of no use, and harms nothing.
func (c *collector) reachMemos(ctx context.Context) error {
	all, err := c.s.memos(ctx, MemoPrefix)
	if err != nil {
		return err
	}
	for _, m := range all {
		if err := c.from(ctx, m.Head, m.Key); err != nil && (ctx.Err() != nil || !errors.Is(err, protocol.ErrCorrupt)) {
			return err
		}
	}
	return nil
}
