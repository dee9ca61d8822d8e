package castest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wf/cas"
	"wf/protocol"
)

// Place is a kind of store that runs are copied from and to.
type Place struct {
	Open   func(t *testing.T) cas.Keeper // a new one, with nothing in it
	Verify func(t *testing.T, s cas.Keeper) cas.Report
}

func (p Place) clean(t *testing.T, s cas.Keeper) {
	t.Helper()
	for _, f := range p.Verify(t, s).Findings {
		t.Errorf("%s: %s", s.Dir(), f)
	}
}

// ExerciseCopy checks that runs come from one kind of store to another.
func ExerciseCopy(t *testing.T, from, to Place) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, from, to Place)
	}{
		{"everything comes, and comes back", copyAll},
		{"a run is brought forward, and never back", copyForward},
		{"a run that went on in both is named with both heads", copyDiverged},
		{"a run that was deleted is not brought back", copyDeleted},
		{"a run comes with what it was forked from", copyForks},
		{"a copy that is cut off anywhere goes on", copyKilled},
		{"a run that moves meanwhile is looked at again", copyRace},
		{"a damaged run stays away, and the others come", copyDamaged},
		{"files are kept beside those that are there", copyFiles},
		{"long answers come in parts", copyLarge},
		{"a long run comes in parts", copyLong},
		{"many runs come, and later those that are new", copyMany},
		{"forks know their bases in whatever order they come", kinInAnyOrder},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, from, to) })
	}
}

func copied(t *testing.T, from, to cas.Keeper, o cas.CopyOptions) *cas.Copied {
	t.Helper()
	return must(cas.Copy(t.Context(), from, to, o))(t)
}

// heads are those of a store that Copy takes over, by name, without the times of moves.
func heads(t *testing.T, s cas.Keeper) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, h := range must(s.Heads(t.Context(), ""))(t) {
		out[h.Name] = fmt.Sprint(h.Seq, " ", h.Link)
	}
	return out
}

func same(t *testing.T, a, b cas.Keeper) {
	t.Helper()
	if d := cmp.Diff(heads(t, a), heads(t, b)); d != "" {
		t.Errorf("heads differ (-%s +%s):\n%s", a.Dir(), b.Dir(), d)
	}
}

// watched is a store that counts what is read of it, and whose commits fail when they are told to. What only a store of its
// kind can do it cannot.
type watched struct {
	cas.Keeper
	blocks, events, commits int
	before                  func() error // of a commit
	after                   func() error
}

func (w *watched) Block(ctx context.Context, l protocol.Link) ([]byte, error) {
	w.blocks++
	return w.Keeper.Block(ctx, l)
}

func (w *watched) Events(ctx context.Context, head, what string, from protocol.Seq) iter.Seq2[protocol.Entry, error] {
	w.events++
	return w.Keeper.Events(ctx, head, what, from)
}

func (w *watched) Commit(ctx context.Context, b cas.Batch) error {
	w.commits++
	if w.before != nil {
		if err := w.before(); err != nil {
			return err
		}
	}
	if err := w.Keeper.Commit(ctx, b); err != nil || w.after == nil {
		return err
	}
	return w.after()
}

func copyAll(t *testing.T, from, to Place) {
	a, b, c := from.Open(t), to.Open(t), from.Open(t)
	Many(t, a)
	var told []cas.CopyProgress
	got := copied(t, a, b, cas.CopyOptions{Progress: func(p cas.CopyProgress) { told = append(told, p) }})
	want := &cas.Copied{Runs: []protocol.RunID{"one", "fork", "fork-of-fork", "third", "two"}, Memories: []string{"notes"}, Tombstones: []protocol.RunID{"gone"}, Blocks: got.Blocks, Bytes: got.Bytes}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("copied (-want +have):\n%s", d)
	}
	if last := told[len(told)-1]; got.Blocks < 50 || last.Runs != 5 || last.Of != 5 || last.Blocks > got.Blocks {
		t.Errorf("%d blocks; told %+v", got.Blocks, told)
	}
	same(t, a, b)
	to.clean(t, b)
	for _, fork := range []protocol.RunID{"fork", "fork-of-fork", "third"} {
		base, seq, err := a.Base(t.Context(), fork)
		if have, n, err2 := b.Base(t.Context(), fork); have != base || n != seq || err != nil || err2 != nil {
			t.Errorf("%s is a fork of %s at %d, and was one of %s at %d (%v, %v)", fork, have, n, base, seq, err, err2)
		}
	}
	// Nothing is new: heads alone are read.
	from2, to2 := &watched{Keeper: a}, &watched{Keeper: b}
	got = copied(t, from2, to2, cas.CopyOptions{})
	if d := cmp.Diff(&cas.Copied{Same: 5}, got); d != "" || from2.blocks+from2.events+to2.blocks+to2.events+to2.commits > 0 {
		t.Errorf("the second time %+v, read %+v and %+v", got, from2, to2)
	}
	copied(t, b, c, cas.CopyOptions{})
	same(t, a, c)
	from.clean(t, c)
	for _, run := range []protocol.RunID{"one", "third"} {
		x, y := must(readAll(t.Context(), a, run))(t), must(readAll(t.Context(), c, run))(t)
		if d := cmp.Diff(x, y); d != "" {
			t.Errorf("%s is another run:\n%s", run, d)
		}
	}
	if _, err := cas.Copy(t.Context(), a, a, cas.CopyOptions{}); !errors.Is(err, protocol.ErrUsage) {
		t.Errorf("onto itself: %v", err)
	}
}

