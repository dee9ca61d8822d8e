package pgstore

import (
	"context"
	_ "embed"
	"fmt"

	"wf/postgres"
	"wf/protocol"
)

var (
	//go:embed schema.sql
	schema1 string
	//go:embed schema2.sql
	schema2 string
	//go:embed schema3.sql
	schema3 string
)

// A step leads from a layout to the next one. It is never changed once it was released.
type step struct {
	sql string
	// writer is the lowest number of the rules by which the store may be written behind it. Where that is more than before, the step
	// waits until no process is there that writes by older ones.
	writer int
}

// steps are those to each layout: the first from an empty database to layout 1.
var steps = []step{{schema1, 1}, {schema2, 2}, {schema3, 3}}

// writer is the number of the rules by which this program writes. A store that needs a later one is not written.
//
//	2  events of files that were laid out on another machine
//	3  small blocks lie in lines of the reflog
const writer = 3

// Meta is what a store says of itself.
type Meta struct {
	Layout    int    // the number of steps that made it
	MinWriter int    // the lowest number of the rules by which it may be written
	UUID      string // of the store, in the form of PostgreSQL
}

const readMeta = `select layout::bigint, min_writer::bigint, uuid::text from wf.meta`

// noStore reports whether a statement failed because there are no tables of a store.
func noStore(err error) bool { return postgres.NoTable(err) }

// metaOf reads the meta row; ok is false where there is no store.
func metaOf(ctx context.Context, c *conn, sql string) (m Meta, ok bool, err error) {
	got, err := c.query(ctx, sql)
	if noStore(err) {
		return m, false, nil
	}
	if err != nil {
		return m, false, err
	}
	if len(got) != 1 {
		return m, false, fmt.Errorf("wf.meta has %d rows: %w", len(got), protocol.ErrCorrupt)
	}
	return Meta{int(readLong(got[0][0])), int(readLong(got[0][1])), string(got[0][2])}, true, nil
}

// usable is nil for a store that this program may read and write.
func (m Meta) usable() error {
	switch {
	case m.MinWriter > writer:
		return fmt.Errorf("it is written by the rules %d, this wf knows up to %d: %w", m.MinWriter, writer, protocol.ErrNewerStore)
	case m.Layout < len(steps):
		return protocol.ErrStore.With("wf store migrate changes it; processes of an older wf end then", "it has layout %d, this wf needs %d", m.Layout, len(steps))
	}
	return nil
}
