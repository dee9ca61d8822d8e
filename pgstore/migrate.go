package pgstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"wf/postgres"
	"wf/protocol"
)

// Init makes a store in an empty database, as the owner of its tables. Where there is one already it changes nothing but
// the rights of roles.
func Init(ctx context.Context, dsn string, r Roles) (Meta, error) {
	return change(ctx, dsn, func(c *conn, m *Meta) error {
		there, err := c.locked(ctx, m)
		if err == nil && there {
			err = m.usable() // the rights are of all tables of this layout
		} else if err == nil {
			err = c.made(ctx, m)
		}
		if err == nil {
			err = c.unspoiled(ctx)
		}
		for _, g := range r.grants() {
			if err == nil {
				err = c.do(ctx, g)
			}
		}
		if err == nil {
			err = c.do(ctx, "commit")
		}
		return err
	})
}

// Migrate brings a store to the layout of this program; it changes nothing where it has that, or a later one. A step behind which
// older programs may not write has those end that beat, and waits for them: tell is told for which, in a line. A Migrate that
// is cancelled meanwhile has left a store that no program uses; another one goes on with it.
func Migrate(ctx context.Context, dsn string, tell func(string)) (Meta, error) {
	return change(ctx, dsn, func(c *conn, m *Meta) error {
		for waited := false; ; waited = true {
			there, err := c.locked(ctx, m)
			if err == nil && !there {
				err = errNoStore
			}
			if err == nil {
				err = c.unspoiled(ctx)
			}
			if err != nil {
				return err
			}
			older, err := c.migrated(ctx, m, waited)
			if err != nil || !older {
				return err
			}
			if err := c.awaitOlder(ctx, m.MinWriter, tell); err != nil {
				return err
			}
		}
	})
}

// Roles are the roles of the database, which exist already, that are given rights on the store; "" is none.
type Roles struct {
	Worker string // drives runs: it removes neither blocks nor lines of the reflog
	GC     string // removes them
	Reader string
}

// driving are the rights by which runs are driven.
var driving = []string{"insert, update on wf.heads", "insert, update (used) on wf.reflog", "insert, update on wf.blocks", "insert, update, delete on wf.derived", "insert, update, delete on wf.notes",
	"insert, delete on wf.changes", "insert, update, delete on wf.workers", "insert, update, delete on wf.runs"}

const readLacking = `select w.what || case w.col when '' then '' else ' (' || w.col || ')' end || ' on ' || w.rel from unnest($1::text[], $2::text[], $3::text[]) with ordinality as w(rel, what, col, at)
	where not case when w.col = '' then has_table_privilege(w.rel, w.what) else has_column_privilege(w.rel, w.col, w.what) end order by w.at`

// undriven is the finding about a role that may not drive runs.
func (c *conn) undriven(ctx context.Context) (out []Finding, err error) {
	var rels, whats, cols []string
	for _, right := range driving {
		all, rel, _ := strings.Cut(right, " on ")
		for what := range strings.SplitSeq(all, ", ") {
			what, col, _ := strings.Cut(strings.TrimSuffix(what, ")"), " (")
			rels, whats, cols = append(rels, rel), append(whats, what), append(cols, col)
		}
	}
	got, err := c.query(ctx, readLacking, texts(rels), texts(whats), texts(cols))
	if err != nil || len(got) == 0 {
		return nil, err
	}
	var lacks []string
	for _, r := range got {
		lacks = append(lacks, string(r[0]))
	}
	return []Finding{{Setting: "what this role may do", Actual: "too little to drive runs: it lacks " + strings.Join(lacks, ", "), Want: "what wf store init --worker ROLE grants, unless it only reads"}}, nil
}

// grants are what each role may do.
func (r Roles) grants() (out []string) {
	give := func(role string, rights ...string) {
		if role == "" {
			return
		}
		name := `"` + strings.ReplaceAll(role, `"`, `""`) + `"`
		out = append(out, "grant usage on schema wf to "+name, "grant select on all tables in schema wf to "+name, "grant execute on all functions in schema wf to "+name)
		for _, right := range rights {
			out = append(out, "grant "+right+" to "+name)
		}
	}
	give(r.Worker, driving...)
	give(r.GC, append(slices.Clone(driving), "delete on wf.blocks", "update, delete on wf.reflog", "delete on wf.heads", "insert, update, delete on wf.unreached")...)
	give(r.Reader)
	return out
}

// lockKey keeps two that make or change a store apart.
const lockKey = 0x7766_7067 // "wfpg"

