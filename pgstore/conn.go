package pgstore

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"wf/protocol"
)

// conn is a connection. It is used by one goroutine at a time.
type conn struct {
	pg     *pgconn.PgConn
	notice *pgconn.Notice             // the last one since it was cleared
	heard  func(*pgconn.Notification) // nil hears nothing
	prepared
}

// close ends a connection without waiting for the server.
func (c *conn) close() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = c.pg.Close(ctx) // what it did is known by now, or settled over another one
}

// The types of parameters, by their numbers in every PostgreSQL.
const (
	oidBytea = 17
	oidInt8  = 20
	oidInt4  = 23
	oidText  = 25
	oidBytes = 1001 // bytea[]
	oidInts  = 1007 // int4[]
	oidTexts = 1009 // text[]
	oidLongs = 1016 // int8[]
)

// binaryForm is the format of all parameters and results.
const binaryForm = 1

// param is a parameter of a statement in its binary form; nil is NULL.
type param struct {
	oid uint32
	v   []byte
}

func text(s string) param  { return param{oidText, []byte(s)} }
func bytea(b []byte) param { return param{oidBytea, b} }
func long(n int64) param   { return param{oidInt8, binary.BigEndian.AppendUint64(nil, uint64(n))} }
func integer(n int32) param {
	return param{oidInt4, binary.BigEndian.AppendUint32(nil, uint32(n))}
}
func readLong(b []byte) int64 {
	if len(b) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b))
}

// array is the binary form of an array with one dimension; an element that is nil is NULL.
func array(oid, of uint32, n int, at func(i int) []byte) param {
	if n == 0 {
		return param{oid, binary.BigEndian.AppendUint32(make([]byte, 8, 12), of)}
	}
	var out []byte
	for _, x := range []uint32{1, 1, of, uint32(n), 1} { // dimensions, NULLs may be in it, type, length, first index
		out = binary.BigEndian.AppendUint32(out, x)
	}
	for i := range n {
		v := at(i)
		if v == nil {
			out = binary.BigEndian.AppendUint32(out, 1<<32-1)
			continue
		}
		out = append(binary.BigEndian.AppendUint32(out, uint32(len(v))), v...)
	}
	return param{oid, out}
}

func texts(all []string) param {
	return array(oidTexts, oidText, len(all), func(i int) []byte { return append([]byte{}, all[i]...) })
}

func byteas(all [][]byte) param {
	return array(oidBytes, oidBytea, len(all), func(i int) []byte { return all[i] })
}

func ints(n int, at func(int) int32) param {
	return array(oidInts, oidInt4, n, func(i int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(at(i))) })
}

// longs has NULL where at says so.
func longs(n int, at func(int) (v int64, null bool)) param {
	return array(oidLongs, oidInt8, n, func(i int) []byte {
		v, null := at(i)
		if null {
			return nil
		}
		return binary.BigEndian.AppendUint64(nil, uint64(v))
	})
}

// statement is one of a pipeline.
type statement struct {
	sql    string
	params []param
}

func (st statement) split() (values [][]byte, oids []uint32, formats []int16) {
	for _, p := range st.params {
		values, oids = append(values, p.v), append(oids, p.oid)
	}
	return values, oids, []int16{binaryForm}
}

type rows = [][][]byte

// query performs one statement and gives its rows in binary form.
func (c *conn) query(ctx context.Context, sql string, params ...param) (rows, error) {
	values, oids, formats := statement{sql, params}.split()
	r := c.pg.ExecParams(ctx, sql, values, oids, formats, []int16{binaryForm}).Read()
	return r.Rows, r.Err
}

// each gives f the rows of one statement while they arrive; a row is gone when f returns. begun is that f was called.
func (c *conn) each(ctx context.Context, f func(row [][]byte) error, sql string, params ...param) (begun bool, err error) {
	values, oids, formats := statement{sql, params}.split()
	r := c.pg.ExecParams(ctx, sql, values, oids, formats, []int16{binaryForm})
	var failed error
	for failed == nil && r.NextRow() {
		begun = true
		failed = f(r.Values())
	}
	_, err = r.Close() // what is left of the answer is passed over
	return begun, cmp.Or(failed, err)
}

// transact sends statements as one transaction, COMMIT with them, and awaits their end without a deadline. out are the rows of
// each. unclear is set where the transaction may have been committed and this is not known for sure.
func (c *conn) transact(statements ...statement) (out []rows, unclear bool, err error) {
	for {
		out, unclear, err = c.transactOnce(statements)
		if unclear || !c.forgets(err) {
			return out, unclear, err
		}
	}
}

func (c *conn) transactOnce(statements []statement) (out []rows, unclear bool, err error) {
	ctx := context.Background() // a deadline would cut the socket while COMMIT is under way
	all := append([]statement{{sql: "begin isolation level read committed read write"}, {sql: "set local synchronous_commit = on"}}, statements...)
	all = append(all, statement{sql: "commit"})
	c.notice = nil
	p := c.pg.StartPipeline(ctx)
	var asked []string // the statements and names that are prepared, in their order
	for _, st := range all {
		values, oids, formats := st.split()
		name, ask := c.name(st.sql)
		if ask {
			p.SendPrepare(name, st.sql, oids)
			asked = append(asked, st.sql, name)
		}
		if name != "" {
			p.SendQueryPrepared(name, values, formats, []int16{binaryForm})
		} else {
			p.SendQueryParams(st.sql, values, oids, formats, []int16{binaryForm})
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
	refused, ok := errors.AsType[*pgconn.PgError](err)
	err = errors.Join(err, p.Close())
	switch {
	case err != nil && (!ok || lost(refused)):
		return nil, true, err
	case err != nil:
		if undo := c.pg.Exec(ctx, "rollback").Close(); undo != nil {
			c.close()
		}
		return nil, false, refused
	case len(out) != len(all):
		return nil, true, fmt.Errorf("%d of %d answers came", len(out), len(all))
	case c.notice != nil && c.notice.Severity != "NOTICE" && c.notice.Severity != "INFO" && c.notice.Severity != "LOG":
		return nil, true, fmt.Errorf("the commit came with a warning: %s", c.notice.Message)
	}
	return out[2 : len(out)-1], false, nil
}

// lost reports whether an error of the server is its end, or that of the session, rather than a refusal.
func lost(e *pgconn.PgError) bool {
	return strings.HasPrefix(e.Code, "57P") || strings.HasPrefix(e.Code, "08") || e.SeverityUnlocalized == "FATAL" || e.SeverityUnlocalized == "PANIC"
}

// passing reports whether the server refused for a reason that may pass without anybody's doing.
func passing(e *pgconn.PgError) bool {
	return strings.HasPrefix(e.Code, "57P") || strings.HasPrefix(e.Code, "08") || e.Code == "53300" || e.Code == "25006"
}

// classify gives an error of pgconn one of the codes of stores.
func classify(ctx context.Context, err error) error {
	if err == nil || protocol.CodeOf(err) != "" {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	kind := protocol.ErrUnreachable
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && !passing(e) {
		switch e.Code {
		case "53100": // disk_full
			kind = protocol.ErrDiskFull
		case "XX001", "XX002": // data_corrupted, index_corrupted
			kind = protocol.ErrCorrupt
		case "42501": // insufficient_privilege
			kind = protocol.ErrReadOnly
		default:
			kind = protocol.ErrStore
		}
	}
	return fmt.Errorf("%w: %w", kind, err)
}