// readAll is the bytes of the events of a run.
func readAll(ctx context.Context, s cas.Keeper, run protocol.RunID) (out []string, err error) {
	for e, err := range s.Events(ctx, protocol.RunHead(run), string(run), 0) {
		if err != nil {
			return nil, err
		}
		out = append(out, string(e.Raw))
	}
	return out, nil
}

func copyForward(t *testing.T, from, to Place) {
	a, b := from.Open(t), to.Open(t)
	j := Sample(t, a, "one", 2, nil)
	Sample(t, a, "other", 2, nil)
	one := cas.CopyOptions{Runs: []protocol.RunID{"one"}}
	copied(t, a, b, one)
	if h := must(b.Head(t.Context(), "run/other"))(t); h.Link.Defined() {
		t.Error("another run came too")
	}
	Append(t, j, 30)
	var forwarded, live []protocol.RunID
	one.Forward = func(_ context.Context, run protocol.RunID) (func() error, error) {
		forwarded = append(forwarded, run)
		return func() error { live = append(live, run); return nil }, nil
	}
	one.Driven = func(_ context.Context, run protocol.RunID) (bool, error) { return run == "one", nil }
	got := copied(t, a, b, one)
	if want := []protocol.RunID{"one"}; !slices.Equal(got.Forwarded, want) || !slices.Equal(forwarded, want) || !slices.Equal(live, want) || !slices.Equal(got.Driven, want) || got.Blocks > 40 {
		t.Errorf("%+v; told of %v, %v", got, forwarded, live)
	}
	// The other way it is ahead.
	Append(t, j, 1)
	got = copied(t, b, a, cas.CopyOptions{Runs: []protocol.RunID{"one"}})
	if !slices.Equal(got.Ahead, []protocol.RunID{"one"}) || got.Blocks > 0 {
		t.Errorf("the other way %+v", got)
	}
	one.Forward = func(context.Context, protocol.RunID) (func() error, error) { return nil, protocol.ErrRunLive }
	if got, err := cas.Copy(t.Context(), a, b, one); !errors.Is(err, protocol.ErrRunLive) || !slices.Equal(got.Faulty, []protocol.RunID{"one"}) {
		t.Errorf("a run that may not go on: %+v, %v", got, err)
	}
	one.Forward = nil
	copied(t, a, b, one)
	to.clean(t, b)
	from.clean(t, a)
	if _, err := cas.Copy(t.Context(), a, b, cas.CopyOptions{Runs: []protocol.RunID{"none"}}); !errors.Is(err, protocol.ErrUnknownRun) {
		t.Errorf("an unknown run: %v", err)
	}
}

