package pgstore_test

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"wf/cas"
	"wf/cas/castest"
	"wf/cas/castest/inmemory"
	"wf/pgstore"
	"wf/pgstore/pgtest"
	"wf/protocol"
)

// server is the one that most tests share, once running gave it.
var server *pgtest.Server

func TestMain(m *testing.M) {
	inmemory.TempDirs() // its faults end processes, not the machine
	os.Exit(pgtest.Tests{M: m}.Run())
}

func running(t testing.TB) *pgtest.Server {
	t.Helper()
	server = pgtest.Shared(t)
	return server
}

// started is a server of one test, or what else ends with it.
func started[T interface{ Stop() error }](s T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		pgtest.Needed(t, err)
		t.Cleanup(func() {
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
		})
		return s
	}
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// fresh is the address of a new store at a server.
func fresh(t testing.TB, s *pgtest.Server) (dsn string) {
	t.Helper()
	dsn = must(s.Database(t.Context()))(t)
	must(pgstore.Init(t.Context(), dsn, pgstore.Roles{}))(t)
	return dsn
}

// open opens a store, and closes it at the end of the test.
func open(t testing.TB, dsn string) *pgstore.Store {
	t.Helper()
	s := must(pgstore.Open(t.Context(), dsn, pgstore.Options{Poll: 50 * time.Millisecond, Readers: 3}))(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// ask is the number that a statement gives.
func ask(t testing.TB, dsn, sql string) int64 {
	t.Helper()
	out := must(server.Ask(t.Context(), dsn, sql))(t)
	return must(strconv.ParseInt(out[0], 10, 64))(t)
}

func TestStore(t *testing.T) { exercise(t, func(dsn string) string { return dsn }) }

// exercise checks stores at the addresses that via makes of those of new databases.
func exercise(t *testing.T, via func(dsn string) string) {
	srv := running(t)
	places := map[string]string{}
	castest.Exercise(t, func(t *testing.T, place string) *pgstore.Store {
		if places[place] == "" {
			places[place] = fresh(t, srv)
		}
		return open(t, via(places[place]))
	}, func(t *testing.T, s *pgstore.Store) int64 {
		for _, dsn := range places {
			if uuid := must(srv.Ask(t.Context(), dsn, "select uuid from wf.meta"))(t)[0]; s.Dir() == "postgres:"+uuid {
				return ask(t, dsn, "select count(*) from wf.reflog")
			}
		}
		t.Fatal("the store is of none of the databases")
		return 0
	})
}

// nameOf is the name of the database at an address.
func nameOf(dsn string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(dsn, "postgres://wf@/"), "?")
	return name
}

// Blocks of a large batch go ahead of it, and its head moves with the last of them.
func TestLargeBatches(t *testing.T) {
	dsn, ctx := fresh(t, running(t)), t.Context()
	s := open(t, dsn)
	for i, sizes := range [][]int{{4<<20 - 100}, {4<<20 + 1}, {3 << 20, 3 << 20, 3 << 20, 3 << 20, 3 << 20}, {9 << 20, 1}} {
		var blocks []cas.Block
		for k, n := range sizes {
			blocks = append(blocks, cas.Raw(noise(uint64(100*i+k+1), n)))
		}
		name, last := fmt.Sprint("memory/", i), blocks[len(blocks)-1].Link
		if err := s.Commit(ctx, cas.Batch{Blocks: blocks, Moves: []cas.Move{{Name: name, New: last}}}); err != nil {
			t.Fatalf("sizes %v: %v", sizes, err)
		}
		for _, b := range blocks {
			if got := must(s.Block(ctx, b.Link))(t); string(got) != string(b.Data) {
				t.Errorf("sizes %v: a block of %d bytes came back as %d", sizes, len(b.Data), len(got))
			}
		}
		if h := must(s.Head(ctx, name))(t); h.Link != last {
			t.Errorf("sizes %v: the head is %s", sizes, h.Link)
		}
	}
}

// A batch that PostgreSQL would refuse is refused before it reaches the others of its group.
func TestNamesThatAreNoText(t *testing.T) {
	s, ctx := open(t, fresh(t, running(t))), t.Context()
	b := cas.Raw([]byte("b"))
	for _, bad := range []cas.Batch{
		{Moves: []cas.Move{{Name: "memory/\x00", New: b.Link}}},
		{Moves: []cas.Move{{Name: "memory/\xff", New: b.Link}}},
		{Moves: []cas.Move{{Name: "memory/a", New: b.Link, Note: "\x00"}}},
		{Moves: []cas.Move{{Name: "memory/a", New: b.Link}, {Name: "memory/a", New: b.Link}}},
		{Moves: []cas.Move{{Name: "memory/a"}}},
		{Derived: []cas.Derived{{Key: "\xff", Data: []byte("d")}}},
		{Derived: []cas.Derived{{Key: "k", Data: []byte("d")}, {Key: "k", Data: []byte("e")}}},
	} {
		if err := s.Commit(ctx, bad); !errors.Is(err, protocol.ErrUsage) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if hs := must(s.Heads(ctx, ""))(t); len(hs) > 0 {
		t.Errorf("heads: %+v", hs)
	}
}

// What lies in the database is hashed when it is read.
func TestDamage(t *testing.T) {
	dsn, ctx := fresh(t, running(t)), t.Context()
	s := open(t, dsn)
	j := must(s.Journal(ctx, "r1"))(t)
	events := castest.Append(t, j, 30)
	b := cas.Raw([]byte(strings.Repeat("the payload ", 40)))
	if err := s.Commit(ctx, cas.Batch{Blocks: []cas.Block{b}}); err != nil {
		t.Fatal(err)
	}
	at := func(l protocol.Link) string { return fmt.Sprintf(`cid = '\x%x'`, l.Bytes()) }
	do := func(sql string) {
		t.Helper()
		if err := server.Exec(ctx, dsn, sql); err != nil {
			t.Fatal(err)
		}
	}
	do(`update wf.blocks set data = (select data from wf.blocks where ` + at(events[10].CID) + `) where ` + at(b.Link))
	if _, err := s.Block(ctx, b.Link); !errors.Is(err, protocol.ErrCorrupt) {
		t.Errorf("a block with the bytes of another: %v", err)
	}
	do(`update wf.blocks set data = '' where ` + at(b.Link))
	if _, err := s.Block(ctx, b.Link); !errors.Is(err, protocol.ErrCorrupt) {
		t.Errorf("a block without bytes: %v", err)
	}
	do(`delete from wf.blocks where ` + at(events[20].CID))
	got, err := castest.Events(ctx, s, "r1", 0)
	if !errors.Is(err, protocol.ErrCorrupt) || len(got) != 20 {
		t.Errorf("%d events before the one that is missing, %v", len(got), err)
	}
	do(`update wf.reflog set data = (select data from wf.reflog where head = (select id from wf.heads where name = 'run/r1') and seq = 3) where head = (select id from wf.heads where name = 'run/r1') and seq = 7`)
	if got, err := castest.Events(ctx, s, "r1", 0); !errors.Is(err, protocol.ErrCorrupt) || len(got) != 3 {
		t.Errorf("%d events before a line with the blocks of another, %v", len(got), err)
	}
	if _, err := s.Block(ctx, events[5].CID); !errors.Is(err, protocol.ErrCorrupt) {
		t.Errorf("a block of that line: %v", err)
	}
	do(`delete from wf.reflog where head = (select id from wf.heads where name = 'run/r1') and seq <= 3`)
	if got, err := castest.Events(ctx, s, "r1", 0); !errors.Is(err, protocol.ErrCorrupt) || len(got) > 0 {
		t.Errorf("%d events without the first lines of the reflog, %v", len(got), err)
	}
}
