package pgstore_test

import (
	"fmt"
	"testing"

	"wf/cas"
	"wf/cas/castest"
	"wf/protocol"
)

// record is a block of so many bytes, of which noise does not become less.
func record(t *testing.T, seed uint64, size int, noisy bool) cas.Block {
	t.Helper()
	for n := size; n > 0; n-- {
		var v any = noise(seed, n)
		if !noisy {
			v = fmt.Sprintf("%0*d", n, seed)
		}
		if b := must(cas.Encode(map[string]any{"a": v}))(t); len(b.Data) <= size {
			if len(b.Data) != size {
				t.Fatalf("no record has %d bytes", size)
			}
			return b
		}
	}
	t.Fatal("no record is that small")
	return cas.Block{}
}

// Where a block lies is nothing that readers notice: small records lie in the line of their move, others have rows.
func TestWhereABlockLies(t *testing.T) {
	dsn, ctx := fresh(t, running(t)), t.Context()
	s := open(t, dsn)
	many := func(n int) (all []cas.Block) {
		for i := range n {
			all = append(all, record(t, uint64(1000*n+i), 100, false))
		}
		return all
	}
	for name, c := range map[string]struct {
		blocks []cas.Block // the events of a move
		inLine bool
	}{
		"the smallest one":            {[]cas.Block{must(cas.Encode(map[string]any{}))(t)}, true},
		"as large as small ones are":  {[]cas.Block{record(t, 1, 2048, false)}, true},
		"a byte larger":               {[]cas.Block{record(t, 2, 2049, false)}, false},
		"as much as a line takes":     {[]cas.Block{record(t, 3, 1528, true)}, true},
		"a byte more":                 {[]cas.Block{record(t, 4, 1531, true)}, false},
		"of many bytes":               {[]cas.Block{record(t, 5, 1<<20, true)}, false},
		"as many as a line takes":     {many(4), true},
		"one more":                    {many(5), false},
		"small ones, but one":         {append(many(2), record(t, 6, 2049, false)), false},
		"together more than it takes": {[]cas.Block{record(t, 7, 1000, true), record(t, 8, 1000, true)}, false},
		"what is no record":           {[]cas.Block{cas.Raw([]byte("a text"))}, true},
	} {
		t.Run(name, func(t *testing.T) {
			head, last := "memory/"+name, c.blocks[len(c.blocks)-1].Link
			m := cas.Move{Name: head, New: last, TS: castest.Now}
			if len(c.blocks) > 1 {
				for i, b := range c.blocks {
					m.Events = append(m.Events, cas.EventRef{Seq: protocol.Seq(i + 1), CID: b.Link})
				}
			}
			before := ask(t, dsn, "select count(*) from wf.blocks")
			if err := s.Commit(ctx, cas.Batch{Blocks: c.blocks, Moves: []cas.Move{m}}); err != nil {
				t.Fatal(err)
			}
			rows := ask(t, dsn, "select count(*) from wf.blocks") - before
			packed := ask(t, dsn, `select coalesce(sum(length(keys) / 7), 0) from wf.reflog where head = (select id from wf.heads where name = '`+head+`')`)
			want := [2]int64{int64(len(c.blocks)), 0}
			if c.inLine {
				want = [2]int64{0, int64(len(c.blocks))}
			}
			if [2]int64{rows, packed} != want {
				t.Errorf("%d have rows and %d lie in the line, want %d", rows, packed, want)
			}
			var links []protocol.Link
			for _, b := range c.blocks {
				links = append(links, b.Link)
			}
			together := must(s.Blocks(ctx, links))(t)
			read := s.Reader(ctx, links...)
			for i, b := range c.blocks {
				for what, got := range map[string][]byte{"alone": must(s.Block(ctx, b.Link))(t), "together": together[i].Data, "ahead": must(read(b.Link))(t)} {
					if string(got) != string(b.Data) {
						t.Errorf("read %s: %d bytes, want %d", what, len(got), len(b.Data))
					}
				}
				if found := must(s.Find(ctx, b.Link.String()[7:15]))(t); len(found) != 1 || found[0] != b.Link {
					t.Errorf("found %v", found)
				}
			}
			if lacks := must(s.Lacks(ctx, append(links, cas.Raw([]byte("none")).Link)))(t); len(lacks) != 1 {
				t.Errorf("%d are lacking", len(lacks))
			}
		})
	}
}

