package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// Conn is a connection. It is used by one goroutine at a time. What lies below it is not given out: every statement goes by a method of
// this file, each of which pins the names first.
type Conn struct {
	pg     *pgconn.PgConn
	Heard  func(channel, payload string) // nil hears nothing
	notice *pgconn.Notice                // the last one since it was cleared
	prepared
}

// The names in a statement are looked up in the schemas of search_path, and which that are is said by the settings of the role and the database: "$user", public
// by default. There another role can make a function, an operator or a type that fits better than the one that is meant, and it would run with the
// rights of this one. So every transaction begins with a pin, which holds until its end: what is left to look up is found in pg_catalog, where
// nobody but a superuser makes anything. The temporary schema is named, as the last one, since it comes first for tables and types where it is not.
// What wf makes itself is named with its schema.
//
// It is said in each transaction and not once for a session: behind a pooler in transaction mode each may be in another session, and PgBouncer refuses
// a client that says it as a parameter of the connection, or passes over it. The pin itself names all that is looked up for it.
const (
	path = "pg_catalog, pg_temp"
	// A select, since a SET LOCAL that no BEGIN is before comes with a warning.
	pinned = `select pg_catalog.set_config('search_path', '` + path + `', true)`
	// The same, for a transaction whose COMMIT may be awaited: its end is on the disk, and on that of a synchronous standby.
	pinnedDurable = `select pg_catalog.set_config('search_path', '` + path + `', true), pg_catalog.set_config('synchronous_commit', 'on', true)`
	// The same in a text of several statements, which is one transaction. It needs no snapshot, so that a BEGIN behind it may say how it is isolated.
	pinnedText = `set local search_path = ` + path + `; `

	begin = `begin isolation level read committed read write`
)

// Server is a kind of server that a connection wants.
type Server int

const (
	Addressed Server = iota // as target_session_attrs of the address says
	Primary                 // no standby, which may lack what was acknowledged
	Writable                // one that takes writes
)

// check is nil for a server of that kind; addressed is how the address has it checked, nil where it says nothing.
func (k Server) check(ctx context.Context, c *Conn, addressed pgconn.ValidateConnectFunc) error {
	if k == Addressed {
		if addressed == nil {
			return nil
		}
		// It sends a text of its own, behind the pin.
		if err := c.pg.Exec(ctx, "begin; "+pinnedText).Close(); err != nil {
			return err
		}
		wrong := addressed(ctx, c.pg)
		if err := c.Rollback(ctx); wrong == nil {
			return err
		}
		return wrong
	}
	got, err := c.Query(ctx, `select pg_is_in_recovery(), current_setting('transaction_read_only') = 'on'`)
	switch {
	case err != nil:
		return err
	case k == Primary && got[0][0][0] == 1:
		return pgconn.ErrStandbyConnection
	case k == Writable && got[0][1][0] == 1:
		return pgconn.ErrReadOnlyConnection
	}
	return nil
}

// Close ends a connection without waiting for the server.
func (c *Conn) Close() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = c.pg.Close(ctx) // what it did is known by now, or settled over another one
}

// Closed reports whether the connection is at its end.
func (c *Conn) Closed() bool { return c.pg.IsClosed() }

// Listen hears the notifications of a channel from now on; see Await.
func (c *Conn) Listen(ctx context.Context, channel string) error {
	_, err := c.Query(ctx, "listen "+channel)
	return err
}

// Await waits until Heard was told of a notification.
func (c *Conn) Await(ctx context.Context) error { return c.pg.WaitForNotification(ctx) }

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

// Query performs one statement and gives its rows. It is planned for what it is asked, and not prepared.
func (c *Conn) Query(ctx context.Context, sql string, params ...Param) (out Rows, err error) {
	err = c.ask(ctx, sql, params, func(r *pgconn.ResultReader) error {
		got := r.Read()
		out = got.Rows
		return got.Err
	})
	return out, err
}

