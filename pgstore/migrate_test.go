package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"wf/cas"
	"wf/pgstore"
	"wf/protocol"
)

// layout1 takes a store of the second layout back to the first one; it has no rows that the second one is about.
const layout1 = `alter table wf.workers drop column has; alter table wf.runs drop column home; alter table wf.runs drop column workflow; drop table wf.notes; update wf.meta set layout = 1, min_writer = 1`

// A process of the first layout that beats keeps a step waiting behind which it may not write, until it ends; one that was killed, until its lease is
// over. The rights of roles, and what is stored, stay.
func TestMigrateWaitsForOlderProcesses(t *testing.T) {
	srv, ctx := running(t), t.Context()
	dsn := fresh(t, srv)
	do := func(sql string) {
		t.Helper()
		if err := srv.Exec(ctx, dsn, sql); err != nil {
			t.Fatal(err)
		}
	}
	beginRun(t, open(t, dsn), cas.Standing{Run: "old", State: protocol.Running, Due: cas.DueNow, Needs: []string{"gpu"}})
	role := "drives-old-" + nameOf(dsn)
	do(`create role "` + role + `" login`)
	must(pgstore.Init(ctx, dsn, pgstore.Roles{Worker: role}))(t)
	layout2(t, dsn)
	do(fmt.Sprintf(`grant select, insert on wf.reflog to %[1]q; grant select, insert, update on wf.blocks to %[1]q`, role) + ";" + layout1 + `; insert into wf.workers values ('\x01', 1, now(), 'alive', 7, 1, 60000), ('\x02', 1, now(), 'killed', 8, 1, 300), ('\x03', 1, now(), 'newer', 9, 3, 60000)`)
	if _, err := pgstore.Init(ctx, dsn, pgstore.Roles{Worker: role}); !errors.Is(err, protocol.ErrStore) || !strings.Contains(protocol.HintOf(err), "wf store migrate") {
		t.Errorf("rights were given on a store of layout 1: %v", err)
	}
	if _, err := pgstore.Open(ctx, dsn, pgstore.Options{}); !errors.Is(err, protocol.ErrStore) || !strings.Contains(protocol.HintOf(err), "wf store migrate") {
		t.Errorf("a store of layout 1 was opened: %v", err)
	}

	told := make(chan string, 10)
	until, cancel := context.WithCancel(ctx)
	cancelled := make(chan error, 1)
	go func() {
		_, err := pgstore.Migrate(until, dsn, func(text string) { told <- text })
		cancelled <- err
	}()
	if text := <-told; !strings.Contains(text, "process 7 on alive, process 8 on killed") {
		t.Errorf("it says that it %s", text)
	}
	if text := <-told; !strings.HasSuffix(text, ": process 7 on alive") {
		t.Errorf("then that it %s", text)
	}
	cancel()
	if err := <-cancelled; !errors.Is(err, context.Canceled) {
		t.Errorf("a migration that was cancelled: %v", err)
	}
	if n := ask(t, dsn, "select layout * 10 + min_writer from wf.meta"); n != 12 {
		t.Errorf("layout and min_writer are %d, want 12: no older process may write, and the step is not taken", n)
	}

	over := make(chan pgstore.Meta, 1)
	go func() {
		m, err := pgstore.Migrate(ctx, dsn, func(text string) { told <- text })
		if err != nil {
			t.Error(err)
		}
		over <- m
	}()
	for text := range told {
		if strings.HasSuffix(text, ": process 7 on alive") {
			break
		}
	}
	do(`update wf.workers set beat = beat + 1 where id = '\x01'`)
	select {
	case <-over:
		t.Error("it did not wait for a process that beats")
	case <-time.After(500 * time.Millisecond): // it may look at it again
	}
	do(`delete from wf.workers where id = '\x01'`)
	if m := <-over; m.Layout != 3 || m.MinWriter != 3 {
		t.Errorf("migrated to %+v", m)
	}
	if n := ask(t, dsn, `select count(*) from unnest(array['select', 'insert', 'update', 'delete']) r(x) where has_table_privilege('`+role+`', 'wf.notes', r.x)`); n != 4 {
		t.Errorf("a worker has %d of 4 rights on the table that came", n)
	}
	if n := ask(t, dsn, `select count(*) from (select has_table_privilege(r, 'wf.reflog', 'select') and has_table_privilege(r, 'wf.reflog', 'insert') and has_column_privilege(r, 'wf.reflog', 'used', 'update')
		and has_table_privilege(r, 'wf.packed', 'select') and not has_table_privilege(r, 'wf.reflog', 'delete') and not has_column_privilege(r, 'wf.reflog', 'data', 'update') as may from (values ('`+role+`')) v(r)) x where may`); n != 1 {
		t.Error("a worker has not the rights of one on the reflog")
	}
	s := open(t, dsn)
	if got, err := s.Due(ctx, []string{"gpu"}, 10); err != nil || len(got) != 1 {
		t.Errorf("what was stored before: %v, %v", got, err)
	}
	if offers, err := s.Offers(ctx); err != nil || len(offers) != 1 || strings.Join(offers[0], " ") != "gpu" {
		t.Errorf("what workers have: %q, %v", offers, err)
	}
}
