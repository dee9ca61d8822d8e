package pgstore_test

import (
	"errors"
	"strings"
	"testing"

	"wf/cas"
	"wf/cas/castest"
	"wf/pgstore"
	"wf/protocol"
)

// A record and a text of the same bytes have one digest, so one key: each is found where it lies, also when only the other one is there.
func TestBlocksThatShareAKey(t *testing.T) {
	dsn, ctx := fresh(t, running(t)), t.Context()
	s := open(t, dsn)
	record := record(t, 1, 200, true)
	text := cas.Raw(record.Data)
	put := func(head string, b cas.Block) {
		t.Helper()
		if err := s.Commit(ctx, cas.Batch{Blocks: []cas.Block{b}, Moves: []cas.Move{{Name: head, New: b.Link, TS: castest.Now}}}); err != nil {
			t.Fatal(err)
		}
	}
	both := []protocol.Link{record.Link, text.Link}
	put("memory/record", record)
	if _, err := s.Block(ctx, text.Link); !errors.Is(err, protocol.ErrNotFound) || errors.Is(err, protocol.ErrCorrupt) {
		t.Errorf("the text is not there: %v", err)
	}
	if lacks := must(s.Lacks(ctx, both))(t); len(lacks) != 1 || lacks[0] != text.Link {
		t.Errorf("lacking: %v, want the text", lacks)
	}
	if got := must(s.Blocks(ctx, both))(t); len(got) != 1 || got[0].Link != record.Link {
		t.Errorf("%d blocks together, want the record", len(got))
	}
	put("memory/text", text)
	if n := ask(t, dsn, `select count(*) from wf.reflog where data is not null`); n != 2 {
		t.Fatalf("%d lines have blocks in them, want 2", n)
	}
	if lacks := must(s.Lacks(ctx, both))(t); len(lacks) != 0 {
		t.Errorf("lacking: %v", lacks)
	}
	if got := must(s.Blocks(ctx, both))(t); len(got) != 2 {
		t.Errorf("%d blocks together, want both", len(got))
	}
	read := s.Reader(ctx, both...)
	for _, l := range both {
		for what, got := range map[string][]byte{"alone": must(s.Block(ctx, l))(t), "ahead": must(read(l))(t)} {
			if string(got) != string(record.Data) {
				t.Errorf("%s, read %s: %d bytes", l, what, len(got))
			}
		}
		if found := must(s.Find(ctx, l.String()[7:20]))(t); len(found) != 2 {
			t.Errorf("found %v, want both", found)
		}
	}
	clean(t, verified(t, s, cas.VerifyOptions{}))

	if err := s.Commit(ctx, cas.Batch{Drops: []string{"memory/text"}}); err != nil {
		t.Fatal(err)
	}
	for range 3 { // found, and removed; the record is reached
		later(t, dsn, 5)
		s = open(t, dsn)
		gc(t, s, cas.GCOptions{})
	}
	if lacks := must(s.Lacks(ctx, both))(t); len(lacks) != 1 || lacks[0] != text.Link {
		t.Errorf("lacking after a collection: %v, want the text", lacks)
	}
	clean(t, verified(t, s, cas.VerifyOptions{}))
}

// A line in which other blocks lie than those of its keys hides none: they are read where they lie as well, a verification names the line, and a
// collection removes nothing that is reached.
func TestALineWithKeysOfOthers(t *testing.T) {
	dsn, ctx := fresh(t, running(t)), t.Context()
	s := open(t, dsn)
	own, other := record(t, 1, 200, true), record(t, 2, 200, true)
	for _, m := range []struct {
		head string
		cas.Block
	}{{"memory/a-other", other}, {"memory/own", own}, {"memory/z-other", other}} { // lines before it, and behind it
		if err := s.Commit(ctx, cas.Batch{Blocks: []cas.Block{m.Block}, Moves: []cas.Move{{Name: m.head, New: m.Link, TS: castest.Now}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := server.Exec(ctx, dsn, `update wf.reflog set keys = (select keys from wf.reflog l join wf.heads h on h.id = l.head where h.name = 'memory/own')
		where head in (select id from wf.heads where name like '%-other')`); err != nil {
		t.Fatal(err)
	}
	s = open(t, dsn)
	if got, err := s.Block(ctx, own.Link); err != nil || string(got) != string(own.Data) {
		t.Errorf("alone: %d bytes, %v", len(got), err)
	}
	if got := must(s.Blocks(ctx, []protocol.Link{own.Link}))(t); len(got) != 1 || string(got[0].Data) != string(own.Data) {
		t.Errorf("%d blocks together", len(got))
	}
	if got, err := s.Reader(ctx, own.Link)(own.Link); err != nil || string(got) != string(own.Data) {
		t.Errorf("ahead: %d bytes, %v", len(got), err)
	}
	if lacks := must(s.Lacks(ctx, []protocol.Link{own.Link, other.Link}))(t); len(lacks) != 1 || lacks[0] != other.Link {
		t.Errorf("lacking: %v, want the other one alone", lacks)
	}
	r := verified(t, s, cas.VerifyOptions{})
	lines := 0
	for _, f := range r.Findings {
		t.Logf("%+v", f)
		if f.Kind == "corrupt" && strings.HasPrefix(f.Where, "wf.reflog") {
			lines++
		}
	}
	if lines != 2 {
		t.Errorf("%d lines are named, want 2", lines)
	}
	if _, err := pgstore.GC(ctx, s, cas.GCOptions{}); !errors.Is(err, protocol.ErrCorrupt) {
		t.Errorf("a collection: %v", err)
	}
	if got, err := s.Block(ctx, own.Link); err != nil || string(got) != string(own.Data) {
		t.Errorf("after a collection: %d bytes, %v", len(got), err)
	}
	// The other one can be stored again.
	if err := s.Commit(ctx, cas.Batch{Blocks: []cas.Block{other}}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Block(ctx, other.Link); err != nil || string(got) != string(other.Data) {
		t.Errorf("the other one, stored again: %d bytes, %v", len(got), err)
	}
}