func copyDiverged(t *testing.T, from, to Place) {
	a, b := from.Open(t), to.Open(t)
	Many(t, a)
	copied(t, a, b, cas.CopyOptions{})
	here, there := must(cas.OpenJournal(t.Context(), a, "one"))(t), must(cas.OpenJournal(t.Context(), b, "one"))(t)
	say := func(j *cas.Journal, what string) {
		must(j.Append(t.Context(), Now, []cas.Draft{{Data: protocol.ResumedBy{By: what}}}, nil))(t)
	}
	say(here, "here")
	say(here, "here again")
	say(there, "there")
	Remembered(t, a, "notes", "here")
	Remembered(t, b, "notes", "there")
	sink := func(s cas.Keeper, what string) {
		c := must(cas.OpenSink(s, "ops"))(t)
		must(c.Append(t.Context(), Now, cas.EventRef{}, []cas.Draft{{Data: protocol.ResumedBy{By: what}}}))(t)
	}
	sink(a, "here")
	sink(b, "there")
	Sample(t, a, "new", 1, nil)
	got, err := cas.Copy(t.Context(), a, b, cas.CopyOptions{})
	x, _ := here.Head()
	y, _ := there.Head()
	if !errors.Is(err, protocol.ErrHeadMoved) || !strings.Contains(err.Error(), x.String()) || !strings.Contains(err.Error(), y.String()) {
		t.Errorf("the error does not name both heads: %v", err)
	}
	if len(got.Diverged) != 2 || got.Diverged[0].Name != "run/one" || got.Diverged[1].Name != "memory/notes" || !slices.Equal(got.Own, []string{"notify/ops"}) || !slices.Equal(got.Runs, []protocol.RunID{"new"}) {
		t.Errorf("%+v", got)
	}
	if h := must(b.Head(t.Context(), "run/one"))(t); h.Link != y {
		t.Error("the head moved")
	}
	// With runs that are named, the memory of the destination is its own.
	got = copied(t, a, b, cas.CopyOptions{Runs: []protocol.RunID{"new"}, Kin: func(context.Context, protocol.RunID) ([]protocol.RunID, []string, error) {
		return nil, []string{"notes"}, nil
	}})
	if !slices.Equal(got.Own, []string{"memory/notes"}) || got.Same != 1 {
		t.Errorf("%+v", got)
	}
	to.clean(t, b)
}

func copyDeleted(t *testing.T, from, to Place) {
	a, b := from.Open(t), to.Open(t)
	Many(t, a)
	copied(t, a, b, cas.CopyOptions{})
	Buried(t, b, "two")
	got := copied(t, a, b, cas.CopyOptions{})
	if !slices.Equal(got.Deleted, []protocol.RunID{"two"}) || got.Same != 4 {
		t.Errorf("%+v", got)
	}
	if _, err := cas.Copy(t.Context(), a, b, cas.CopyOptions{Runs: []protocol.RunID{"two"}}); !errors.Is(err, protocol.ErrRunDeleted) {
		t.Errorf("by its name: %v", err)
	}
	if _, err := cas.Copy(t.Context(), a, b, cas.CopyOptions{Runs: []protocol.RunID{"gone"}}); !errors.Is(err, protocol.ErrRunDeleted) {
		t.Errorf("one that was deleted at the source: %v", err)
	}
	// A run that was deleted at the source alone stays; its tombstone does not come.
	Buried(t, a, "third")
	if got = copied(t, a, b, cas.CopyOptions{}); !slices.Equal(got.Kept, []protocol.RunID{"third"}) || got.Tombstones != nil {
		t.Errorf("%+v", got)
	}
	to.clean(t, b)
	// What the tombstone that came says: the run does not begin here either.
	_, err := must(cas.OpenJournal(t.Context(), b, "gone"))(t).Append(t.Context(), Now, []cas.Draft{{Data: protocol.ResumedBy{}}}, nil)
	if !errors.Is(err, protocol.ErrRunDeleted) {
		t.Errorf("a run that was deleted elsewhere begins again: %v", err)
	}
	if _, _, err := b.Tip(t.Context(), "gone"); !errors.Is(err, protocol.ErrRunDeleted) {
		t.Errorf("its head: %v", err)
	}
	stone := must(b.Head(t.Context(), "deleted/gone"))(t)
	d := must(cas.Rebury("gone", cas.Block{Link: stone.Link, Data: must(b.Block(t.Context(), stone.Link))(t)}))(t)
	if err := b.Commit(t.Context(), cas.Batch{Deletes: []cas.Deletion{d}}); !errors.Is(err, protocol.ErrRunDeleted) {
		t.Errorf("a tombstone for a run that has one: %v", err)
	}
	if _, err := cas.Rebury("one", cas.Block{Link: stone.Link, Data: must(b.Block(t.Context(), stone.Link))(t)}); err == nil {
		t.Error("the tombstone of another run is taken")
	}
}

