// Package castest is the conformance suite of stores: what every store of runs must do, also one
// with a disk that fails.
//
//	castest.ExerciseDir(t, func(t *testing.T, dir string) castest.Store { … })
//	castest.ExerciseDir(t, func(t *testing.T, dir string) *cas.Store { … })
package castest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/cas"
	"wf/protocol"
)

// Store is a store of runs of any kind: in a directory, in a database.
type Store interface {
	protocol.Feed
	cas.Backing
	cas.Lists
	Journal(ctx context.Context, run protocol.RunID) (*cas.Journal, error)
	Commit(ctx context.Context, b cas.Batch) error
	Base(ctx context.Context, run protocol.RunID) (base protocol.RunID, shared protocol.Seq, err error)
	Forks(ctx context.Context, run protocol.RunID) ([]cas.Sharer, error)
	Reach(ctx context.Context, run protocol.RunID, seq protocol.Seq) (int64, error)
	Hold(ctx context.Context) (release func(), err error)
	MayGoOn(ctx context.Context) error
	Claim(ctx context.Context, run protocol.RunID) (cas.Claim, error)
	Driven(ctx context.Context, run protocol.RunID) (bool, error)
	Undriven(ctx context.Context, run protocol.RunID) error
	DropLock(ctx context.Context, run protocol.RunID) error
	Close() error
}

// Opener opens the store in a place, a path that exists for nobody else: the store is made when it is not there. It is
// called several times for one place.
type Opener[S Store] func(t *testing.T, place string) S

// Exercise checks a store of any kind. moves counts the moves of all heads in its reflog.
func Exercise[S Store](t *testing.T, open Opener[S], moves func(t *testing.T, s S) int64) {
	count := func(t *testing.T, s Store) int64 { return moves(t, s.(S)) }
	for _, c := range []struct {
		name string
		run  func(t *testing.T, open func() Store)
	}{
		{"a block comes back as it was put", blocks},
		{"a block of another hash is refused", wrongHash},
		{"a head moves only from where it was seen", headCAS},
		{"a refused batch leaves nothing behind", allOrNothing},
		{"each batch of many stands or falls alone", alone},
		{"a journal reads back what was appended", journal},
		{"long texts are moved to blocks and come back", longTexts},
		{"a late journal gets an error and catches up", catchup},
		{"staged events are committed in their order, or void together", func(t *testing.T, open func() Store) { staged(t, open, count) }},
		{"a fork shares the events before it", fork},
		{"a fork of a fork reads from the first event", forkOfFork},
		{"a run that was deleted stays so", deleted},
		{"the files of a run go, and its journal stays", dropped},
		{"what an event leads to is counted once", reach},
		{"a memory is a journal of its own", memory},
		{"cursors outside of the journal are named", cursors},
		{"derived values belong to a head", derived},
		{"events of many journals are read at once", scattered},
		{"lists tell what there is", lists},
		{"a prefix of names lists what begins with it", prefixes},
		{"what moved is named, and the newest runs are listed", moved},
		{"many goroutines append and none loses an event", concurrent},
		{"a follower hears of every commit", follow},
		{"a run has one driver", oneDriver},
		{"what is written under a claim needs it", underClaim},
		{"a run that was deleted leaves no claim", claimOfDeleted},
		{"a fence that the store did not give is refused", strangeFence},
		{"all of it is there after opening again", func(t *testing.T, open func() Store) { reopen(t, open, count) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			place := t.TempDir() + "/store"
			c.run(t, func() Store {
				s := open(t, place)
				t.Cleanup(func() {
					if err := s.Close(); err != nil {
						t.Errorf("close: %v", err)
					}
				})
				return s
			})
		})
	}
}

// ExerciseDir checks a store in a directory.
func ExerciseDir(t *testing.T, open Opener[*cas.Store]) {
	Exercise(t, open, func(t *testing.T, s *cas.Store) int64 {
		t.Helper()
		return must(cas.Verify(t.Context(), s, cas.VerifyOptions{}))(t).Checked.Moves
	})
}

