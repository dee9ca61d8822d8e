package pgstore_test

import (
	"testing"

	"wf/pgstore"
	"wf/pgstore/pgtest"
)

// A pooler in transaction mode gives each transaction another connection, with whatever an earlier client left there.
func TestStoreThroughPgBouncer(t *testing.T) {
	pool := started(pgtest.NewBouncer(running(t), 2))(t)
	exercise(t, func(dsn string) string { return pool.DSN(nameOf(dsn)) })
}

// Many stores commit at once through few connections, and the pooler is killed in between: all goes on by itself, and what was acknowledged
// is there once.
func TestManyCommitsThroughPgBouncer(t *testing.T) {
	const size = 3
	pool, dice := started(pgtest.NewBouncer(running(t), size))(t), chance(t)
	direct := fresh(t, server)
	var stores []*pgstore.Store
	for range 8 {
		stores = append(stores, open(t, pool.DSN(nameOf(direct))))
	}
	l := start(t, 24, stores...)
	l.await(t, 300)
	if n := ask(t, direct, `select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`); n > size {
		t.Errorf("%d connections, the pool has %d", n, size)
	}
	for range rounds(2) {
		l.await(t, 1+dice.IntN(200))
		if err := pool.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := pool.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	l.await(t, 100)
	l.finish(t, direct)
}

// Nothing of a session is left behind in a connection for the client that has it next.
func TestNoSessionStateThroughPgBouncer(t *testing.T) {
	pool := started(pgtest.NewBouncer(running(t), 1))(t)
	direct := must(server.Database(t.Context()))(t)
	dsn := pool.DSN(nameOf(direct))
	must(pgstore.Init(t.Context(), dsn, pgstore.Roles{}))(t)
	l := start(t, 4, open(t, dsn), open(t, dsn))
	l.await(t, 60)
	must(l.stores[0].Claim(t.Context(), "root"))(t)
	must(l.stores[0].Changes(t.Context()))(t)
	l.finish(t, direct)
	for _, c := range []struct{ what, sql string }{
		{"prepared statements", `select count(*) from pg_prepared_statements`},
		{"settings", `select count(*) from pg_settings where source = 'session'`},
		{"locks of the session", `select count(*) from pg_locks where locktype = 'advisory'`},
		{"channels", `select count(*) from pg_listening_channels()`},
		{"temporary tables", `select count(*) from pg_class where relpersistence = 't'`},
	} {
		if n := ask(t, dsn, c.sql); n != 0 {
			t.Errorf("%s: %d", c.what, n)
		}
	}
}

// What a role is given by ALTER ROLE is in force, and seen, behind a pooler.
func TestLimitOfIdleTransactionsThroughPgBouncer(t *testing.T) {
	ctx := t.Context()
	pool := started(pgtest.NewBouncer(running(t), 2))(t)
	direct := fresh(t, server)
	dsn := pool.DSN(nameOf(direct))
	for _, c := range []struct {
		value    string
		findings int
	}{{"0", 1}, {"11s", 1}, {"7s", 0}} {
		if err := server.Exec(ctx, direct, `alter role wf in database `+nameOf(direct)+` set idle_in_transaction_session_timeout = '`+c.value+`'`); err != nil {
			t.Fatal(err)
		}
		// A connection has what was in force when it was made.
		if err := server.Exec(ctx, direct, `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`); err != nil {
			t.Fatal(err)
		}
		until(t, direct, `select count(*) from pg_stat_activity where datname = current_database()`, 1)
		r := must(pgstore.Check(ctx, dsn))(t)
		if len(r.Findings) != c.findings || c.findings == 1 && r.Findings[0].Setting != "idle_in_transaction_session_timeout" {
			t.Errorf("with %s: %v", c.value, r.Findings)
		}
	}
}