// What a move leads to comes with it into its line, but for what was stored lately: that gets a row, once. So does what nothing leads to.
func TestWhatLiesBesideAMove(t *testing.T) {
	dsn, ctx := fresh(t, running(t)), t.Context()
	s := open(t, dsn)
	text, other := cas.Raw([]byte("a text")), cas.Raw([]byte("what nothing leads to"))
	record := must(cas.Encode(map[string]any{"said": text.Link}))(t)
	for i, want := range [][2]int64{{3, 1}, {4, 3}, {5, 3}} { // blocks in lines, and with rows
		top := must(cas.Encode(map[string]any{"record": record.Link, "n": i}))(t)
		m := cas.Move{Name: fmt.Sprint("memory/", i), New: top.Link, TS: castest.Now}
		if err := s.Commit(ctx, cas.Batch{Blocks: []cas.Block{text, other, record, top}, Moves: []cas.Move{m}}); err != nil {
			t.Fatal(err)
		}
		if got := [2]int64{ask(t, dsn, `select sum(length(keys)) / 7 from wf.reflog`), ask(t, dsn, `select count(*) from wf.blocks`)}; got != want {
			t.Errorf("move %d: %d blocks lie in lines and with rows, want %d", i, got, want)
		}
	}
	r := verified(t, s, cas.VerifyOptions{})
	clean(t, r)
	if r.Checked.Blocks != 6 {
		t.Errorf("%d blocks, want 6", r.Checked.Blocks)
	}
}

// What lies in a line goes as a row of a block does, when all of it is due; what is asked for, or named again, stays.
func TestLinesAreEmptied(t *testing.T) {
	dsn, ctx := fresh(t, running(t)), t.Context()
	s := open(t, dsn)
	blocks := []cas.Block{record(t, 1, 200, true), record(t, 2, 200, true), record(t, 3, 200, true)}
	links := []protocol.Link{blocks[0].Link, blocks[1].Link, blocks[2].Link}
	var m cas.Move
	begin := func(name string) {
		t.Helper()
		m = cas.Move{Name: name, New: links[2], TS: castest.Now}
		for i, l := range links {
			m.Events = append(m.Events, cas.EventRef{Seq: protocol.Seq(i + 1), CID: l})
		}
		if err := s.Commit(ctx, cas.Batch{Blocks: blocks, Moves: []cas.Move{m}}); err != nil {
			t.Fatal(err)
		}
	}
	drop := func(names ...string) {
		t.Helper()
		if err := s.Commit(ctx, cas.Batch{Drops: names}); err != nil {
			t.Fatal(err)
		}
	}
	step := func(days int, young, removed, kept int64) {
		t.Helper()
		later(t, dsn, days)
		s = open(t, dsn) // a process of that day
		if would := gc(t, s, cas.GCOptions{DryRun: true}); would.Young != young || would.Removed != removed || would.Kept != kept {
			t.Errorf("a dry run: %+v", would)
		}
		if r := gc(t, s, cas.GCOptions{}); r.Young != young || r.Removed != removed || r.Kept != kept || (r.Bytes == 0) != (removed == 0) {
			t.Fatalf("%+v, want %d young, %d removed, %d kept", r, young, removed, kept)
		}
	}
	begin("memory/x")
	step(100, 0, 0, 3)
	drop("memory/x")
	step(0, 3, 0, 0) // found
	step(3, 3, 0, 0)
	if lacks := must(s.Lacks(ctx, links[:1]))(t); len(lacks) > 0 {
		t.Errorf("%d are lacking", len(lacks))
	}
	step(3, 3, 0, 0) // it was asked for, and is found anew
	step(3, 3, 0, 0)
	if err := s.Commit(ctx, cas.Batch{Moves: []cas.Move{{Name: "memory/y", New: links[1], TS: castest.Now}}}); err != nil {
		t.Fatal(err)
	}
	step(3, 2, 0, 1) // a line stays for one of its blocks
	step(100, 2, 0, 1)
	drop("memory/y")
	step(3, 3, 0, 0)
	step(4, 0, 3, 0)
	if n := ask(t, dsn, `select count(*) from wf.reflog`); n > 0 {
		t.Errorf("%d lines are left of heads that are no more", n)
	}
	if lacks := must(s.Lacks(ctx, links))(t); len(lacks) != 3 {
		t.Errorf("%d of 3 are lacking", len(lacks))
	}
	begin("memory/x") // the same blocks in two lines
	begin("memory/z")
	step(0, 0, 0, 6)
	drop("memory/x")
	step(10, 0, 0, 6)
	drop("memory/z")
	step(0, 6, 0, 0)
	step(4, 0, 6, 0)
	clean(t, verified(t, s, cas.VerifyOptions{}))
}
