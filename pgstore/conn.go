package pgstore

import (
	"context"

	"wf/postgres"
)

// conn is a connection. It is used by one goroutine at a time.
type conn struct{ *postgres.Conn }

func connect(ctx context.Context, a *postgres.Address, want postgres.Server, valid func(context.Context, *postgres.Conn) error) (*conn, error) {
	c, err := a.Connect(ctx, want, valid)
	return &conn{c}, err
}

func (c *conn) close() { c.Close() }

// The words of package postgres, as they are written here.
type (
	param = postgres.Param
	rows  = postgres.Rows

	// Finding is a setting of a database with which a store is not safe, or not as it should be.
	Finding = postgres.Finding
)

const (
	oidBytea = postgres.OIDBytea
	oidText  = postgres.OIDText
	oidBytes = postgres.OIDByteas
	oidTexts = postgres.OIDTexts
)

// Redact gives the address of a database as it may be shown: without a password and without parameters.
func Redact(dsn string) string { return postgres.Redact(dsn) }

func text(s string) param       { return postgres.Text(s) }
func bytea(b []byte) param      { return postgres.Bytea(b) }
func long(n int64) param        { return postgres.Long(n) }
func integer(n int32) param     { return postgres.Integer(n) }
func readLong(b []byte) int64   { return postgres.ReadLong(b) }
func readInt(b []byte) int32    { return postgres.ReadInt(b) }
func texts(all []string) param  { return postgres.Texts(all) }
func byteas(all [][]byte) param { return postgres.Byteas(all) }

func array(oid, of uint32, n int, at func(i int) []byte) param { return postgres.Array(oid, of, n, at) }

func ints(n int, at func(int) int32) param { return postgres.Ints(n, at) }

func longs(n int, at func(int) (v int64, null bool)) param { return postgres.Longs(n, at) }

func classify(ctx context.Context, err error) error { return postgres.Classify(ctx, err) }

// statement is one of a pipeline.
type statement struct {
	sql    string
	params []param
}

func (c *conn) query(ctx context.Context, sql string, params ...param) (rows, error) {
	return c.Query(ctx, sql, params...)
}

func (c *conn) each(ctx context.Context, f func(row [][]byte) error, sql string, params ...param) (begun bool, err error) {
	return c.Each(ctx, f, sql, params...)
}

func (c *conn) transact(statements ...statement) (out []rows, unclear bool, err error) {
	all := make([]postgres.Statement, len(statements))
	for i, s := range statements {
		all[i] = postgres.Statement{SQL: s.sql, Params: s.params}
	}
	return c.Transact(all...)
}
