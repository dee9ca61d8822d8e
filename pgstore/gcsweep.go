package pgstore

import (
	"context"
	"fmt"

	"wf/cas"
	"wf/protocol"
)

const (
	// sweepRows is how many blocks are looked at by a statement.
	sweepRows = 10_000
	sweepPage = `select b.cid, b.used::bigint, coalesce(u.since, -1)::bigint from wf.blocks b left join wf.unreached u using (cid)
		where b.cid > $1 order by b.cid limit $2`
)

// Rows are locked in the order of their names, as writers do. A block that was stored again since it was looked at stays: its day is today's.
var (
	sweepBlocks = fmt.Sprintf(`with k as materialized (select cid from wf.blocks where cid = any($1) and used < $2 order by cid for update)
	delete from wf.blocks b using k where b.cid = k.cid returning b.cid, substr(b.data, 1, %d)`, cas.PackedHead)
	sweepSizes = fmt.Sprintf(`select cid, substr(data, 1, %d) from wf.blocks where cid = any($1) and used < $2`, cas.PackedHead)
)

const (
	forgetRows = `with k as materialized (select cid from wf.unreached where cid = any($1) order by cid for update)
	delete from wf.unreached u using k where u.cid = k.cid`
	noteRows = `insert into wf.unreached(cid, since) select cid, $2 from unnest($1::bytea[]) cid order by cid
	on conflict (cid) do update set since = excluded.since where unreached.since <> excluded.since`
)

// fate is what becomes of a block that is not reached.
type fate int

const (
	stays fate = iota // it was stored or noted lately
	noted             // its time begins
	dies
)

// judge says what becomes of a block that is not reached: used is the day on which it was stored, or the one before; since is when it was
// first found unreached, −1 for never. What was stored again after that starts anew, and what a clock that was wrong has noted.
func (c *collector) judge(used, since int64) fate {
	switch {
	case used >= c.day-1:
		return stays
	case since < 0 || since > c.day || used >= since:
		return noted
	case since < c.day-c.days:
		return dies
	}
	return stays
}

// sweep looks at all blocks, and removes those that are due.
func (c *collector) sweep(ctx context.Context) error {
	for last := []byte{}; last != nil; {
		var back, note, dead [][]byte // reached again, first found, due
		rows, err := c.s.query(ctx, sweepPage, bytea(last), long(sweepRows))
		if err != nil {
			return err
		}
		last = nil
		for _, r := range rows {
			last = r[0]
			id, ok := idIn(r[0])
			if !ok {
				return fmt.Errorf("wf.blocks names %x: %w", r[0], protocol.ErrCorrupt)
			}
			if _, ok := c.marks.seen[id]; ok {
				c.r.Kept++
				if readLong(r[2]) >= 0 {
					back = append(back, r[0])
				}
				continue
			}
			switch c.judge(readLong(r[1]), readLong(r[2])) {
			case dies:
				dead = append(dead, r[0])
				continue
			case noted:
				note = append(note, r[0])
			}
			c.r.Young++
		}
		if err := c.keep(ctx, back, note); err != nil {
			return err
		}
		if err := c.remove(ctx, dead); err != nil {
			return err
		}
	}
	return nil
}

// keep takes down what was found.
func (c *collector) keep(ctx context.Context, back, note [][]byte) error {
	if c.dry || len(back)+len(note) == 0 {
		return nil
	}
	_, err := c.write(ctx, statement{forgetRows, []param{byteas(back)}}, statement{noteRows, []param{byteas(note), long(c.day)}})
	return err
}

// remove removes blocks, unless they were stored since.
func (c *collector) remove(ctx context.Context, dead [][]byte) error {
	for len(dead) > 0 {
		part := dead[:min(gcRows, len(dead))]
		dead = dead[len(part):]
		params := []param{byteas(part), long(c.day - c.days)}
		var gone rows
		var err error
		if c.dry {
			gone, err = c.s.query(ctx, sweepSizes, params...)
		} else {
			var out []rows
			if out, err = c.write(ctx, statement{sweepBlocks, params}, statement{forgetRows, params[:1]}); err == nil {
				gone = out[0]
			}
		}
		if err != nil {
			return err
		}
		for _, r := range gone {
			l, err := protocol.CastLink(r[0])
			if err != nil {
				return err // idIn has passed it
			}
			size, err := cas.PackedLen(l, r[1])
			if err != nil {
				size = 0 // it was damaged
			}
			c.r.Bytes += size
		}
		c.r.Removed += int64(len(gone))
		c.r.Kept += int64(len(part) - len(gone))
	}
	return nil
}
