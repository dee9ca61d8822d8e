package cas

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"

	"wf/protocol"
)

// A Stamp is a memo or a table without its data.
type Stamp struct {
	Key  string
	Head protocol.Link // what it leads to; null for nothing
	At   int64         // unix µs, when it was stored
}

// StampSize is how many bytes of a stored memo or table StampOf wants.
const StampSize = 2*sumSize + 1 + 36 + 8

// StampOf is the stamp of a memo or table by the first StampSize bytes of Derived.Stored. One that cannot be read is of
// long ago.
func StampOf(key string, v []byte) Stamp {
	out := Stamp{Key: key}
	if len(v) > sumSize {
		r := reader{b: v[sumSize:]}
		out.Head = r.link()
		if r.take(sumSize); !r.bad && len(r.b) >= 8 {
			out.At = int64(binary.BigEndian.Uint64(r.b))
		}
	}
	return out
}

// aged are the derived values of which a collection keeps the newest.
var aged = []struct {
	prefix, with string // with: the prefix of what goes with one
	most         int
	lasts        time.Duration
}{{MemoPrefix, "", MemosKept, memosKeptAt}, {memoOfs, "", MemosKept, memosKeptAt}, {tableHeads, tablePrefix, TablesKept, tableKeptAt}}

// Aged are the keys that a collection at now, unix µs, drops: of memos and tables those that are old, and the oldest of those that are
// too many, and what is left of runs that are gone. list lists what there is under a prefix.
func Aged(ctx context.Context, s Lists, now int64, list func(prefix string) ([]Stamp, error)) (keys []string, err error) {
	if keys, err = goneKin(ctx, s); err != nil {
		return nil, err
	}
	memos, err := ofDeleted(ctx, s, list)
	if err != nil {
		return nil, err
	}
	keys = append(keys, memos...)
	for _, k := range aged {
		all, err := list(k.prefix)
		if err != nil {
			return nil, err
		}
		slices.SortFunc(all, func(a, b Stamp) int { return cmp.Or(cmp.Compare(b.At, a.At), strings.Compare(a.Key, b.Key)) })
		keep := 0
		for keep < min(len(all), k.most) && all[keep].At >= now-k.lasts.Microseconds() {
			keep++
		}
		for _, x := range all[keep:] {
			if k.with != "" {
				keys = append(keys, k.with+strings.TrimPrefix(x.Key, k.prefix)) // before what lists it
			}
			keys = append(keys, x.Key)
		}
	}
	return keys, nil
}

// dropAged removes what Aged names.
func (c *collector) dropAged(ctx context.Context) error {
	keys, err := Aged(ctx, c.s, c.clock, func(prefix string) ([]Stamp, error) { return c.s.memos(ctx, prefix) })
	if err != nil {
		return err
	}
	for part := range slices.Chunk(keys, gcKeys) {
		err := c.s.update(ctx, func(tx *bolt.Tx) error {
			for _, key := range part {
				if err := sub(tx, indexDerived).Delete([]byte(key)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
