package pgstore

import (
	"context"
	"maps"
	"slices"
	"time"
)

// Groups leave the numbers of the heads that they moved beside that of their transaction: see readChanges, which says when such numbers
// mean something.
const (
	readMoved = `select s.snap::text, pg_snapshot_xmax(s.snap) < pg_snapshot_xmax($1::pg_snapshot),
	` + ofHistory + `, c.heads
	from (select pg_current_snapshot() as snap) s left join lateral (select heads from wf.changes
		where x >= pg_snapshot_xmin($1::pg_snapshot) and not pg_visible_in_snapshot(x, $1::pg_snapshot) limit $2) c on true`
	namesOfHeads = `select name from wf.heads where id = any($1) order by name`
)

// mostMoved is how many heads a look at what moved names at most.
const mostMoved = 5000

// Moved gives a function that names the heads which moved, came or went since it was called before. known is false where that is not
// known, or where it is more than some thousands: any may have. The first call only notes the state of the store, and known is false.
// After an error the next call names what this one should have named.
func (s *Store) Moved() func(ctx context.Context) (names []string, known bool, err error) {
	var snapshot, history string
	var last time.Time
	return func(ctx context.Context) (names []string, known bool, err error) {
		since, asked := snapshot, time.Now()
		most := int64(mostMoved + 1)
		if since == "" || asked.Sub(last) > changesKnown {
			since, most = "1:1:", 0
		}
		got, err := s.query(ctx, readMoved, text(since), long(most))
		if err != nil {
			return nil, false, err
		}
		back := len(got[0][1]) == 1 && got[0][1][0] == 1
		known = most > 0 && !back && history == string(got[0][2]) && len(got) <= mostMoved
		heads := map[int32]bool{}
		for _, r := range got {
			for id := range slices.Chunk(r[3], 4) {
				heads[readInt(id)] = true
			}
		}
		if known = known && len(heads) <= mostMoved; known && len(heads) > 0 {
			all := slices.Collect(maps.Keys(heads))
			moved, err := s.query(ctx, namesOfHeads, ints(len(all), func(i int) int32 { return all[i] }))
			if err != nil {
				return nil, false, err // the next call names them
			}
			for _, r := range moved {
				names = append(names, string(r[0]))
			}
		}
		snapshot, history, last = string(got[0][0]), string(got[0][2]), asked
		return names, known, nil
	}
}