// Now is the time of the first event; unix µs.
const Now = 1_790_000_000_000_000

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func blocks(t *testing.T, open func() Store) {
	s, ctx := open(), t.Context()
	var all []cas.Block
	for _, n := range []int{0, 1, 500, 4 << 10, 5 << 10, 60 << 10, 200 << 10, 3 << 20} {
		all = append(all, cas.Raw(noise(n)), cas.Raw(bytes.Repeat([]byte("go test ./...\n"), n/14)))
	}
	rec := must(cas.Encode(protocol.Result{Kind: protocol.KindResult, V: 1, Start: all[3].Link, Status: protocol.Done}))(t)
	all = append(all, rec)
	if err := s.Commit(ctx, cas.Batch{Blocks: append(all, all...)}); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(ctx, cas.Batch{Blocks: all}); err != nil {
		t.Fatalf("the same blocks again: %v", err)
	}
	for _, b := range all {
		got, err := s.Block(ctx, b.Link)
		if err != nil || !bytes.Equal(got, b.Data) {
			t.Errorf("block of %d bytes: %d bytes came back, %v", len(b.Data), len(got), err)
		}
		if len(got) > 0 {
			got[0] ^= 1 // a copy: the next reader sees nothing of this
		}
	}
	if got := must(s.Block(ctx, rec.Link))(t); !bytes.Equal(got, rec.Data) {
		t.Error("a reader changed what another one read")
	}
	absent := cas.Raw([]byte("never stored"))
	if _, err := s.Block(ctx, absent.Link); !errors.Is(err, protocol.ErrNotFound) {
		t.Errorf("a block that is not there: %v", err)
	}
	for _, b := range all { // a CID that is mistyped at its end begins as that of a whole block does
		alike := bytes.Clone(b.Link.Bytes())
		alike[len(alike)-1] ^= 1
		if _, err := s.Block(ctx, must(protocol.CastLink(alike))(t)); !errors.Is(err, protocol.ErrNotFound) || errors.Is(err, protocol.ErrCorrupt) {
			t.Errorf("a block that is not there, and whose CID begins like that of one of %d bytes: %v", len(b.Data), err)
		}
	}
	if ok := must(Has(ctx, s, absent.Link))(t); ok {
		t.Error("has a block that was never stored")
	}
	if ok := must(Has(ctx, s, rec.Link))(t); !ok {
		t.Error("has not a block that was stored")
	}
}

// noise is bytes that do not compress, the same on every machine.
func noise(n int) []byte {
	out, x := make([]byte, n), uint64(n)*2654435761+1
	for i := range out {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		out[i] = byte(x >> 32)
	}
	return out
}

func wrongHash(t *testing.T, open func() Store) {
	s := open()
	b := cas.Block{Link: cas.Raw([]byte("one")).Link, Data: []byte("two")}
	if err := s.Commit(t.Context(), cas.Batch{Blocks: []cas.Block{b}}); !errors.Is(err, protocol.ErrCorrupt) {
		t.Errorf("want corrupt, have %v", err)
	}
}

func headCAS(t *testing.T, open func() Store) {
	s, ctx := open(), t.Context()
	a, b := cas.Raw([]byte("a")), cas.Raw([]byte("b"))
	move := func(old, new protocol.Link) error {
		return s.Commit(ctx, cas.Batch{Blocks: []cas.Block{a, b}, Moves: []cas.Move{{Name: "memory/x", Old: old, New: new, TS: Now}}})
	}
	if h := must(s.Head(ctx, "memory/x"))(t); h != (cas.Head{}) {
		t.Errorf("a head before its first move: %+v", h)
	}
	if err := move(protocol.Link{}, a.Link); err != nil {
		t.Fatal(err)
	}
	if err := move(protocol.Link{}, b.Link); !errors.Is(err, protocol.ErrHeadMoved) {
		t.Errorf("from nowhere, though it stands: %v", err)
	}
	if err := move(b.Link, a.Link); !errors.Is(err, protocol.ErrHeadMoved) {
		t.Errorf("from elsewhere: %v", err)
	}
	if err := move(a.Link, b.Link); err != nil {
		t.Fatal(err)
	}
	if h := must(s.Head(ctx, "memory/x"))(t); h.Link != b.Link || h.TS != Now {
		t.Errorf("head: %+v", h)
	}
}

func allOrNothing(t *testing.T, open func() Store) {
	s, ctx := open(), t.Context()
	b := cas.Raw([]byte("left behind?"))
	err := s.Commit(ctx, cas.Batch{
		Blocks:  []cas.Block{b},
		Moves:   []cas.Move{{Name: "memory/a", New: b.Link}, {Name: "memory/b", Old: b.Link, New: b.Link}},
		Derived: []cas.Derived{{Key: "k", Head: b.Link, Data: []byte("d")}},
	})
	if !errors.Is(err, protocol.ErrHeadMoved) {
		t.Fatalf("want head_moved, have %v", err)
	}
	if ok := must(Has(ctx, s, b.Link))(t); ok {
		t.Error("the block was stored")
	}
	if hs := must(s.Heads(ctx, ""))(t); len(hs) > 0 {
		t.Errorf("heads moved: %+v", hs)
	}
	if _, ok, err := s.Derived(ctx, "k"); ok || err != nil {
		t.Errorf("the derived value was stored (%v)", err)
	}
}

