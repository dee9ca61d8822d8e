package pgstore_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"wf/cas"
	"wf/cas/castest"
	"wf/pgstore"
	"wf/protocol"
)

// later makes a store look as it will in some days, when nobody has stored anything meanwhile; to processes that go on too.
func later(t testing.TB, dsn string, days int, open ...*pgstore.Store) {
	t.Helper()
	for _, s := range open {
		pgstore.Slept(s, days)
	}
	if err := server.Exec(t.Context(), dsn, fmt.Sprintf("update wf.blocks set used = used - %[1]d; update wf.reflog set used = used - %[1]d; update wf.unreached set since = since - %[1]d; update wf.heads set ts = ts - %[1]d * 86400000000 where cid is null", days)); err != nil {
		t.Fatal(err)
	}
}

func gc(t testing.TB, s *pgstore.Store, o cas.GCOptions) cas.GCReport {
	t.Helper()
	return must(pgstore.GC(t.Context(), s, o))(t)
}

func TestStoreCollects(t *testing.T) {
	srv := running(t)
	dsn := ""
	castest.ExerciseGC(t, func(t *testing.T, _ string) *pgstore.Store {
		dsn = fresh(t, srv)
		return open(t, dsn)
	}, func(t *testing.T, _ *pgstore.Store) cas.GCReport {
		t.Helper()
		later(t, dsn, 2)
		s := open(t, dsn) // a process of that day: no other one remembers what it wrote for so long
		if r := gc(t, s, cas.GCOptions{}); r.Removed > 0 {
			t.Errorf("a collection removed what it found for the first time: %+v", r)
		}
		later(t, dsn, 4)
		would, did := gc(t, s, cas.GCOptions{DryRun: true}), gc(t, s, cas.GCOptions{})
		if !would.DryRun || would.Removed != did.Removed || would.Kept != did.Kept || would.Bytes != did.Bytes || would.Before != would.After || did.Before == 0 {
			t.Errorf("a dry run told %+v, then %+v", would, did)
		}
		return did
	})
	for sql, want := range map[string]int64{
		"select count(*) from wf.unreached": 0,
		"select count(*) from wf.reflog join wf.heads h on h.id = head where h.name in ('run/gone', 'run/base', 'run/fork', 'run/leaf', 'files/gone', 'files/fork')": 0,
	} {
		if n := ask(t, dsn, sql); n != want {
			t.Errorf("%s: %d, want %d", sql, n, want)
		}
	}
	s := open(t, dsn)
	if n := must(s.Uncollected(t.Context()))(t); n > 0 {
		t.Errorf("%d runs that were deleted are still stored", n)
	}
	if size := must(s.Size(t.Context()))(t); size.Live < 100<<10 || size.File < size.Live/2 {
		t.Errorf("size: %+v", size)
	}
}

