package pgstore_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"wf/cas"
	"wf/cas/castest"
	"wf/pgstore"
	"wf/protocol"
)

func TestAddresses(t *testing.T) {
	t.Setenv("PGPASSFILE", "/nowhere")
	for _, c := range []struct{ dsn, want string }{
		{"postgres://u:hunter2@localhost/db", "holds a password"},
		{"postgres://u:@localhost/db", "holds a password"},
		{"postgres://u@localhost/db?password=hunter2", "holds a password"},
		{"postgres://u@localhost/db?Password=hunter2", "holds a password"},
		{"postgres://u@localhost/db?sslpassword=hunter2", "holds a password"},
		{"host=localhost password=hunter2", "no address"},
		{"mysql://u:hunter2@localhost/db", "no address"},
		{"postgres:hunter2", "no address"},
		{"postgres://u:hunter2@[bad/db", "no address"},
		{"postgres://u@db.example/wf", "beyond this machine"},
		{"postgres://u@db.example/wf?sslmode=disable", "beyond this machine"},
		{"postgres://u@db.example/wf?sslmode=require", "beyond this machine"},
		{"postgres://u@db.example/wf?sslmode=prefer", "beyond this machine"},
		{"postgres://u@127.0.0.1,192.0.2.7/wf?sslmode=disable", "beyond this machine"},
		{"postgres://u@127.0.0.1:1,192.0.2.7:2/wf?sslmode=disable", "beyond this machine"},
		{"postgres://u@192.0.2.7:1,127.0.0.1:2/wf?sslmode=disable", "beyond this machine"},
		{"postgres://u:hunter2@127.0.0.1:1,127.0.0.1:2/wf", "holds a password"},
		{"postgres://u:1/hunter2@localhost/wf", "no address"},
		{"postgres://u@127.0.0.1:1,127.0.0.1:hunter2/wf", "no address"},
		{"postgres://u@localhost/wf?sslmode=hunter2", "not understood"},
	} {
		_, err := pgstore.Check(t.Context(), c.dsn)
		if !errors.Is(err, protocol.ErrStore) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.dsn, err, c.want)
		}
		if err != nil && strings.Contains(err.Error()+protocol.HintOf(err), "hunter2") {
			t.Errorf("the error tells the secret: %v", err)
		}
	}
	for _, c := range []struct{ dsn, want string }{
		{"postgres://u:hunter2@h:5433/db?password=hunter2&sslmode=disable#hunter2", "postgres://u@h:5433/db"},
		{"postgres:///db?host=/run", "postgres:///db"},
		{"postgres://u:hunter2@a:1,[::1]:2,c/db?target_session_attrs=any", "postgres://u@a:1,[::1]:2,c/db"},
		{"postgres://u:hunter2@[bad/db", "postgres://…"},
		{"password=hunter2", "postgres://…"},
		{"", "postgres://…"},
	} {
		if got := pgstore.Redact(c.dsn); got != c.want && strings.TrimPrefix(c.want, "postgres://") != strings.TrimPrefix(got, "postgres:") {
			t.Errorf("%s is shown as %s, want %s", c.dsn, got, c.want)
		}
	}
}

// fatal are the settings for which a store is refused.
func fatal(r pgstore.Report) (out []string) {
	for _, f := range r.Findings {
		if f.Fatal {
			out = append(out, f.Setting)
		}
	}
	return out
}

func TestCheck(t *testing.T) {
	srv, ctx := running(t), t.Context()
	dsn := must(srv.Database(ctx))(t)
	do := func(sql string) {
		t.Helper()
		if err := srv.Exec(ctx, dsn, sql); err != nil {
			t.Fatal(err)
		}
	}
	if r := must(pgstore.Check(ctx, dsn))(t); fmt.Sprint(fatal(r)) != "[the store]" {
		t.Errorf("an empty database: %v", r.Findings)
	}
	if _, err := pgstore.Open(ctx, dsn, pgstore.Options{}); !errors.Is(err, protocol.ErrStore) {
		t.Errorf("an empty database was opened: %v", err)
	}
	if _, err := pgstore.Migrate(ctx, dsn, nil); !errors.Is(err, protocol.ErrStore) {
		t.Errorf("an empty database was migrated: %v", err)
	}
	var made sync.WaitGroup
	metas := make([]pgstore.Meta, 4)
	for i := range metas { // at once: one makes it
		made.Go(func() {
			var err error
			if metas[i], err = pgstore.Init(ctx, dsn, pgstore.Roles{}); err != nil {
				t.Error(err)
			}
		})
	}
	made.Wait()
	for _, m := range metas {
		if m != metas[0] || m.UUID == "" || m.Layout != 3 {
			t.Errorf("made %+v and %+v", m, metas[0])
		}
	}
	if m := must(pgstore.Migrate(ctx, dsn, nil))(t); m != metas[0] {
		t.Errorf("migrated to %+v", m)
	}
	r := must(pgstore.Check(ctx, dsn))(t)
	if len(r.Findings) > 0 || r.Meta != metas[0] || !strings.HasPrefix(r.Version, "PostgreSQL ") {
		t.Errorf("a good store: %+v", r)
	}

	name := nameOf(dsn)
	for _, c := range []struct{ sql, undo, setting string }{
		{"alter database " + name + " set synchronous_commit = off", "alter database " + name + " reset synchronous_commit", "synchronous_commit of this role"},
		{"update wf.meta set min_writer = 4", "update wf.meta set min_writer = 3", "layout"},
		{"update wf.meta set layout = 2", "update wf.meta set layout = 3", "layout"},
	} {
		do(c.sql)
		if r := must(pgstore.Check(ctx, dsn))(t); fmt.Sprint(fatal(r)) != "["+c.setting+"]" {
			t.Errorf("%s: %v", c.sql, r.Findings)
		}
		if _, err := pgstore.Open(ctx, dsn, pgstore.Options{}); !errors.Is(err, protocol.ErrStore) && !errors.Is(err, protocol.ErrNewerStore) {
			t.Errorf("%s: it was opened: %v", c.sql, err)
		}
		do(c.undo)
	}
	do("update wf.meta set layout = 4") // a later program made it, and lets this one write
	must(pgstore.Migrate(ctx, dsn, nil))(t)
	if n := ask(t, dsn, "select layout from wf.meta"); n != 4 {
		t.Errorf("the layout went back to %d", n)
	}
	open(t, dsn)
}

