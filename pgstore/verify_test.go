package pgstore_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"wf/cas"
	"wf/cas/castest"
	"wf/pgstore"
	"wf/protocol"
)

// verified is the report on a store that can be read.
func verified(t testing.TB, s *pgstore.Store, o cas.VerifyOptions) cas.Report {
	t.Helper()
	return must(pgstore.Verify(t.Context(), s, o))(t)
}

// clean fails where a report has a finding.
func clean(t testing.TB, r cas.Report) {
	t.Helper()
	for _, f := range r.Findings {
		t.Errorf("a finding: %s", f)
	}
	if !r.OK && len(r.Findings) == 0 {
		t.Error("it is not sound, and no finding says why")
	}
}

func TestVerifyOfAGoodStoreIsClean(t *testing.T) {
	dsn := fresh(t, running(t))
	s := open(t, dsn)
	clean(t, verified(t, s, cas.VerifyOptions{})) // with nothing in it
	castest.Many(t, s)
	if _, err := s.Claim(t.Context(), "claimed"); err != nil { // a row without a head
		t.Fatal(err)
	}
	dir := must(cas.Open(t.Context(), t.TempDir()+"/store", cas.Options{}))(t)
	t.Cleanup(func() { _ = dir.Close() }) // it was only read
	castest.Many(t, dir)
	for _, o := range []cas.VerifyOptions{{}, {Run: "one"}, {Run: "fork-of-fork"}, {Run: "third", All: true}} {
		r, want := verified(t, s, o), must(cas.Verify(t.Context(), dir, o))(t)
		clean(t, r)
		clean(t, want)
		if r.Checked != want.Checked {
			t.Errorf("%+v: checked %+v; in a directory %+v", o, r.Checked, want.Checked)
		}
		if !slices.Equal(r.NotProven, want.NotProven) {
			t.Errorf("%+v: not proven %q; in a directory %q", o, r.NotProven, want.NotProven)
		}
		if len(r.Heads) != len(want.Heads) {
			t.Errorf("%+v: %d heads; in a directory %d", o, len(r.Heads), len(want.Heads))
		}
	}
	if _, err := pgstore.Verify(t.Context(), s, cas.VerifyOptions{Run: "none"}); !errors.Is(err, protocol.ErrUnknownRun) {
		t.Errorf("an unknown run: %v", err)
	}
	if _, err := pgstore.Verify(t.Context(), s, cas.VerifyOptions{Run: "gone"}); !errors.Is(err, protocol.ErrRunDeleted) {
		t.Errorf("a run that was deleted: %v", err)
	}
	h := must(s.Head(t.Context(), "run/one"))(t)
	seen := cas.PinnedHeads{Heads: map[string]cas.Seen{"run/one": {Head: h.Link, Seq: h.Seq}, "run/gone": {Head: h.Link, Seq: 1}}}
	clean(t, verified(t, s, cas.VerifyOptions{LastSeen: seen}))
}