// Only those who may remove blocks collect. What they find of deleted runs besides goes too.
func TestWhoCollects(t *testing.T) {
	srv, ctx := running(t), t.Context()
	dsn := must(srv.Database(ctx))(t)
	of := strings.TrimPrefix(dsn[:strings.Index(dsn, "?")], "postgres://wf@/")
	do := func(sql string) {
		t.Helper()
		if err := srv.Exec(ctx, dsn, sql); err != nil {
			t.Fatal(err)
		}
	}
	do(fmt.Sprintf(`create role "drives-%[1]s" login; create role "collects-%[1]s" login`, of))
	must(pgstore.Init(ctx, dsn, pgstore.Roles{Worker: "drives-" + of, GC: "collects-" + of}))(t)
	as := func(role string) *pgstore.Store { return open(t, strings.Replace(dsn, "wf@", role+of+"@", 1)) }
	worker, collector := as("drives-"), as("collects-")
	events := castest.Append(t, must(worker.Journal(ctx, "r1"))(t), 30)
	later(t, dsn, 5)
	if lacks, err := worker.Lacks(ctx, []protocol.Link{events[0].CID, events[29].CID}); err != nil || len(lacks) > 0 {
		t.Errorf("a worker asks for old blocks: %v lack, %v", lacks, err)
	}
	if n := ask(t, dsn, `select count(*) from wf.reflog where data is not null and used = (extract(epoch from now()) / 86400)::int`); n != 1 {
		t.Errorf("%d lines are fresh, one was asked for", n)
	}
	d := must(cas.Bury(must(worker.Head(ctx, "run/r1"))(t), protocol.Tombstone{At: castest.Now}))(t)
	if err := worker.Commit(ctx, cas.Batch{Deletes: []cas.Deletion{d}, Derived: []cas.Derived{cas.PutMemo("k", cas.StoredMemo{At: 1})}}); err != nil {
		t.Fatal(err)
	}
	do(`insert into wf.derived(key, value) values ('state/r1', 'late'), ('state/r10', 'of another'); insert into wf.changes(by, at) values ('', extract(epoch from now())::int / 60 - 120)`)
	if _, err := pgstore.GC(ctx, worker, cas.GCOptions{}); !errors.Is(err, protocol.ErrReadOnly) || !strings.Contains(err.Error(), "drives-"+of) || protocol.HintOf(err) == "" {
		t.Errorf("as a worker: %v", err)
	}
	if r := gc(t, worker, cas.GCOptions{DryRun: true}); r.Young == 0 {
		t.Errorf("a worker looks: %+v", r)
	}
	for _, days := range []int{2, 4, 4} {
		later(t, dsn, days)
		gc(t, collector, cas.GCOptions{})
	}
	for sql, want := range map[string]int64{
		"select count(*) from wf.blocks": 1, "select count(*) from wf.reflog": 1, "select count(*) from wf.changes where at < extract(epoch from now())::int / 60 - 60": 0,
		"select count(*) from wf.derived": 1, "select count(*) from wf.derived where key = 'state/r10'": 1,
	} {
		if n := ask(t, dsn, sql); n != want {
			t.Errorf("%s: %d, want %d", sql, n, want)
		}
	}
}

// A block goes when two collections, a grace apart, found it unreached, and nobody stored it since the first.
func TestGrace(t *testing.T) {
	dsn, ctx := fresh(t, running(t)), t.Context()
	s := open(t, dsn)
	if _, err := pgstore.GC(ctx, s, cas.GCOptions{Grace: time.Hour}); !errors.Is(err, protocol.ErrUsage) {
		t.Errorf("a grace of an hour: %v", err)
	}
	block := cas.Raw([]byte("the result"))
	memo := must(cas.Encode(map[string]any{"kind": "memo", "output": block.Link}))(t)
	store := func() {
		t.Helper()
		if err := s.Commit(ctx, cas.Batch{Blocks: []cas.Block{memo, block}}); err != nil {
			t.Fatal(err)
		}
	}
	step := func(days int, young, removed, kept int64) {
		t.Helper()
		later(t, dsn, days)
		if r := gc(t, open(t, dsn), cas.GCOptions{}); r.Young != young || r.Removed != removed || r.Kept != kept {
			t.Fatalf("%+v, want %d young, %d removed, %d kept", r, young, removed, kept)
		}
	}
	move := func(old, new protocol.Link) {
		t.Helper()
		if err := s.Commit(ctx, cas.Batch{Moves: []cas.Move{{Name: "memory/x", Old: old, New: new, TS: castest.Now}}}); err != nil {
			t.Fatal(err)
		}
	}
	drop := func() {
		t.Helper()
		if err := s.Commit(ctx, cas.Batch{Drops: []string{"memory/x"}}); err != nil {
			t.Fatal(err)
		}
	}
	store()
	step(0, 2, 0, 0)
	step(10, 2, 0, 0) // found
	step(3, 2, 0, 0)
	store()
	step(3, 2, 0, 0) // it was stored again, and is found anew
	step(3, 2, 0, 0)
	move(protocol.Link{}, memo.Link) // what somebody knew of before
	step(1, 0, 0, 2)
	step(100, 0, 0, 2)
	drop() // it has not been stored for 100 days, and somebody may know of it
	step(0, 2, 0, 0)
	step(3, 2, 0, 0)
	move(protocol.Link{}, memo.Link)
	step(0, 0, 0, 2)
	drop()
	step(5, 2, 0, 0)
	step(3, 2, 0, 0)
	step(1, 0, 2, 0)
	store()
	step(2, 2, 0, 0)
	step(4, 0, 2, 0)
	// A clock that was wrong keeps nothing for long.
	store()
	step(2, 2, 0, 0)
	step(-1000, 2, 0, 0)
	step(1000, 2, 0, 0)
	step(4, 0, 2, 0)
}

