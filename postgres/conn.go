package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// Conn is a connection. It is used by one goroutine at a time.
type Conn struct {
	PG     *pgconn.PgConn
	Heard  func(*pgconn.Notification) // nil hears nothing
	notice *pgconn.Notice             // the last one since it was cleared
	prepared
}

// Close ends a connection without waiting for the server.
func (c *Conn) Close() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = c.PG.Close(ctx) // what it did is known by now, or settled over another one
}

// Statement is one of a pipeline.
type Statement struct {
	SQL    string
	Params []Param
}

func (st Statement) split() (values [][]byte, oids []uint32, formats []int16) {
	for _, p := range st.Params {
		values, oids = append(values, p.Value), append(oids, p.OID)
	}
	return values, oids, []int16{binaryForm}
}

// Rows are those of an answer, their columns in binary form; NULL is nil.
type Rows = [][][]byte

// Query performs one statement and gives its rows.
func (c *Conn) Query(ctx context.Context, sql string, params ...Param) (Rows, error) {
	values, oids, formats := Statement{sql, params}.split()
	r := c.PG.ExecParams(ctx, sql, values, oids, formats, []int16{binaryForm}).Read()
	return r.Rows, r.Err
}

// Each gives f the rows of one statement while they arrive; a row is gone when f returns. begun is that f was called.
func (c *Conn) Each(ctx context.Context, f func(row [][]byte) error, sql string, params ...Param) (begun bool, err error) {
	values, oids, formats := Statement{sql, params}.split()
	r := c.PG.ExecParams(ctx, sql, values, oids, formats, []int16{binaryForm})
	var failed error
	for failed == nil && r.NextRow() {
		begun = true
		failed = f(r.Values())
	}
	_, err = r.Close() // what is left of the answer is passed over
	return begun, cmp.Or(failed, err)
}

// Do performs statements that are a text.
func (c *Conn) Do(ctx context.Context, sql string) error { return c.PG.Exec(ctx, sql).Close() }

// Begin is how every transaction begins whose COMMIT may be awaited: its end is on the disk, and on that of a synchronous standby.
var Begin = []Statement{{SQL: "begin isolation level read committed read write"}, {SQL: "set local synchronous_commit = on"}}

// Pipeline sends statements together, and gives the rows of each. Where one fails those behind it are not performed.
func (c *Conn) Pipeline(ctx context.Context, all []Statement) (out []Rows, err error) {
	c.notice = nil
	p := c.PG.StartPipeline(ctx)
	var asked []string // the statements and names that are prepared, in their order
	for _, st := range all {
		values, oids, formats := st.split()
		name, ask := c.name(st.SQL)
		if ask {
			p.SendPrepare(name, st.SQL, oids)
			asked = append(asked, st.SQL, name)
		}
		if name != "" {
			p.SendQueryPrepared(name, values, formats, []int16{binaryForm})
		} else {
			p.SendQueryParams(st.SQL, values, oids, formats, []int16{binaryForm})
		}
	}
	err = p.Sync()
	for err == nil {
		var r any
		if r, err = p.GetResults(); err != nil {
			break
		}
		if _, over := r.(*pgconn.PipelineSync); over {
			break
		}
		switch r := r.(type) {
		case *pgconn.StatementDescription:
			c.names[asked[0]], asked = asked[1], asked[2:]
		case *pgconn.ResultReader:
			got := r.Read()
			err = got.Err
			out = append(out, got.Rows)
		}
	}
	return out, errors.Join(err, p.Close())
}

// Transact sends statements as one transaction, COMMIT with them, and awaits their end without a deadline. out are the rows of
// each. unclear is set where the transaction may have been committed and this is not known for sure.
func (c *Conn) Transact(statements ...Statement) (out []Rows, unclear bool, err error) {
	for {
		out, unclear, err = c.Commit(append(Begin[:len(Begin):len(Begin)], statements...)...)
		if unclear || !c.forgets(err) {
			break
		}
	}
	return out[min(len(out), len(Begin)):], unclear, err
}

// Commit is Transact for a transaction that has begun, or that the statements begin.
func (c *Conn) Commit(statements ...Statement) (out []Rows, unclear bool, err error) {
	ctx := context.Background() // a deadline would cut the socket while COMMIT is under way
	all := append(statements[:len(statements):len(statements)], Statement{SQL: "commit"})
	out, err = c.Pipeline(ctx, all)
	refused, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case err != nil && (!ok || lost(refused)):
		return nil, true, err
	case err != nil:
		if undo := c.Do(ctx, "rollback"); undo != nil {
			c.Close()
		}
		return nil, false, refused
	case len(out) != len(all):
		return nil, true, fmt.Errorf("%d of %d answers came", len(out), len(all))
	case c.notice != nil && c.notice.Severity != "NOTICE" && c.notice.Severity != "INFO" && c.notice.Severity != "LOG":
		return nil, true, fmt.Errorf("the commit came with a warning: %s", c.notice.Message)
	}
	return out[:len(out)-1], false, nil
}
