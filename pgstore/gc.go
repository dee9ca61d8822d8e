package pgstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"wf/cas"
	"wf/postgres"
	"wf/protocol"
)

// MinGrace is the shortest time for which a collection keeps what nothing leads to, and the one where no other is asked for.
const MinGrace = 3 * 24 * time.Hour

// GC removes blocks that nothing reaches: no head, no move of a head within the reflog's time, and no memo. Others may go on
// working, and collections run at once. A reachable block that is missing or damaged ends it with an error wrapping
// ErrCorrupt before any is removed.
//
// A block goes once two collections found it unreached, the first of them at least the grace before, and nobody stored it since:
//
//	unreached ──► wf.unreached(cid, day) ──► unreached, a grace later ──► removed
//	              reached, or stored again: it starts anew
//
// So a writer may read a block while something leads to it, and name it in a commit up to MinGrace later; and it may store a block that
// long before the commit that leads to it. The first collection of a store removes nothing, and what a deleted run reached stays as
// long. The days are those of the server's clock.
//
// It needs the rights of Roles.GC, and ends with an error wrapping ErrReadOnly where the role lacks them; a dry run needs none.
//
// Interrupted at any point the store is sound, and the next collection goes on. Space in the files of the database is
// freed by its own vacuum.
func GC(ctx context.Context, s *Store, o cas.GCOptions) (r cas.GCReport, err error) {
	defer func() {
		if err != nil {
			r, err = cas.GCReport{}, fmt.Errorf("gc of %s: %w", s.Dir(), err)
		}
	}()
	if o.Grace == 0 {
		o.Grace = MinGrace
	}
	if o.Grace < MinGrace {
		return r, protocol.ErrUsage.With("leave the grace out", "a grace of %s is too short: other processes may be about to name what nothing leads to for %s", o.Grace, MinGrace)
	}
	c := &collector{s: s, dry: o.DryRun, days: int64((o.Grace + 24*time.Hour - 1) / (24 * time.Hour)), marks: s.newWalk(), r: cas.GCReport{Schema: "wf.gc/v1", DryRun: o.DryRun}}
	if c.r.Before, err = s.fileSize(ctx); err != nil {
		return r, err
	}
	c.r.After = c.r.Before
	for _, step := range []struct {
		writes bool
		do     func(context.Context) error
	}{{true, c.connect}, {false, c.clock}, {true, c.dropAged}, {false, c.mark}, {false, c.sweep}, {false, c.sweepLines}, {true, c.dropGone}} {
		if step.writes && c.dry {
			continue
		}
		if err := step.do(ctx); err != nil {
			return r, c.end(err)
		}
	}
	if !c.dry {
		c.r.After, err = s.fileSize(ctx)
	}
	return c.r, c.end(err)
}

// collector is one collection.
type collector struct {
	s    *Store
	dry  bool
	days int64 // of grace
	c    *conn // to write; nil for a dry run
	r    cas.GCReport

	day   int64 // when it began, as in wf.blocks.used
	now   int64 // unix µs
	marks *walk
}

// mayCollect is whether a role has what a collection needs.
const mayCollect = `select current_user::text, has_table_privilege('wf.blocks', 'delete') and has_table_privilege('wf.reflog', 'delete') and has_table_privilege('wf.reflog', 'update')
	and has_table_privilege('wf.derived', 'delete') and has_table_privilege('wf.unreached', 'insert') and has_table_privilege('wf.unreached', 'delete')`

// connect opens the connection by which it writes, and looks at what it may.
func (c *collector) connect(ctx context.Context) (err error) {
	if c.c, err = c.s.connect(ctx, true); err != nil {
		return err
	}
	got, err := c.c.query(ctx, mayCollect)
	if err != nil {
		return classify(ctx, err)
	}
	if may := got[0][1]; len(may) != 1 || may[0] == 0 {
		return protocol.ErrReadOnly.With("open the store as the role that was given to Init for collections, or as the owner of its tables",
			"the role %q may not remove blocks", got[0][0])
	}
	return nil
}