// Every kind of damage is found, and named.
func TestVerifyNamesDamage(t *testing.T) {
	dsn := fresh(t, running(t))
	s := open(t, dsn)
	castest.Many(t, s)
	castest.Append(t, must(s.Journal(t.Context(), "wide"))(t), 30)         // with events that have rows of their own
	for _, e := range must(castest.Events(t.Context(), s, "fork", 0))(t) { // these too, then
		if err := s.Commit(t.Context(), cas.Batch{Blocks: []cas.Block{{Link: e.CID, Data: e.Raw}}}); err != nil {
			t.Fatal(err)
		}
	}
	perform := func(t *testing.T, sql string) {
		t.Helper()
		if err := server.Exec(t.Context(), dsn, sql); err != nil {
			t.Fatal(err)
		}
	}
	perform(t, "create schema kept; create table kept.heads as table wf.heads; create table kept.reflog as table wf.reflog; create table kept.blocks as table wf.blocks")
	const (
		payload = `(select b.cid from wf.blocks b where get_byte(cid, 1) = 85 and octet_length(data) between 20 and 300 order by data limit 1)` // raw: 0x55
		third   = `(select seq from wf.reflog where head = (select id from wf.heads where name = 'run/one') order by seq offset 2 limit 1)`
	)
	for name, c := range map[string]struct {
		sql  string
		want []string // kind and the beginning of where
		run  protocol.RunID
	}{
		"a flipped block": {`update wf.blocks set data = set_byte(data, octet_length(data)/2, get_byte(data, octet_length(data)/2) # 1) where cid = ` + payload,
			[]string{"corrupt wf.blocks/bafkrei"}, ""},
		"a missing block":            {`delete from wf.blocks where cid = (select new from wf.reflog where head = (select id from wf.heads where name = 'run/wide') and seq = 15)`, []string{"missing wide/15"}, ""},
		"a missing block of one run": {`delete from wf.blocks where cid = (select new from wf.reflog where head = (select id from wf.heads where name = 'run/wide') and seq = 15)`, []string{"missing wide/15"}, "wide"},
		"a line without its blocks":  {`update wf.reflog set data = null, keys = '' where head = (select id from wf.heads where name = 'run/wide') and seq = 7`, []string{"missing wide/7", "reflog_form wide/7"}, ""},
		"the blocks of another line": {`update wf.reflog set data = (select data from wf.reflog where head = (select id from wf.heads where name = 'run/wide') and seq = 3) where head = (select id from wf.heads where name = 'run/wide') and seq = 7`, []string{"corrupt wf.reflog/7", "corrupt wide/7"}, ""},
		"those of one run":           {`update wf.reflog set data = (select data from wf.reflog where head = (select id from wf.heads where name = 'run/wide') and seq = 3) where head = (select id from wf.heads where name = 'run/wide') and seq = 7`, []string{"reflog_form wide/7"}, "wide"},
		"a line under another key":   {`update wf.reflog set keys = set_byte(keys, 9, get_byte(keys, 9) # 1) where head = (select id from wf.heads where name = 'run/wide') and seq = 7`, []string{"corrupt wf.reflog/7"}, ""},
		"a rewound head": {`update wf.heads h set cid = r.new, seq = r.seq, ts = r.ts from (select * from wf.reflog where head = (select id from wf.heads where name = 'run/wide') and seq = 15) r where h.id = r.head`,
			[]string{"rolled_back wide/"}, ""},
		"a rewound head that counts as if it were": {`update wf.heads h set cid = r.new, seq = r.seq, ts = r.ts, n = r.n from (select * from wf.reflog where head = (select id from wf.heads where name = 'run/wide') and seq = 15) r where h.id = r.head`,
			[]string{"rolled_back wide/"}, "wide"},
		"a removed reflog line":         {`delete from wf.reflog where head = (select id from wf.heads where name = 'run/one') and seq = ` + third, []string{"reflog_hole one/"}, ""},
		"the first reflog line removed": {`delete from wf.reflog where head = (select id from wf.heads where name = 'run/one') and seq = 1`, []string{"reflog_hole one/"}, ""},
		"the last reflog line removed":  {`delete from wf.reflog where head = (select id from wf.heads where name = 'run/one') and seq = (select max(seq) from wf.reflog where head = (select id from wf.heads where name = 'run/one'))`, []string{"head_moved one/", "missing one/"}, ""},
		"no reflog at all":              {`delete from wf.reflog where head = (select id from wf.heads where name = 'run/one')`, []string{"reflog_hole one/"}, ""},
		"a digest of another event": {`update wf.reflog set events = set_byte(events, 3, get_byte(events, 3) # 1) where head = (select id from wf.heads where name = 'run/wide') and seq = 15`,
			[]string{"index wide/"}, ""},
		"a reflog line that is none": {`update wf.reflog set new = '\x00' where head = (select id from wf.heads where name = 'run/wide') and seq = 15`, []string{"reflog_form wide/"}, ""},
		"a head without its block":   {`delete from wf.blocks where cid = (select cid from wf.heads where name = 'run/wide')`, []string{"missing wide/"}, ""},
		"a head that is none":        {`update wf.heads set cid = '\x0102' where name = 'run/two'`, []string{"head_form two/head"}, ""},
		"a head that is gone":        {`update wf.heads set cid = null where name = 'run/two'`, []string{"head_missing two/"}, ""},
		"a row of a head is gone":    {`delete from wf.heads where name = 'run/two'`, []string{"head_missing two/"}, ""},
		"a reflog line of a deleted base": {`update wf.heads set cid = null, n = n + 1, gone = true where name = 'run/fork'; delete from wf.reflog where head = (select id from wf.heads where name = 'run/fork')`,
			[]string{"reflog_hole fork-of-fork/9"}, ""},
		"a tombstone is gone": {`delete from wf.heads where name = 'deleted/gone'`, []string{"head_missing deleted/gone"}, ""},
		"a deleted run is back": {`update wf.heads set cid = (select cid from wf.heads where name = 'run/two'), n = n - 1, gone = false where name = 'run/gone'`,
			[]string{"tombstone deleted/gone"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			perform(t, "truncate wf.heads, wf.reflog, wf.blocks; insert into wf.heads table kept.heads; insert into wf.reflog table kept.reflog; insert into wf.blocks table kept.blocks")
			perform(t, c.sql)
			r := verified(t, s, cas.VerifyOptions{Run: c.run})
			if r.OK {
				t.Error("it is sound")
			}
			for _, want := range c.want {
				if !slices.ContainsFunc(r.Findings, func(f cas.Finding) bool { return strings.HasPrefix(f.Kind+" "+f.Where, want) }) {
					t.Errorf("no finding %q in %v", want, r.Findings)
				}
			}
			for _, f := range r.Findings {
				if f.Where == "" || f.Expected == "" || f.Actual == "" || f.Fix == "" {
					t.Errorf("a finding lacks something: %+v", f)
				}
			}
		})
	}
}