// Where a block is missing that is reached, nothing is removed.
func TestCollectionOfADamagedStore(t *testing.T) {
	dsn, ctx := fresh(t, running(t)), t.Context()
	s := open(t, dsn)
	j := must(s.Journal(ctx, "r1"))(t)
	said := must(j.Append(ctx, castest.Now, []cas.Draft{{Data: protocol.TextSaid{Content: protocol.NewText(strings.Repeat("a text ", 1000))}}}, nil))(t)[0]
	wide := castest.Append(t, j, 20)[12] // with payloads that nothing leads to
	text := must(cas.DecodeData[protocol.TextSaid](&said.Event))(t).Content.Link
	later(t, dsn, 2)
	gc(t, s, cas.GCOptions{})
	later(t, dsn, 4)
	blocks := ask(t, dsn, "select count(*) from wf.blocks")
	for _, c := range []struct{ what, sql string }{
		{"an event is damaged", `update wf.blocks set data = '\x05010001ff' where cid = $`},
		{"an event is missing", `delete from wf.blocks where cid = $`},
		{"an event in a line is damaged", `update wf.reflog set data = '\x05010001ff' where seq = 1`},
		{"an event in a line is missing", `update wf.reflog set data = null, keys = '' where seq = 1`},
		{"a head names no block", `update wf.heads set cid = '\x00' where name = 'run/r1'`},
	} {
		sql := strings.ReplaceAll(c.sql, "$", fmt.Sprintf(`'\x%x'`, wide.CID.Bytes()))
		if err := server.Exec(ctx, dsn, "create table public.blocks as select * from wf.blocks; create table public.heads as select * from wf.heads; create table public.reflog as select * from wf.reflog;"+sql); err != nil {
			t.Fatal(err)
		}
		if _, err := pgstore.GC(ctx, s, cas.GCOptions{}); !errors.Is(err, protocol.ErrCorrupt) {
			t.Errorf("%s: %v", c.what, err)
		}
		if n := ask(t, dsn, "select count(*) from wf.blocks"); n < blocks-1 {
			t.Errorf("%s: %d of %d blocks are left", c.what, n, blocks)
		}
		if err := server.Exec(ctx, dsn, "truncate wf.blocks, wf.heads, wf.reflog; insert into wf.reflog select * from public.reflog; insert into wf.blocks select * from public.blocks; insert into wf.heads select * from public.heads; drop table public.blocks, public.heads, public.reflog"); err != nil {
			t.Fatal(err)
		}
	}
	if r := gc(t, s, cas.GCOptions{}); r.Removed == 0 {
		t.Errorf("once it is whole: %+v", r)
	}
	if ok := must(castest.Has(ctx, s, text))(t); !ok {
		t.Error("the text of the event is gone")
	}
}

// chaos is writers that name what they stored, or read, some commits before, while collections run.
type chaos struct {
	t *testing.T
	s []*pgstore.Store

	mu   sync.Mutex
	runs []protocol.RunID
	last int
}

// pick is one of the runs there are; "" where there is none.
func (c *chaos) pick(rng *rand.Rand) protocol.RunID {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.runs) == 0 {
		return ""
	}
	return c.runs[rng.IntN(len(c.runs))]
}

func (c *chaos) named(run protocol.RunID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs = append(c.runs, run)
}

func (c *chaos) next(what string) protocol.RunID {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	return protocol.RunID(fmt.Sprint(what, c.last))
}

// passing is an outcome that another writer brings about.
func passing(err error) bool {
	return errors.Is(err, protocol.ErrHeadMoved) || errors.Is(err, protocol.ErrRunDeleted) || errors.Is(err, protocol.ErrUnknownRun)
}

// content is blocks of which other writers make the same: a list of files, and they.
func content(rng *rand.Rand) []cas.Block {
	n := rng.IntN(6)
	files := make([]protocol.Link, 3)
	blocks := make([]cas.Block, 1, 4)
	for i := range files {
		b := cas.Raw(fmt.Append(nil, "file ", n, " ", i))
		files[i], blocks = b.Link, append(blocks, b)
	}
	var err error
	if blocks[0], err = cas.Encode(map[string]any{"files": files}); err != nil {
		panic(err)
	}
	return blocks
}

