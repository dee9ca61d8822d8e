package pgstore_test

import (
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"wf/cas"
	"wf/cas/castest"
	"wf/pgstore"
	"wf/protocol"
)

// released is the statement of a released layout that begins with a text.
func released(t *testing.T, file, begins string) string {
	t.Helper()
	_, sql, ok := strings.Cut(string(must(os.ReadFile(file))(t)), begins)
	sql, _, _ = strings.Cut(sql, ";")
	if !ok {
		t.Fatalf("%s has no %q", file, begins)
	}
	return begins + sql + ";\n"
}

// layout2 takes a store back to the second layout, as a program of that would have written it: each block has a row, and each line names its head and
// where it moved from.
func layout2(t *testing.T, dsn string) {
	t.Helper()
	var b strings.Builder
	for _, row := range must(server.Ask(t.Context(), dsn, `select concat_ws(' ', head, seq, n, moved, used, encode(data, 'hex')) from wf.reflog where data is not null`))(t) {
		var head, seq, n, moved, used int
		var data string
		must(fmt.Sscan(row, &head, &seq, &n, &moved, &used, &data))(t)
		blocks := must(cas.UnpackBlocks(must(hex.DecodeString(data))(t)))(t)
		var digests []byte
		for i, x := range blocks {
			fmt.Fprintf(&b, "insert into wf.blocks values ('\\x%x', '\\x%x', %d) on conflict do nothing;\n", x.Link.Bytes(), cas.PackBlock(x), used)
			if i >= len(blocks)-moved && i < len(blocks)-1 {
				digests = append(digests, x.Link.Bytes()[4:]...)
			}
		}
		fmt.Fprintf(&b, "update wf.reflog set events = '\\x%x', new = '\\x%x' where (head, seq, n) = (%d, %d, %d);\n", digests, blocks[len(blocks)-1].Link.Bytes(), head, seq, n)
	}
	b.WriteString("drop function wf.held; drop view wf.packed; alter table wf.reflog rename to lines; alter table wf.lines rename constraint reflog_pkey to lines_pkey;\n")
	b.WriteString(released(t, "schema.sql", "create table wf.reflog"))
	b.WriteString(released(t, "schema.sql", "alter table wf.reflog alter events"))
	b.WriteString(`insert into wf.reflog select h.name, l.seq, l.n, case l.name when '' then (select p.new from wf.lines p where p.head = l.head and p.n = l.n - 1) end, l.new, l.events, l.ts, l.note
		from wf.lines l join wf.heads h on h.id = l.head;
		drop table wf.lines; alter table wf.heads drop column id; drop table wf.changes;
`)
	b.WriteString(released(t, "schema.sql", "create table wf.changes"))
	b.WriteString("create index on wf.changes (x); create index on wf.changes (at); insert into wf.changes(by, names) values ('\\x01', '{run/one}'); update wf.meta set layout = 2, min_writer = 2")
	if err := server.Exec(t.Context(), dsn, b.String()); err != nil {
		t.Fatal(err)
	}
}

