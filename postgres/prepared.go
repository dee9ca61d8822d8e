package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// prepared are the statements that the server has parsed and planned for the connection of the committer, which costs more than to perform
// them. Others read now and then, and some of them much: each of those is planned for what it is asked.
//
// A statement is prepared when it is used for the second time, and only where the connection is known to lead to the server itself: a pooler
// in transaction mode would give the next transaction to a session that has never heard of it.
type prepared struct {
	direct bool              // no pooler is between
	names  map[string]string // of statements by their text; "" for one that was used once
	last   int               // number of the newest name; none is used twice
}

// settle tells a session that greeted us from one that a pooler lent us, since a pooler greets its clients with a number of its own. The
// settings are for the first kind alone. A prepared statement is planned once, for tables of any size: while a table is small a plan
// that reads all of it looks best, and would be kept while the table grows.
const settle = `select set_config('plan_cache_mode', 'force_generic_plan', false), set_config('enable_seqscan', 'off', false), set_config('jit', 'off', false)
	where pg_backend_pid() = $1`

// Prepares has a connection prepare its statements, if it may.
func (c *Conn) Prepares(ctx context.Context) error {
	got, err := c.Query(ctx, settle, Integer(int32(c.pg.PID())))
	c.prepared = prepared{direct: len(got) == 1, names: map[string]string{}}
	return err
}

// name gives the name under which the server has a statement, "" where it is sent as it is. ask is that it is to be prepared under that
// name first.
func (p *prepared) name(sql string) (name string, ask bool) {
	name, used := p.names[sql]
	switch {
	case !p.direct:
		return "", false
	case !used:
		p.names[sql] = ""
		return "", false
	case name != "":
		return name, false
	}
	p.last++
	return fmt.Sprint("wf", p.last), true
}

// forgets reports whether a statement was refused because it was prepared: the session is another one after all, or tables were changed
// since. Nothing was performed; from now on the connection prepares nothing.
func (p *prepared) forgets(err error) bool {
	e, is := errors.AsType[*pgconn.PgError](err)
	if !is || !p.direct || e.Code != "26000" && e.Code != "42P05" && e.Code != "0A000" {
		return false
	}
	*p = prepared{}
	return true
}

// Prepared is how many statements were prepared.
func (p *prepared) Prepared() int { return p.last }