// A pocket is what a writer has not named yet.
type pocket []protocol.Link

// one does one thing.
func (c *chaos) one(s *pgstore.Store, rng *rand.Rand, p *pocket) error {
	ctx := c.t.Context()
	commit := func(b cas.Batch) error {
		if err := s.Commit(ctx, b); !passing(err) {
			return err
		}
		return nil
	}
	run := c.pick(rng)
	switch n := rng.IntN(10); {
	case n < 2 || run == "": // a run begins
		run = c.next("r")
		j, err := s.Journal(ctx, run)
		if err == nil {
			_, err = j.Append(ctx, castest.Now, []cas.Draft{{Data: protocol.TextSaid{Content: protocol.NewText(strings.Repeat(fmt.Sprint("said ", rng.IntN(9)), 400))}}}, nil)
		}
		c.named(run)
		return err
	case n < 4: // it goes on
		j, err := s.Journal(ctx, run)
		if err == nil {
			_, err = j.Append(ctx, castest.Now, []cas.Draft{{Data: protocol.ResumedBy{By: fmt.Sprint(rng.IntN(9))}}}, nil)
		}
		if passing(err) {
			return nil
		}
		return err
	case n == 4: // it is forked
		var at *protocol.Entry
		for e, err := range s.After(ctx, run, 0) {
			if err != nil {
				if passing(err) {
					return nil
				}
				return err
			}
			if at = &e; rng.IntN(3) == 0 {
				break
			}
		}
		j, err := s.Journal(ctx, run)
		fork := c.next("f")
		if err == nil && at != nil {
			if _, err = j.Fork(ctx, castest.Now, fork, *at, []cas.Draft{{Data: protocol.Forked{Base: at.CID}}}, nil, nil); err == nil {
				c.named(fork)
			}
		}
		if passing(err) {
			return nil
		}
		return err
	case n == 5: // it is deleted
		h, err := s.Head(ctx, protocol.RunHead(run))
		if err != nil || !h.Link.Defined() {
			return err
		}
		d, err := cas.Bury(h, protocol.Tombstone{At: time.Now().UnixMicro(), By: "someone"})
		if err != nil {
			return err
		}
		return commit(cas.Batch{Deletes: []cas.Deletion{d}})
	case n == 6: // blocks are stored that a head will name
		blocks := content(rng)
		*p = append(*p, blocks[0].Link)
		return s.Commit(ctx, cas.Batch{Blocks: blocks})
	case n == 7: // a head is dropped
		return commit(cas.Batch{Drops: []string{fmt.Sprint("memory/", rng.IntN(20))}})
	case n == 8: // a memo takes the place of another one
		blocks := content(rng)
		return commit(cas.Batch{Blocks: blocks, Derived: []cas.Derived{cas.PutMemo(fmt.Sprint(rng.IntN(3)), cas.StoredMemo{Memo: blocks[0].Link, At: 1 << 60})}})
	default: // what a memo leads to will be named by a head, and is not stored again
		m, ok, err := cas.FindMemo(ctx, s, fmt.Sprint(rng.IntN(3)))
		if ok {
			*p = append(*p, m.Memo)
		}
		return err
	}
}

// name names what is in a pocket by heads, in the place of what they were at.
func (c *chaos) name(s *pgstore.Store, rng *rand.Rand, p pocket) error {
	for _, l := range p {
		name := fmt.Sprint("memory/", rng.IntN(20))
		for {
			h, err := s.Head(c.t.Context(), name)
			if err == nil {
				err = s.Commit(c.t.Context(), cas.Batch{Moves: []cas.Move{{Name: name, Old: h.Link, New: l, TS: castest.Now}}})
			}
			if err == nil {
				break
			}
			if !passing(err) {
				return err
			}
		}
	}
	return nil
}