// Each gives f the rows of one statement while they arrive; a row is gone when f returns. begun is that f was called.
func (c *Conn) Each(ctx context.Context, f func(row [][]byte) error, sql string, params ...Param) (begun bool, err error) {
	err = c.ask(ctx, sql, params, func(r *pgconn.ResultReader) error {
		var failed error
		for failed == nil && r.NextRow() {
			begun = true
			failed = f(r.Values())
		}
		_, err := r.Close() // what is left of the answer is passed over
		return cmp.Or(failed, err)
	})
	return begun, err
}

// ask sends the pin and a statement together, and has read read the answer to the statement.
func (c *Conn) ask(ctx context.Context, sql string, params []Param, read func(*pgconn.ResultReader) error) error {
	values, oids, formats := Statement{sql, params}.split()
	p := c.pg.StartPipeline(ctx)
	p.SendQueryParams(pinned, nil, nil, nil, nil)
	p.SendQueryParams(sql, values, oids, formats, []int16{binaryForm})
	err := p.Sync()
	for at := 0; err == nil; at++ {
		var r any
		if r, err = p.GetResults(); err != nil {
			break
		}
		reader, is := r.(*pgconn.ResultReader)
		if !is {
			break // both are answered
		}
		if at == 0 {
			_, err = reader.Close()
		} else {
			err = read(reader)
		}
	}
	return cmp.Or(err, p.Close())
}

// Do performs statements that are a text. It may begin a transaction, and end one; see Rollback.
func (c *Conn) Do(ctx context.Context, sql string) error {
	return c.pg.Exec(ctx, pinnedText+sql).Close()
}

// Rollback ends a transaction of which nothing is to stay, also one that has failed, in which nothing else is performed.
func (c *Conn) Rollback(ctx context.Context) error { return c.pg.Exec(ctx, "rollback").Close() }

// Pipeline sends statements together, and gives the rows of each. Where one fails those behind it are not performed.
func (c *Conn) Pipeline(ctx context.Context, all []Statement) (out []Rows, err error) {
	return c.send(ctx, []Statement{{SQL: pinned}}, all)
}

// Begin is Pipeline in a transaction that it begins, for Commit.
func (c *Conn) Begin(ctx context.Context, all []Statement) (out []Rows, err error) {
	return c.send(ctx, []Statement{{SQL: begin}, {SQL: pinnedDurable}}, all)
}

// send sends statements behind those that pin, whose rows are left out.
func (c *Conn) send(ctx context.Context, pins, all []Statement) (out []Rows, err error) {
	c.notice = nil
	p := c.pg.StartPipeline(ctx)
	var asked []string // the statements and names that are prepared, in their order
	for _, st := range append(pins, all...) {
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
	return out[min(len(out), len(pins)):], errors.Join(err, p.Close())
}

// Transact sends statements as one transaction, COMMIT with them, and awaits their end without a deadline. out are the rows of
// each. unclear is set where the transaction may have been committed and this is not known for sure.
func (c *Conn) Transact(statements ...Statement) (out []Rows, unclear bool, err error) {
	for {
		out, unclear, err = c.commit(c.Begin, statements)
		if unclear || !c.forgets(err) {
			return out, unclear, err
		}
	}
}

// Commit is Transact for a transaction that Begin has begun.
func (c *Conn) Commit(statements ...Statement) (out []Rows, unclear bool, err error) {
	return c.commit(c.Pipeline, statements)
}

func (c *Conn) commit(send func(context.Context, []Statement) ([]Rows, error), statements []Statement) (out []Rows, unclear bool, err error) {
	ctx := context.Background() // a deadline would cut the socket while COMMIT is under way
	all := append(statements[:len(statements):len(statements)], Statement{SQL: "commit"})
	out, err = send(ctx, all)
	refused, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case err != nil && (!ok || lost(refused)):
		return nil, true, err
	case err != nil:
		if undo := c.Rollback(ctx); undo != nil {
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
