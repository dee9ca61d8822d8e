package pgstore

import (
	"context"
	"sync"
	"time"

	"wf/protocol"
)

// seen is the last move that was acknowledged to this process. A database in which its line of the reflog is missing was put back to
// an older copy, or is a primary that was left behind by a promotion. No counter would tell: they repeat.
type seen struct {
	mu   sync.Mutex
	move row
	at   time.Time
}

// seenLasts is how long a move proves something: later a collection may have removed its line.
const seenLasts = 12 * time.Hour

const readSeen = `select m.uuid::text = $1 and not exists(
	select from wf.reflog l where head = (select id from wf.heads where name = $2) and seq = $3 and ts = $6
	and case when data is null then new = $4 else data = $7 and new in ($4, '') end
	and case when $5::bytea is null then name <> '' else name = '' and coalesce((select p.new from wf.reflog p where p.head = l.head and p.n = l.n - 1 order by p.seq desc, p.n desc limit 1), '') in ($5, '') end) from wf.meta m`

// remember takes what is acknowledged of a group. A journal's move is found at once by its number, those of other heads among all of them.
func (l *seen) remember(group []*request, stored []bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fresh := false
	for i, r := range group {
		for _, x := range r.rows {
			if stored[i] && x.kind == moves && (!fresh || x.seq > 0) {
				l.move, l.at, fresh = x, time.Now(), true
			}
		}
	}
}

// check refuses a database that lacks what was acknowledged; uuid is that of the store.
func (l *seen) check(ctx context.Context, c *conn, uuid string) error {
	l.mu.Lock()
	x, at := l.move, l.at
	l.mu.Unlock()
	if at.IsZero() || time.Since(at) > seenLasts {
		return nil
	}
	got, err := c.query(ctx, readSeen, text(uuid), text(x.name), long(x.seq), bytea(x.new), bytea(x.old), long(x.ts), bytea(x.data))
	if noStore(err) {
		return nil // which another check says
	}
	if err != nil {
		return err
	}
	if len(got) == 1 && got[0][0][0] == 1 {
		return protocol.ErrRolledBack.With("put the newer copy back; a wf that is started anew takes this one as it is",
			"the database was put back to an older copy: it lacks the move of %s to %s, which was acknowledged at %s", x.name, shown(x.new), at.UTC().Format(time.RFC3339))
	}
	return nil
}
