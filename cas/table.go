package cas

import (
	"encoding/binary"
	"time"

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