func copyForks(t *testing.T, from, to Place) {
	a, b := from.Open(t), to.Open(t)
	Many(t, a)
	Sample(t, a, "child", 1, nil)
	o := cas.CopyOptions{Runs: []protocol.RunID{"third"}, Kin: func(_ context.Context, run protocol.RunID) ([]protocol.RunID, []string, error) {
		if run == "fork" {
			return []protocol.RunID{"child", "third"}, []string{"notes", "unknown"}, nil
		}
		return nil, []string{"notes"}, nil
	}}
	got := copied(t, a, b, o)
	if want := []protocol.RunID{"one", "fork", "child", "fork-of-fork", "third"}; !slices.Equal(got.Runs, want) || !slices.Equal(got.Memories, []string{"notes"}) {
		t.Errorf("%+v", got)
	}
	to.clean(t, b)
	// What a fork was forked from is gone, here or there: the fork is whole.
	Buried(t, a, "two")
	forked := Sample(t, a, "origin", 2, nil)
	Append(t, Forked(t, a, "origin", "left", 4), 5)
	Append(t, Forked(t, a, "origin", "left-there", 4), 5)
	Append(t, forked, 2)
	copied(t, a, b, cas.CopyOptions{Runs: []protocol.RunID{"origin"}})
	Buried(t, b, "origin")
	got = copied(t, a, b, cas.CopyOptions{Runs: []protocol.RunID{"left-there"}})
	if !slices.Equal(got.Deleted, []protocol.RunID{"origin"}) || !slices.Equal(got.Runs, []protocol.RunID{"left-there"}) {
		t.Errorf("%+v", got)
	}
	c := to.Open(t)
	Buried(t, a, "origin")
	copied(t, a, c, cas.CopyOptions{Runs: []protocol.RunID{"left"}})
	for s, run := range map[cas.Keeper]protocol.RunID{b: "left-there", c: "left"} {
		if x, y := must(readAll(t.Context(), a, run))(t), must(readAll(t.Context(), s, run))(t); !slices.Equal(x, y) || len(x) != 10 {
			t.Errorf("%s has %d events, %d at the source", run, len(y), len(x))
		}
		to.clean(t, s)
	}
}

// errCut is a process that ends.
var errCut = errors.New("the process was killed")

func copyKilled(t *testing.T, from, to Place) {
	a := from.Open(t)
	Many(t, a)
	whole := to.Open(t)
	copied(t, a, whole, cas.CopyOptions{})
	b := to.Open(t) // of each try the next one goes on
	cuts := 0
	for cut := 1; ; cut++ {
		w := &watched{Keeper: b}
		ctx, cancel := context.WithCancelCause(t.Context())
		end := func() error {
			cancel(errCut)
			return errCut
		}
		switch cut % 3 {
		case 0: // its second commit is not done
			w.before = func() error {
				if w.commits < 2 {
					return nil
				}
				return end()
			}
		case 1: // its first is done, and this is not heard of
			w.after = end
		case 2: // its first is done, and its context ends
			w.after = func() error { _ = end(); return nil } // the copy sees the context
		}
		_, err := cas.Copy(ctx, a, w, cas.CopyOptions{})
		cancel(nil)
		to.clean(t, b)
		if err == nil {
			break
		}
		if cuts++; !errors.Is(err, errCut) || cuts > 100 {
			t.Fatalf("cut %d: %v", cut, err)
		}
	}
	if cuts < 5 {
		t.Errorf("only %d copies were cut off", cuts)
	}
	same(t, whole, b)
}

func copyRace(t *testing.T, from, to Place) {
	a, b := from.Open(t), to.Open(t)
	j := Sample(t, a, "one", 2, nil)
	copied(t, a, b, cas.CopyOptions{})
	Append(t, j, 9)
	Sample(t, a, "two", 1, nil)
	raced := 0
	w := &watched{Keeper: b, before: func() error {
		if raced++; raced > 2 {
			return nil
		}
		_, err := cas.Copy(t.Context(), a, b, cas.CopyOptions{Runs: []protocol.RunID{"one"}})
		if err == nil && raced == 1 { // another copy was quicker, by one event
			Append(t, j, 1)
			_, err = cas.Copy(t.Context(), a, b, cas.CopyOptions{Runs: []protocol.RunID{"one"}})
		}
		return err
	}}
	got := copied(t, a, w, cas.CopyOptions{})
	if len(got.Forwarded)+len(got.Ahead)+got.Same != 1 || !slices.Equal(got.Runs, []protocol.RunID{"two"}) {
		t.Errorf("%+v", got)
	}
	to.clean(t, b)
	same(t, a, b)
}

func copyDamaged(t *testing.T, from, to Place) {
	a, b := from.Open(t), to.Open(t)
	j := Sample(t, a, "one", 2, nil)
	Sample(t, a, "two", 2, nil)
	missing := cas.Raw([]byte("a text that was never stored"))
	must(j.Append(t.Context(), Now, []cas.Draft{{Data: protocol.TextSaid{Content: protocol.Text{Link: missing.Link}}}}, nil))(t)
	got, err := cas.Copy(t.Context(), a, b, cas.CopyOptions{})
	if !errors.Is(err, protocol.ErrVerify) || !slices.Equal(got.Faulty, []protocol.RunID{"one"}) || !slices.Equal(got.Runs, []protocol.RunID{"two"}) {
		t.Errorf("%+v, %v", got, err)
	}
	if h := must(b.Head(t.Context(), "run/one"))(t); h.Link.Defined() {
		t.Error("a damaged run came")
	}
	to.clean(t, b)
}