func (c *collector) end(err error) error {
	if c.c != nil {
		c.c.close()
	}
	return err
}

func (c *collector) clock(ctx context.Context) error {
	got, err := c.s.query(ctx, `select (extract(epoch from statement_timestamp()) / 86400)::int::bigint, (extract(epoch from statement_timestamp()) * 1000000)::bigint`)
	if err == nil {
		c.day, c.now = readLong(got[0][0]), readLong(got[0][1])
	}
	return err
}

// gcRows is how many rows a transaction of a collection changes about.
const gcRows = 1000

// write performs statements in one transaction, and again where it was the victim of a deadlock.
func (c *collector) write(ctx context.Context, statements ...statement) (out []rows, err error) {
	for range 5 {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		out, _, err = c.c.transact(statements...)
		if !postgres.Deadlocked(err) {
			break
		}
	}
	return out, classify(ctx, err)
}

// dropAged removes what cas.Aged names.
func (c *collector) dropAged(ctx context.Context) error {
	keys, err := cas.Aged(ctx, c.s, c.now, func(prefix string) ([]cas.Stamp, error) { return c.stamps(ctx, prefix) })
	if err != nil {
		return err
	}
	for part := range slices.Chunk(keys, gcRows) {
		if _, err := c.write(ctx, statement{`delete from wf.derived where key = any($1)`, []param{texts(part)}}); err != nil {
			return err
		}
	}
	return nil
}

func (c *collector) stamps(ctx context.Context, prefix string) (out []cas.Stamp, err error) {
	err = c.s.each(ctx, func(row [][]byte) error {
		out = append(out, cas.StampOf(string(row[0]), row[1]))
		return nil
	}, fmt.Sprintf(`select key, substr(value, 1, %d) from wf.derived where `+under("key"), cas.StampSize), prefixed(prefix)...)
	return out, err
}

// mark finds what is reached. All heads are of one snapshot: of heads that were read one after another, the base of a fork could be
// deleted after the names before it were passed, and the fork be made there.
func (c *collector) mark(ctx context.Context) error {
	w := c.marks
	w.fault = func(l protocol.Link, err error) error {
		return fmt.Errorf("block %s is reached, and it is missing or damaged; nothing was removed, wf verify tells more: %w: %w", l, protocol.ErrCorrupt, err)
	}
	strict := w.fault
	root := func(row [][]byte) error {
		id, ok := idIn(row[1])
		if !ok {
			return fmt.Errorf("head %s: %x is no block of this store: %w", row[0], row[1], protocol.ErrCorrupt)
		}
		w.add(id)
		return nil
	}
	from := func(sql string, params ...param) error {
		if err := c.s.each(ctx, root, sql, params...); err != nil {
			return err
		}
		return w.run(ctx)
	}
	events := func(row [][]byte) error {
		return w.addMove(row, math.MaxInt64)
	}
	if err := c.s.each(ctx, events, movedEvents+` join wf.heads h on h.id = l.head where l.seq > 0 and h.cid is not null`); err != nil {
		return err
	}
	if err := from(`select name, cid from wf.heads where cid is not null`); err != nil {
		return err
	}
	// Where journals were, their newer events lead to. What other heads moved to is kept as far as it is there: what is not was
	// collected when it was older than the reflog kept.
	w.fault = func(l protocol.Link, err error) error {
		if errors.Is(err, protocol.ErrNotFound) {
			return nil
		}
		return strict(l, err)
	}
	const lately = `select h.name, l.new from wf.reflog l join wf.heads h on h.id = l.head where l.seq = 0 and l.ts >= $1 and h.cid is not null`
	if err := from(lately, long(c.now-cas.ReflogKept.Microseconds())); err != nil {
		return err
	}
	// A memo of which a part is missing is of no use, and harms nothing.
	w.fault = func(protocol.Link, error) error { return nil }
	memos, err := c.stamps(ctx, cas.MemoPrefix)
	if err != nil {
		return err
	}
	for _, m := range memos {
		if id, ok := idIn(m.Head.Bytes()); ok {
			w.add(id)
		}
	}
	return w.run(ctx)
}