// A role of a worker drives runs, and cannot take away what is stored.
func TestRoles(t *testing.T) {
	srv, ctx := running(t), t.Context()
	dsn := must(srv.Database(ctx))(t)
	of := nameOf(dsn) // roles are of the whole server
	worker, gc, reader := "wor%22ker-"+of, "gc-"+of, "reader-"+of
	do := func(as, sql string) error { return srv.Exec(ctx, strings.Replace(dsn, "wf@", as+"@", 1), sql) }
	if err := do("wf", fmt.Sprintf(`create role "wor""ker-%[1]s" login; create role "gc-%[1]s" login; create role "reader-%[1]s" login`, of)); err != nil {
		t.Fatal(err)
	}
	must(pgstore.Init(ctx, dsn, pgstore.Roles{Worker: `wor"ker-` + of, GC: gc, Reader: reader}))(t)
	s := open(t, strings.Replace(dsn, "wf@", worker+"@", 1))
	j := must(s.Journal(ctx, "r1"))(t)
	events := castest.Append(t, j, 30)
	claim := must(s.Claim(ctx, "r1"))(t)
	j.Under(claim.Fence())
	castest.Append(t, j, 2)
	must(j.Fork(ctx, castest.Now, "r2", events[5], draft, nil, nil))(t)
	d := must(cas.Bury(must(s.Head(ctx, "run/r2"))(t), protocol.Tombstone{At: castest.Now}))(t)
	if err := s.Commit(ctx, cas.Batch{Deletes: []cas.Deletion{d}}); err != nil {
		t.Error(err)
	}
	if err := claim.Release(ctx); err != nil {
		t.Error(err)
	}
	must(s.Changes(ctx))(t)
	for role, want := range map[string]string{"wf": "", worker: "", gc: "", reader: "insert on wf.heads, update on wf.heads, insert on wf.reflog, update (used) on wf.reflog, insert on wf.blocks,"} { // F507
		r := must(pgstore.Check(ctx, strings.Replace(dsn, "wf@", role+"@", 1)))(t)
		if found := fmt.Sprint(r.Findings); len(fatal(r)) > 0 || (want == "") != (len(r.Findings) == 0) || !strings.Contains(found, want) {
			t.Errorf("%s: %s", role, found)
		}
	}
	if err := do("wf", fmt.Sprintf(`revoke insert on wf.blocks from "wor""ker-%s"`, of)); err != nil {
		t.Fatal(err)
	}
	if r := must(pgstore.Check(ctx, strings.Replace(dsn, "wf@", worker+"@", 1)))(t); len(r.Findings) != 1 || !strings.HasSuffix(r.Findings[0].Actual, "it lacks insert on wf.blocks") {
		t.Errorf("a worker that may not insert blocks: %v", r.Findings)
	}
	for _, c := range []struct {
		role, sql string
		may       bool
	}{
		{worker, "delete from wf.blocks", false}, {worker, "delete from wf.reflog", false}, {worker, "delete from wf.heads", false},
		{worker, "update wf.reflog set note = ''", false}, {worker, "update wf.reflog set used = used", true}, {worker, "update wf.reflog set data = null", false}, {worker, "update wf.meta set layout = 9", false}, {worker, "drop table wf.heads", false},
		{reader, "select * from wf.heads", true}, {reader, "update wf.heads set n = n", false}, {reader, "insert into wf.changes(by) values ('')", false},
		{gc, "delete from wf.blocks where false", true}, {gc, "update wf.reflog set data = data", true}, {reader, "select * from wf.packed", true}, {gc, "drop table wf.blocks", false},
	} {
		if err := do(c.role, c.sql); (err == nil) != c.may {
			t.Errorf("%s: %s: %v", c.role, c.sql, err)
		}
	}
}

// Another store at the same address is not written.
func TestAnotherStoreAtTheAddress(t *testing.T) {
	srv, ctx := running(t), t.Context()
	dsn := fresh(t, srv)
	s := open(t, dsn)
	if err := srv.Exec(ctx, dsn, `update wf.meta set uuid = gen_random_uuid(); select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Head(ctx, "run/r1"); !errors.Is(err, protocol.ErrStore) {
		t.Errorf("a read: %v", err)
	}
	b := cas.Raw([]byte("b"))
	if err := s.Commit(ctx, cas.Batch{Blocks: []cas.Block{b}}); !errors.Is(err, protocol.ErrStore) && !errors.Is(err, protocol.ErrUnreachable) {
		t.Errorf("a commit: %v", err)
	}
	if n := ask(t, dsn, "select count(*) from wf.blocks"); n > 0 {
		t.Errorf("%d blocks were stored", n)
	}
}
