package pgstore

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"wf/protocol"
)

//go:embed schema.sql
var schema1 string

// steps lead from each layout to the next one: the first from an empty database to layout 1. A step is never
// changed once it was released.
var steps = []string{schema1}

// writer is the number of the rules by which this program writes. A store that needs a later one is not written.
const writer = 1

// Meta is what a store says of itself.
type Meta struct {
	Layout    int    // the number of steps that made it
	MinWriter int    // the lowest number of the rules by which it may be written
	UUID      string // of the store, in the form of PostgreSQL
}

const readMeta = `select layout::bigint, min_writer::bigint, uuid::text from wf.meta`

// noStore reports whether a statement failed because there are no tables of a store.
func noStore(err error) bool {
	e, is := errors.AsType[*pgconn.PgError](err)
	return is && (e.Code == "42P01" || e.Code == "3F000") // no such table, or schema
}

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
		return protocol.ErrStore.With("wf store migrate changes it, once no older wf uses it", "it has layout %d, this wf needs %d", m.Layout, len(steps))
	}
	return nil
}

// Init makes a store in an empty database, as the owner of its tables. Where there is one already it changes nothing but
// the rights of roles.
func Init(ctx context.Context, dsn string, r Roles) (Meta, error) {
	return change(ctx, dsn, true, r)
}

// Migrate brings a store to the layout of this program; it changes nothing where it has that, or a later one.
func Migrate(ctx context.Context, dsn string) (Meta, error) { return change(ctx, dsn, false, Roles{}) }

// Roles are the roles of the database, which exist already, that are given rights on the store; "" is none.
type Roles struct {
	Worker string // drives runs: it removes neither blocks nor lines of the reflog
	GC     string // removes them
	Reader string
}

// grants are what each role may do.
func (r Roles) grants() (out []string) {
	give := func(role string, rights ...string) {
		if role == "" {
			return
		}
		name := `"` + strings.ReplaceAll(role, `"`, `""`) + `"`
		out = append(out, "grant usage on schema wf to "+name, "grant select on all tables in schema wf to "+name)
		for _, right := range rights {
			out = append(out, "grant "+right+" to "+name)
		}
	}
	write := []string{"insert, update on wf.heads", "insert on wf.reflog", "insert, update on wf.blocks", "insert, update, delete on wf.derived", "insert, delete on wf.changes", "insert, update, delete on wf.workers", "insert, update, delete on wf.runs"}
	give(r.Worker, write...)
	give(r.GC, append(write, "delete on wf.blocks", "delete on wf.reflog", "delete on wf.heads", "insert, update, delete on wf.unreached")...)
	give(r.Reader)
	return out
}

// lockKey keeps two that make or change a store apart.
const lockKey = 0x7766_7067 // "wfpg"

func change(ctx context.Context, dsn string, make bool, r Roles) (m Meta, err error) {
	a, err := parse(dsn)
	if err != nil {
		return m, err
	}
	c, err := a.connect(ctx, pgconn.ValidateConnectTargetSessionAttrsReadWrite)
	if err != nil {
		return m, err
	}
	defer c.close()
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", a.shown, classify(ctx, err))
		}
	}()
	do := func(sql string) error { return c.pg.Exec(ctx, sql).Close() }
	if err := do(fmt.Sprintf("begin; set local synchronous_commit = on; set local client_min_messages = warning; select pg_advisory_xact_lock(%d)", lockKey)); err != nil {
		return m, err
	}
	// Another statement, after the lock: it sees what the one before has made.
	there, err := c.query(ctx, "select to_regclass('wf.meta') is not null")
	if err != nil {
		return m, err
	}
	if there[0][0][0] == 0 {
		if !make {
			return m, errNoStore
		}
		err := do(`create schema if not exists wf;
create table wf.meta (one boolean primary key default true check (one), layout integer not null, min_writer integer not null, uuid uuid not null);
insert into wf.meta(layout, min_writer, uuid) values (0, ` + fmt.Sprint(writer) + `, gen_random_uuid())`)
		if err != nil {
			return m, err
		}
	}
	if m, _, err = metaOf(ctx, c, readMeta+" for update"); err != nil {
		return m, err
	}
	if m.MinWriter > writer {
		return m, m.usable()
	}
	for ; m.Layout < len(steps); m.Layout++ {
		if err := do(steps[m.Layout]); err != nil {
			return m, err
		}
	}
	for _, g := range r.grants() {
		if err := do(g); err != nil {
			return m, err
		}
	}
	return m, do(fmt.Sprintf("update wf.meta set layout = greatest(layout, %d); commit", m.Layout))
}

var errNoStore = protocol.ErrStore.With("wf store init makes one", "the database holds no store")