// What is written meanwhile is no fault: runs that go on, begin, are forked and are deleted.
func TestVerifyBesideWriters(t *testing.T) {
	dsn := fresh(t, running(t))
	s, writer := open(t, dsn), open(t, dsn)
	castest.Many(t, s)
	stop, over := make(chan struct{}), make(chan error, 1)
	var reports []cas.Report
	go func() {
		for {
			r, err := pgstore.Verify(t.Context(), s, cas.VerifyOptions{})
			if reports = append(reports, r); err != nil {
				over <- err
				return
			}
			select {
			case <-stop:
				over <- nil
				return
			default:
			}
		}
	}()
	live := must(cas.OpenJournal(t.Context(), writer, "live"))(t)
	for n := range 25 {
		run := protocol.RunID(fmt.Sprint("short-", n))
		castest.Sample(t, writer, run, 2, nil)
		castest.Forked(t, writer, run, "of-"+run, 3)
		if n == 0 {
			live = castest.Forked(t, writer, run, "live", 3)
		}
		must(live.Append(t.Context(), castest.Now, []cas.Draft{{Data: protocol.ResumedBy{By: "someone"}}}, []cas.Block{cas.Raw(fmt.Append(nil, "said ", n))}))(t)
		castest.Kept(t, writer, "live", fmt.Sprint("content ", n))
		if n%2 == 0 {
			castest.Buried(t, writer, run)
		}
	}
	close(stop)
	if err := <-over; err != nil {
		t.Fatal(err)
	}
	for _, r := range reports {
		clean(t, r)
	}
	t.Logf("%d verifications", len(reports))
}

// lengthened adds n events to runs, each with a text that is a block of its own, a thousand to a run and some hundred to a commit.
func lengthened(t *testing.T, s cas.Keeper, n int) {
	t.Helper()
	for run := 0; n > 0; run++ {
		j := castest.Sample(t, s, protocol.RunID(fmt.Sprint("long-", run)), 0, nil)
		castest.Longer(t, j, min(n, 1000))
		n -= 1000
	}
}

// Many blocks are read by pages. With WF_BENCH=1 there are more of them than are kept in mind.
func TestVerifyOfManyBlocks(t *testing.T) {
	events := 3_000
	if os.Getenv("WF_BENCH") == "1" {
		events = 75_000
	}
	dsn := fresh(t, running(t))
	s := open(t, dsn)
	lengthened(t, s, events)
	begun := time.Now()
	r := verified(t, s, cas.VerifyOptions{})
	clean(t, r)
	t.Logf("%d blocks with %d MB in %v, %d events", r.Checked.Blocks, r.Checked.Bytes>>20, time.Since(begun).Round(time.Millisecond), r.Checked.Events)
	if want := ask(t, dsn, "select (select count(*) from wf.blocks) + (select count(*) from wf.packed p where not exists (select from wf.blocks b where substr(b.cid, 5, 7) = p.key))"); r.Checked.Blocks != want || want < int64(2*events) {
		t.Errorf("%d blocks were checked, %d are there", r.Checked.Blocks, want)
	}
	if err := server.Exec(t.Context(), dsn, `delete from wf.blocks where cid = (select new from wf.reflog where head = (select id from wf.heads where name = 'run/long-1') order by seq desc limit 1 offset 1)`); err != nil {
		t.Fatal(err)
	}
	r = verified(t, s, cas.VerifyOptions{})
	if len(r.Findings) != 1 || r.Findings[0].Kind != "missing" || !strings.HasPrefix(r.Findings[0].Where, "long-1/") {
		t.Errorf("one event is missing: %v", r.Findings)
	}
}