var errNoStore = protocol.ErrStore.With("wf store init makes one", "the database holds no store")

// change changes a store in a session of its own.
func change(ctx context.Context, dsn string, by func(*conn, *Meta) error) (m Meta, err error) {
	a, err := postgres.Parse(dsn)
	if err != nil {
		return m, err
	}
	c, err := connect(ctx, a, postgres.Writable, nil)
	if err != nil {
		return m, err
	}
	defer c.close()
	if err := by(c, &m); err != nil {
		return m, fmt.Errorf("%s: %w", a.Shown, classify(ctx, err))
	}
	return m, nil
}

func (c *conn) do(ctx context.Context, sql string) error { return c.Do(ctx, sql) }

// locked begins a transaction in which no other process changes the store, and reads what it is; false where there is none.
func (c *conn) locked(ctx context.Context, m *Meta) (there bool, err error) {
	if err := c.do(ctx, fmt.Sprintf("begin; set local synchronous_commit = on; set local client_min_messages = warning; select pg_advisory_xact_lock(%d)", lockKey)); err != nil {
		return false, err
	}
	// Other statements, after the lock: they see what the one before has made.
	if err := c.ownPlace(ctx); err != nil {
		return false, err
	}
	found, err := c.query(ctx, "select to_regclass('wf.meta') is not null")
	if err != nil || found[0][0][0] == 0 {
		return false, err
	}
	if *m, _, err = metaOf(ctx, c, readMeta+" for update"); err == nil && m.MinWriter > writer {
		err = m.usable()
	}
	return true, err
}

// made makes the tables of this program.
func (c *conn) made(ctx context.Context, m *Meta) error {
	sql := []string{`create schema if not exists wf;
create table wf.meta (one boolean primary key default true check (one), layout integer not null, min_writer integer not null, uuid uuid not null)`}
	for _, s := range steps {
		sql = append(sql, s.sql)
	}
	sql = append(sql, pinFunctions, fmt.Sprintf("insert into wf.meta(layout, min_writer, uuid) values (%d, %d, gen_random_uuid())", len(steps), writer))
	for _, s := range sql {
		if err := c.do(ctx, s); err != nil {
			return err
		}
	}
	var err error
	*m, _, err = metaOf(ctx, c, readMeta)
	return err
}

// migrated takes the steps that are left, and commits. Before one behind which older programs may not write it commits that they
// may not, unless they were waited for: then older is true, and the step is still to be taken.
func (c *conn) migrated(ctx context.Context, m *Meta, waited bool) (older bool, err error) {
	for ; m.Layout < len(steps); m.Layout++ {
		s := steps[m.Layout]
		if older = m.Layout > 0 && s.writer > steps[m.Layout-1].writer && !waited; older {
			m.MinWriter = max(m.MinWriter, s.writer)
			break
		}
		if err := c.do(ctx, s.sql); err != nil {
			return false, err
		}
		waited = false // for a later one
	}
	if !older && m.Layout == len(steps) { // a later layout may have others
		if err := c.do(ctx, pinFunctions); err != nil {
			return false, err
		}
	}
	return older, c.do(ctx, fmt.Sprintf("update wf.meta set layout = greatest(layout, %d), min_writer = greatest(min_writer, %d); commit", m.Layout, m.MinWriter))
}

// olderWorkers are those that write by rules before a number.
const olderWorkers = `select id, beat, lease::bigint, host, pid::bigint from wf.workers where writer < $1 order by host, pid`

// awaitOlder waits until no process is there that writes by rules before a number: each ends at its next beat, or is dead once its
// beat was seen unchanged for its lease, by the clock of this process.
func (c *conn) awaitOlder(ctx context.Context, number int, tell func(string)) error {
	seen, told := map[string]sighting{}, ""
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		got, err := c.query(ctx, olderWorkers, integer(int32(number)))
		if err != nil {
			return err
		}
		var alive []string
		for _, r := range got {
			id, beat, lease := string(r[0]), readLong(r[1]), time.Duration(readLong(r[2]))*time.Millisecond
			x, ok := seen[id]
			if !ok || x.beat != beat {
				x = sighting{beat: beat, since: time.Now()}
				seen[id] = x
			}
			if time.Since(x.since) < lease {
				alive = append(alive, nameWorker(string(r[3]), readLong(r[4])))
			}
		}
		if len(alive) == 0 {
			return nil
		}
		if now := strings.Join(alive, ", "); now != told && tell != nil {
			tell("waits for processes of an older wf, which end, or are taken for dead after a lease: " + now)
			told = now
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