// check reads all that is there.
func (c *chaos) check() {
	t, s := c.t, c.s[0]
	t.Helper()
	for _, h := range must(s.Heads(t.Context(), ""))(t) {
		if strings.HasPrefix(h.Name, protocol.RunHead("")) {
			if _, err := castest.Events(t.Context(), s, protocol.RunOf(h.Name), 0); err != nil {
				t.Error(err)
			}
		}
		todo, seen := []protocol.Link{h.Link}, map[protocol.Link]bool{}
		for len(todo) > 0 {
			l := todo[0]
			todo = todo[1:]
			if seen[l] {
				continue
			}
			seen[l] = true
			data, err := s.Block(t.Context(), l)
			if err != nil {
				t.Errorf("%s leads to block %s: %v", h.Name, l, err)
				continue
			}
			todo = append(todo, must(cas.LinksIn(l, data))(t)...)
		}
	}
}

// Collections, two at once, beside writers take nothing that is named, and in the end all that is not.
func TestCollectionsBesideWriters(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	dsn := fresh(t, running(t))
	c := &chaos{t: t, s: []*pgstore.Store{open(t, dsn), open(t, dsn)}}
	rng := rand.New(rand.NewPCG(seed, 1<<32))
	var removed atomic.Int64
	for round := range 8 {
		var writers, collections sync.WaitGroup
		over := make(chan struct{})
		for i := range 2 {
			collections.Go(func() {
				for {
					r, err := pgstore.GC(t.Context(), c.s[i], cas.GCOptions{})
					if err != nil {
						t.Error(err)
						return
					}
					removed.Add(r.Removed)
					select {
					case <-over:
						return
					default:
					}
				}
			})
		}
		for w := range 4 {
			s, rng := c.s[w%2], rand.New(rand.NewPCG(seed, uint64(10*round+w)))
			writers.Go(func() {
				var p pocket
				for range 20 {
					if err := c.one(s, rng, &p); err != nil {
						t.Error(err)
						return
					}
				}
				if err := c.name(s, rng, p); err != nil {
					t.Error(err)
				}
			})
		}
		writers.Wait()
		close(over)
		collections.Wait()
		if t.Failed() {
			return
		}
		later(t, dsn, rng.IntN(5), c.s...) // days pass while nobody is about to name anything
	}
	for _, days := range []int{3, 4, 4} {
		later(t, dsn, days, c.s...)
		removed.Add(gc(t, c.s[0], cas.GCOptions{}).Removed)
	}
	c.check()
	if r := gc(t, c.s[0], cas.GCOptions{}); r.Young > 0 || r.Removed > 0 || removed.Load() == 0 {
		t.Errorf("at the end: %+v, %d blocks were removed before", r, removed.Load())
	}
}

// A block that is stored again while its collection is under way stays.
func TestStoredAgainBeforeItsRemoval(t *testing.T) {
	dsn, ctx := fresh(t, running(t)), t.Context()
	s := open(t, dsn)
	back, gone := cas.Raw([]byte("back")), cas.Raw([]byte("gone"))
	if err := s.Commit(ctx, cas.Batch{Blocks: []cas.Block{back, gone}}); err != nil {
		t.Fatal(err)
	}
	later(t, dsn, 2)
	gc(t, s, cas.GCOptions{})
	later(t, dsn, 4)
	writer := must(pgconn.Connect(ctx, dsn))(t)
	defer writer.Close(ctx)
	do := func(sql string) {
		t.Helper()
		if _, err := writer.Exec(ctx, sql).ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	do(fmt.Sprintf(`begin; update wf.blocks set used = used + 6 where cid = '\x%x'`, back.Link.Bytes()))
	type outcome struct {
		r   cas.GCReport
		err error
	}
	over := make(chan outcome)
	go func() {
		r, err := pgstore.GC(ctx, s, cas.GCOptions{})
		over <- outcome{r, err}
	}()
	for ask(t, dsn, "select count(*) from pg_locks where not granted") == 0 {
		select {
		case x := <-over:
			t.Fatalf("it did not wait for the writer: %+v", x)
		default:
		}
	}
	do("commit")
	if x := <-over; x.err != nil || x.r.Removed != 1 || x.r.Kept != 1 {
		t.Errorf("%+v", x)
	}
	for b, want := range map[*cas.Block]bool{&back: true, &gone: false} {
		if have := must(castest.Has(ctx, s, b.Link))(t); have != want {
			t.Errorf("%q is stored: %t", b.Data, have)
		}
	}
}
