package cas

import (
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"

	"wf/protocol"
)

// Tables are what sweeps and evals have come to, as screens show it. They are derived from what those commands keep, each is
// sealed by its user, and archives and backups hold none.
//
//	table/ID       ─► all of it
//	table-head/ID  ─► what a list shows of it

const (
	tablePrefix = "table/"
	tableHeads  = "table-head/"
	TablesKept  = 1000                // after a collection, those that changed last
	tableKeptAt = 90 * 24 * time.Hour // how long one is kept after it changed
)

// A StoredTable is a table as a store has it. Its id has the form of that of a run, and Claim tells whether a process still
// fills it.
type StoredTable struct {
	ID   protocol.RunID
	At   int64  // unix µs, when it was stored
	Head []byte // JSON: what a list shows of it
	Data []byte // JSON; nil in a list
}

// PutTable is what a batch holds under Derived for a table.
func PutTable(t StoredTable) []Derived {
	at := func(key string, data []byte) Derived {
		return Derived{Key: key + string(t.ID), Data: append(binary.BigEndian.AppendUint64(nil, uint64(t.At)), data...)}
	}
	return []Derived{at(tableHeads, t.Head), at(tablePrefix, t.Data)}
}

// tables lists the heads of tables, the one that changed last first.
func (s *Store) tables(ctx context.Context) ([]memoEntry, error) {
	all, err := s.memos(ctx, tableHeads)
	slices.SortFunc(all, newestFirst)
	return all, err
}

// dropTables removes those that are old, and the oldest of those that are too many.
func (c *collector) dropTables(ctx context.Context) error {
	all, err := c.s.tables(ctx)
	if err != nil {
		return err
	}
	return c.dropDerived(ctx, surplus(all, TablesKept, c.clock-tableKeptAt.Microseconds()), func(key string) []string {
		return []string{key, tablePrefix + strings.TrimPrefix(key, tableHeads)}
	})
}

// surplus are the entries that a collection drops: those behind the newest so many, and those from before a time.
func surplus(newest []memoEntry, most int, since int64) (drop []memoEntry) {
	keep := 0
	for keep < min(len(newest), most) && newest[keep].at >= since {
		keep++
	}
	return newest[keep:]
}

// dropDerived removes derived values, those of each entry at once.
func (c *collector) dropDerived(ctx context.Context, drop []memoEntry, keys func(key string) []string) error {
	for part := range slices.Chunk(drop, gcKeys) {
		err := c.s.update(ctx, func(tx *bolt.Tx) error {
			for _, m := range part {
				for _, key := range keys(m.key) {
					if err := sub(tx, indexDerived).Delete([]byte(key)); err != nil {
						return err
					}
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