var sameLink = cmp.Comparer(func(a, b protocol.Link) bool { return a == b })

func derived(t *testing.T, open func() Store) {
	s, ctx := open(), t.Context()
	j := must(s.Journal(ctx, "r1"))(t)
	state := bytes.Repeat([]byte("state "), 3000)
	got, err := j.Append(ctx, Now, []cas.Draft{{Data: protocol.ResumedBy{}}}, nil, cas.Derived{Key: "snapshot/r1", Data: state})
	if err != nil {
		t.Fatal(err)
	}
	d, ok, err := s.Derived(ctx, "snapshot/r1")
	if err != nil || !ok || d.Head != got[0].CID || !bytes.Equal(d.Data, state) {
		t.Errorf("derived: %v %v, head %s, %d bytes", ok, err, d.Head, len(d.Data))
	}
	if err := s.Commit(ctx, cas.Batch{Derived: []cas.Derived{{Key: "snapshot/r1"}}}); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := s.Derived(ctx, "snapshot/r1"); ok || err != nil {
		t.Errorf("after its removal: %v %v", ok, err)
	}
}

func concurrent(t *testing.T, open func() Store) {
	ctx := t.Context()
	stores := []Store{open(), open()} // as if two processes
	const runs, each = 8, 20
	var wg sync.WaitGroup
	for i := range runs {
		wg.Go(func() {
			j, err := stores[i%2].Journal(ctx, protocol.RunID(fmt.Sprint("r", i/2))) // two on each run
			if err != nil {
				t.Error(err)
				return
			}
			for n := 0; n < each; {
				_, err := j.Append(ctx, Now, []cas.Draft{{Step: fmt.Sprint("w", i), Data: protocol.ResumedBy{By: fmt.Sprint(n)}}}, nil)
				if errors.Is(err, protocol.ErrHeadMoved) {
					_, err = j.Catchup(ctx)
				} else if err == nil {
					n++
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for r := range runs / 2 {
		next := map[string]int{}
		for _, e := range must(Events(ctx, stores[0], protocol.RunID(fmt.Sprint("r", r)), 0))(t) {
			d := must(cas.DecodeData[protocol.ResumedBy](&e.Event))(t)
			if d.By != fmt.Sprint(next[e.StepName()]) {
				t.Errorf("run %d, event %d: %s wrote %s, want %d", r, e.Seq, e.StepName(), d.By, next[e.StepName()])
			}
			next[e.StepName()]++
		}
		for w, n := range next {
			if n != each {
				t.Errorf("run %d has %d events of %s, want %d", r, n, w, each)
			}
		}
	}
}

func follow(t *testing.T, open func() Store) {
	ctx := t.Context()
	writer, reader := open(), open()
	since := must(reader.Changes(ctx))(t)
	const n = 50
	go func() {
		j, err := writer.Journal(ctx, "r1")
		for i := 0; i < n && err == nil; i++ {
			_, err = j.Append(ctx, Now, []cas.Draft{{Data: protocol.ResumedBy{}}}, nil)
		}
		if err != nil {
			t.Error(err)
		}
	}()
	var last protocol.Seq
	for last < n {
		got, err := Events(ctx, reader, "r1", last)
		if err != nil && !errors.Is(err, protocol.ErrUnknownRun) {
			t.Fatal(err)
		}
		for _, e := range got {
			if e.Seq != last+1 {
				t.Fatalf("event %d after %d", e.Seq, last)
			}
			last = e.Seq
		}
		if last < n {
			since = must(reader.AwaitChange(ctx, since))(t)
		}
	}
}

func reopen(t *testing.T, open func() Store, moves func(*testing.T, Store) int64) {
	s, ctx := open(), t.Context()
	want := Append(t, must(s.Journal(ctx, "r1"))(t), 90)
	n := moves(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Head(ctx, "run/r1"); err == nil {
		t.Error("a closed store answers")
	}
	s = open()
	if d := cmp.Diff(want, must(Events(ctx, s, "r1", 0))(t), sameLink); d != "" {
		t.Errorf("events (-want +have):\n%s", d)
	}
	if have := moves(t, s); have != n {
		t.Errorf("%d moves of the head, want %d", have, n)
	}
}
