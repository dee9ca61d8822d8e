package pgstore

import (
	"context"
	"fmt"

	"wf/cas"
)

// Lines of the reflog with blocks in them, by pages. Of a journal that is there all are reached, and their blocks are only counted.
const linesPage = `select l.head, l.seq, l.n, l.used, length(l.keys)/7, case when l.seq > 0 and h.cid is not null then null else l.data end, l.keys
	from wf.reflog l left join wf.heads h on h.id = l.head where (l.head, l.seq, l.n) > ($1, $2, $3) and l.data is not null order by l.head, l.seq, l.n limit $4`

// A line is emptied when all that lies in it is due. Lines are locked in the order of their names.
const (
	readSince  = `select cid, since::bigint from wf.unreached where cid = any($1)`
	emptyLines = `with k as materialized (select l.head, l.seq, l.n, t.new from unnest($1::int[], $2::int[], $3::bigint[], $5::bytea[]) t(head, seq, n, new) join wf.reflog l using (head, seq, n)
		where l.used < $4 and l.data is not null order by l.head, l.seq, l.n for update of l)
	update wf.reflog l set data = null, keys = '', new = k.new from k where l.head = k.head and l.seq = k.seq and l.n = k.n returning l.head, l.seq, l.n`
	countLines = `select l.head, l.seq, l.n from unnest($1::int[], $2::int[], $3::bigint[]) t(head, seq, n) join wf.reflog l using (head, seq, n) where l.used < $4 and l.data is not null`
)

// lineID names a line.
type lineID struct {
	head, seq int32
	n         int64
}

func lineIDOf(row [][]byte) lineID { return lineID{readInt(row[0]), readInt(row[1]), readLong(row[2])} }

func lineIDs(all []lineID) []param {
	return []param{
		ints(len(all), func(i int) int32 { return all[i].head }),
		ints(len(all), func(i int) int32 { return all[i].seq }),
		longs(len(all), func(i int) (int64, bool) { return all[i].n, false }),
	}
}

// oldLine is a line that is not of a journal.
type oldLine struct {
	id     lineID
	used   int64
	blocks []cas.Block
}

// sweepLines looks at all blocks that lie in lines, and removes those that are due.
func (c *collector) sweepLines(ctx context.Context) error {
	for last, more := (lineID{-1, -1, -1}), true; more; {
		rows, err := c.s.query(ctx, linesPage, integer(last.head), integer(last.seq), long(last.n), long(pageRows))
		if err != nil {
			return err
		}
		var old []oldLine
		var cids [][]byte
		for _, r := range rows {
			last = lineIDOf(r)
			if r[5] == nil {
				c.r.Kept += int64(readInt(r[4]))
				continue
			}
			blocks, err := blocksIn(r[5], r[6])
			if err != nil {
				return fmt.Errorf("move %d of head %d in the reflog, of which wf verify tells more; nothing more was removed: %w", last.n, last.head, err)
			}
			for _, b := range blocks {
				cids = append(cids, b.Link.Bytes())
			}
			old = append(old, oldLine{last, int64(readInt(r[3])), blocks})
		}
		if len(old) > 0 {
			if err := c.sweepOld(ctx, old, cids); err != nil {
				return err
			}
		}
		more = len(rows) == pageRows
	}
	return nil
}

// sweepOld is sweep for a page of lines: each stays, or goes, as a whole.
func (c *collector) sweepOld(ctx context.Context, old []oldLine, cids [][]byte) error {
	rows, err := c.s.query(ctx, readSince, byteas(cids))
	if err != nil {
		return err
	}
	since := make(map[string]int64, len(rows))
	for _, r := range rows {
		since[string(r[0])] = readLong(r[1])
	}
	var back, note [][]byte
	var dead []oldLine
	for _, l := range old {
		due := 0
		for _, b := range l.blocks {
			cid := b.Link.Bytes()
			day, known := since[string(cid)]
			if !known {
				day = -1
			}
			if id, ok := idIn(cid); ok {
				if _, ok := c.marks.seen[id]; ok {
					c.r.Kept++
					if known {
						back = append(back, cid)
					}
					continue
				}
			}
			c.r.Young++
			switch c.judge(l.used, day) {
			case dies:
				due++
			case noted:
				if since[string(cid)] != c.day { // it may lie in several lines
					since[string(cid)] = c.day
					note = append(note, cid)
				}
			}
		}
		if due == len(l.blocks) {
			c.r.Young -= int64(due)
			dead = append(dead, l)
		}
	}
	if err := c.keep(ctx, back, note); err != nil {
		return err
	}
	return c.empty(ctx, dead)
}

// empty removes the blocks of lines, unless they were asked for since.
func (c *collector) empty(ctx context.Context, dead []oldLine) error {
	if len(dead) == 0 {
		return nil
	}
	ids, of, cids := make([]lineID, len(dead)), make(map[lineID]oldLine, len(dead)), [][]byte(nil)
	for i, l := range dead {
		ids[i], of[l.id] = l.id, l
		c.r.Kept += int64(len(l.blocks))
		for _, b := range l.blocks {
			cids = append(cids, b.Link.Bytes())
		}
	}
	params := append(lineIDs(ids), long(c.day-c.days))
	var gone rows
	var err error
	if c.dry {
		gone, err = c.s.query(ctx, countLines, params...)
	} else {
		var out []rows
		if out, err = c.write(ctx, statement{emptyLines, append(params, array(oidBytes, oidBytea, len(dead), func(i int) []byte {
			return dead[i].blocks[len(dead[i].blocks)-1].Link.Bytes()
		}))}, statement{forgetRows, []param{byteas(cids)}}); err == nil {
			gone = out[0]
		}
	}
	if err != nil {
		return err
	}
	for _, r := range gone {
		for _, b := range of[lineIDOf(r)].blocks {
			c.r.Kept--
			c.r.Removed++
			c.r.Bytes += int64(len(b.Data))
		}
	}
	return nil
}
