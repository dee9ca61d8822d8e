package pgstore_test

import (
	"testing"

	"wf/cas/castest"
	"wf/pgstore"
	"wf/protocol"
)

// work is one of each that a worker does all the time.
func work(t *testing.T, s *pgstore.Store, id protocol.RunID) {
	t.Helper()
	c := must(s.Claim(t.Context(), id))(t)
	j := must(s.Journal(t.Context(), id))(t)
	castest.Append(t, j, 2)
	must(s.Due(t.Context(), []string{"place:here"}, 32))(t)
	must(s.Head(t.Context(), protocol.RunHead(id)))(t)
	must(castest.Events(t.Context(), s, id, 0))(t)
	if err := c.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Statements are planned while the tables are small, and kept while they grow: no plan may read a whole table.
func TestPlansHoldWhileTablesGrow(t *testing.T) {
	const times = 30
	dsn := fresh(t, running(t))
	s := open(t, dsn)
	work(t, s, "first")
	if err := server.Exec(t.Context(), dsn, "vacuum analyze"); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		work(t, s, "first")
	}
	err := server.Exec(t.Context(), dsn, `
		insert into wf.heads(name, cid, seq) select 'run/x' || i, '\x01', 1 from generate_series(1, 20000) i;
		insert into wf.reflog select 1, 1, id, 1, 1, 1, '', name, '', '', int8send(id), '\x' from wf.heads where name like 'run/x%';
		insert into wf.blocks select int8send(i), '\x1234', 1 from generate_series(1, 20000) i;
		insert into wf.derived select 'run/x' || i, '\x1234' from generate_series(1, 20000) i;
		insert into wf.changes(by) select '\x' from generate_series(1, 20000) i;
		insert into wf.runs(run, state, needs) select 'x' || i, 'done', '{}' from generate_series(1, 20000) i;
		select pg_stat_reset()`)
	if err != nil {
		t.Fatal(err)
	}
	for range times {
		work(t, s, "first")
	}
	if err := s.Close(); err != nil { // its sessions tell the server what they read when they end
		t.Fatal(err)
	}
	until(t, dsn, `select least(sum(n_tup_ins), 1)::bigint from pg_stat_user_tables`, 1)
	until(t, dsn, `select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`, 0)
	read := ask(t, dsn, `select ((select sum(coalesce(seq_tup_read, 0)) from pg_stat_user_tables where schemaname = 'wf')
		+ (select sum(idx_tup_read) from pg_stat_user_indexes where schemaname = 'wf'))::bigint`)
	t.Log(read, "rows were read")
	if read > times*2000 {
		t.Errorf("%d rows were read for %d, of tables with 20,000 rows each: a plan reads a whole one", read, times)
	}
}

// A session that has forgotten what was prepared is one that somebody else had meanwhile: the statement is sent as it is, and nothing is lost.
func TestStatementsThatASessionForgot(t *testing.T) {
	dsn := fresh(t, running(t))
	s := open(t, dsn)
	for range 5 {
		work(t, s, "first")
	}
	if n := must(s.Deallocate(t.Context()))(t); n == 0 {
		t.Fatal("nothing was prepared")
	}
	for range 5 {
		work(t, s, "first")
	}
	if got := must(castest.Events(t.Context(), s, "first", 0))(t); len(got) != 20 {
		t.Errorf("%d events, want 20", len(got))
	}
}