func copyFiles(t *testing.T, from, to Place) {
	a, b := from.Open(t), to.Open(t)
	Sample(t, a, "one", 1, nil)
	first := Kept(t, a, "one", "first")
	copied(t, a, b, cas.CopyOptions{})
	here, there := Kept(t, a, "one", "here"), Kept(t, b, "one", "there")
	got := copied(t, a, b, cas.CopyOptions{})
	if got.Same != 1 || got.Blocks != 3 {
		t.Errorf("%+v", got)
	}
	h := must(b.Head(t.Context(), "files/one"))(t)
	var both protocol.FilesKept
	if err := cas.Decode(must(b.Block(t.Context(), h.Link))(t), &both); err != nil || both.Prev != there || both.Also != here || !first.Defined() {
		t.Errorf("it keeps %+v, %v", both, err)
	}
	if got = copied(t, a, b, cas.CopyOptions{}); got.Blocks != 0 {
		t.Errorf("the second time %+v", got)
	}
	to.clean(t, b)
}

func copyLarge(t *testing.T, from, to Place) {
	a, b := from.Open(t), to.Open(t)
	Sample(t, a, "one", 4, func(visit int) string {
		r := rand.New(rand.NewPCG(uint64(visit), 1))
		text := make([]byte, 5<<20)
		for i := range text {
			text[i] = ' ' + byte(r.Uint32()%90)
		}
		return string(text)
	})
	w := &watched{Keeper: b}
	got := copied(t, a, w, cas.CopyOptions{})
	if got.Bytes < 20<<20 || w.commits < 10 {
		t.Errorf("%+v in %d commits", got, w.commits)
	}
	same(t, a, b)
	to.clean(t, b)
}

func copyLong(t *testing.T, from, to Place) {
	a, b := from.Open(t), to.Open(t)
	n := 2_000
	if os.Getenv("WF_BENCH") == "1" {
		n = 100_000
	}
	j := Sample(t, a, "long", 0, nil)
	Longer(t, j, n)
	var most uint64
	begun := time.Now()
	got := copied(t, a, b, cas.CopyOptions{Progress: func(cas.CopyProgress) {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		most = max(most, m.HeapAlloc)
	}})
	first := time.Since(begun)
	Append(t, j, 10)
	begun = time.Now()
	again := copied(t, a, b, cas.CopyOptions{})
	t.Logf("%d events, %d blocks, %d MB in %v with a heap of %d MB at most; 10 more in %v", n, got.Blocks, got.Bytes>>20, first.Round(time.Millisecond), most>>20, time.Since(begun).Round(time.Millisecond))
	if again.Blocks > 15 || len(again.Forwarded) != 1 {
		t.Errorf("%+v", again)
	}
	same(t, a, b)
	to.clean(t, b)
}

func copyMany(t *testing.T, from, to Place) {
	a, b := from.Open(t), to.Open(t)
	n := 100
	if os.Getenv("WF_BENCH") == "1" {
		n = 1000
	}
	for i := range n {
		Sample(t, a, protocol.RunID(fmt.Sprintf("run-%04d", i)), 1, nil)
	}
	begun := time.Now()
	if got := copied(t, a, b, cas.CopyOptions{}); len(got.Runs) != n {
		t.Errorf("%d runs came", len(got.Runs))
	}
	first := time.Since(begun)
	Sample(t, a, "new", 1, nil)
	Append(t, must(cas.OpenJournal(t.Context(), a, "run-0007"))(t), 3)
	begun = time.Now()
	got := copied(t, a, b, cas.CopyOptions{})
	if !slices.Equal(got.Runs, []protocol.RunID{"new"}) || !slices.Equal(got.Forwarded, []protocol.RunID{"run-0007"}) || got.Same != n-1 {
		t.Errorf("%+v", got)
	}
	t.Logf("%d runs in %v, then two in %v", n, first.Round(time.Millisecond), time.Since(begun).Round(time.Millisecond))
	same(t, a, b)
	to.clean(t, b)
}

// Directory is a store in a directory.
var Directory = Place{
	Open: func(t *testing.T) cas.Keeper {
		s := must(cas.Open(t.Context(), t.TempDir()+"/store", cas.Options{}))(t)
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
		return s
	},
	Verify: func(t *testing.T, s cas.Keeper) cas.Report {
		t.Helper()
		return must(cas.Verify(t.Context(), s.(*cas.Store), cas.VerifyOptions{}))(t)
	},
}
