package pgstore

import (
	"context"
	"slices"
	"time"

	"wf/cas"
	"wf/protocol"
)

// leftHeads are the heads that are no more and have lines in the reflog, with how often they had moved. The events of a run that was
// deleted are found there by its forks, and by theirs: while one is there, so are the lines. Writers look for their last moves there to
// tell what became of them, so those of the grace stay.
const leftHeads = `with recursive leans(base) as (
		select base from wf.heads where cid is not null and base is not null
		union select h.base from leans l join wf.heads h on h.name = l.base where h.base is not null)
	select h.id, h.n from wf.heads h where h.cid is null and h.n > 0 and h.ts < $1 and not exists (select from leans l where l.base = h.name)
		and exists (select from wf.reflog l where l.head = h.id and l.data is null)`

// A head that was dropped may move again meanwhile: those lines have a higher n. A line stays while blocks lie in it.
const dropLines = `with k as (
		select l.head, l.seq, l.n from unnest($1::int[], $2::bigint[]) t(head, n) join wf.reflog l on l.head = t.head and l.n <= t.n and l.data is null limit $3)
	delete from wf.reflog l using k where l.head = k.head and l.seq = k.seq and l.n = k.n returning l.n`

// dropStates removes what was derived of runs and came late: its commit met the deletion.
const dropStates = `delete from wf.derived d using wf.heads h where h.gone and starts_with(h.name, $1) and d.key = $2 || substr(h.name, length($1) + 1)`

// dropGone removes what is left of runs that were deleted, and of changes that every follower has seen.
func (c *collector) dropGone(ctx context.Context) error {
	_, err := c.write(ctx, statement{dropStates, []param{text(protocol.RunHead("")), text(cas.StateKey(""))}}, statement{dropMarks, []param{text(protocol.RunHead("")), text(elsewhere)}}, statement{dropChanges, nil})
	if err != nil {
		return err
	}
	left, err := c.s.query(ctx, leftHeads, long(c.now-c.days*(24*time.Hour).Microseconds()))
	if err != nil {
		return err
	}
	for part := range slices.Chunk(left, 100) {
		heads := ints(len(part), func(i int) int32 { return readInt(part[i][0]) })
		moved := longs(len(part), func(i int) (int64, bool) { return readLong(part[i][1]), false })
		for more := true; more; {
			out, err := c.write(ctx, statement{dropLines, []param{heads, moved, long(gcRows)}})
			if err != nil {
				return err
			}
			more = len(out[0]) == gcRows
		}
	}
	return nil
}