// What a program of the second layout wrote is read, verified, found, copied, collected and continued.
func TestMigrateOfAStoreWithData(t *testing.T) {
	srv, ctx := running(t), t.Context()
	dsn := fresh(t, srv)
	s := open(t, dsn)
	castest.Many(t, s)
	castest.Append(t, castest.Sample(t, s, "wide", 1, nil), 60) // up to 19 events to a commit
	castest.Longer(t, castest.Sample(t, s, "long", 2, nil), 500)
	large := []cas.Block{cas.Raw(noise(1, 3<<20)), cas.Raw(noise(2, 2000))}
	if err := s.Commit(ctx, cas.Batch{Blocks: large, Moves: []cas.Move{{Name: "memory/large", New: large[0].Link, TS: castest.Now}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(ctx, cas.Batch{Moves: []cas.Move{{Name: "memory/large", Old: large[0].Link, New: large[1].Link, TS: castest.Now}}}); err != nil {
		t.Fatal(err)
	}
	buried := must(s.Head(ctx, "run/wide"))(t)
	events := map[protocol.RunID][]protocol.Entry{}
	for _, run := range []protocol.RunID{"one", "two", "fork", "fork-of-fork", "third", "wide", "long"} {
		events[run] = must(castest.Events(ctx, s, run, 0))(t)
	}
	checked := verified(t, s, cas.VerifyOptions{}).Checked
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	layout2(t, dsn)
	if m := must(pgstore.Migrate(ctx, dsn, nil))(t); m.Layout != 3 || m.MinWriter != 3 {
		t.Fatalf("migrated to %+v", m)
	}
	if n := ask(t, dsn, `select count(*) from wf.reflog where data is not null`); n > 0 {
		t.Errorf("%d lines have blocks in them", n)
	}
	same := func(s *pgstore.Store) {
		t.Helper()
		for run, want := range events {
			for _, from := range []protocol.Seq{0, 1, protocol.Seq(len(want)) - 1} {
				got := must(castest.Events(ctx, s, run, from))(t)
				if !slices.EqualFunc(got, want[from:], func(a, b protocol.Entry) bool { return a.CID == b.CID && string(a.Raw) == string(b.Raw) }) {
					t.Errorf("run %s after %d: %d events, want %d, or others", run, from, len(got), len(want[from:]))
				}
			}
		}
		for _, b := range large {
			if data, err := s.Block(ctx, b.Link); err != nil || string(data) != string(b.Data) {
				t.Errorf("a large block: %d bytes, %v", len(data), err)
			}
		}
	}
	s = open(t, dsn)
	same(s)
	r := verified(t, s, cas.VerifyOptions{})
	clean(t, r)
	if r.Checked != checked {
		t.Errorf("checked %+v, before %+v", r.Checked, checked)
	}
	if got := must(s.Find(ctx, events["two"][1].CID.String()[7:17]))(t); len(got) != 1 {
		t.Errorf("found %v", got)
	}

	// It goes on in lines: journals, and heads of other kinds.
	castest.Append(t, must(s.Journal(ctx, "wide"))(t), 10)
	castest.Forked(t, s, "wide", "of-wide", 30)
	castest.Remembered(t, s, "notes", "one thing more")
	if err := s.Commit(ctx, cas.Batch{Moves: []cas.Move{{Name: "memory/large", Old: large[1].Link, New: large[0].Link, TS: castest.Now}}}); err != nil {
		t.Fatal(err)
	}
	for _, run := range []protocol.RunID{"wide", "of-wide"} {
		events[run] = must(castest.Events(ctx, s, run, 0))(t)
	}
	if n := ask(t, dsn, `select count(*) from wf.reflog where data is not null`); n < 3 {
		t.Errorf("%d lines have blocks in them", n)
	}
	clean(t, verified(t, s, cas.VerifyOptions{}))

	// Of a run of both layouts that is deleted the fork keeps what it shares, and the rest is collected.
	castest.Buried(t, s, "wide")
	delete(events, "wide")
	large = large[:1] // the other one is what a head led to long ago
	later(t, dsn, 2)
	gc(t, open(t, dsn), cas.GCOptions{})
	later(t, dsn, 4)
	if r := gc(t, open(t, dsn), cas.GCOptions{}); r.Removed == 0 {
		t.Errorf("collected %+v", r)
	}
	s = open(t, dsn)
	same(s)
	clean(t, verified(t, s, cas.VerifyOptions{}))
	if ok := must(castest.Has(ctx, s, buried.Link))(t); ok {
		t.Error("the newest event of a run that was deleted is stored")
	}
	castest.Buried(t, s, "of-wide")
	delete(events, "of-wide")
	for _, days := range []int{2, 4, 4} {
		later(t, dsn, days)
		gc(t, open(t, dsn), cas.GCOptions{})
	}
	if n := ask(t, dsn, `select count(*) from wf.reflog l join wf.heads h on h.id = l.head where h.name in ('run/wide', 'run/of-wide')`); n > 0 {
		t.Errorf("%d lines of runs are left that were deleted", n)
	}
	same(open(t, dsn))
}
