package castest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/cas"
	"wf/protocol"
)

// alone commits batches at once of which half are refused: what they hold is not stored, and the others are whole.
func alone(t *testing.T, open func() Store) {
	s, ctx := open(), t.Context()
	stands := cas.Raw([]byte("stands"))
	if err := s.Commit(ctx, cas.Batch{Blocks: []cas.Block{stands}, Moves: []cas.Move{{Name: "memory/taken", New: stands.Link, TS: Now}}}); err != nil {
		t.Fatal(err)
	}
	const n = 60
	var batches sync.WaitGroup
	errs, own := make([]error, n), make([]cas.Block, n)
	for i := range n {
		own[i] = cas.Raw(fmt.Append(nil, "of batch ", i))
		b := cas.Batch{Blocks: []cas.Block{own[i]}, Moves: []cas.Move{{Name: fmt.Sprint("memory/", i), New: own[i].Link, TS: Now}},
			Derived: []cas.Derived{{Key: fmt.Sprint("d/", i), Head: own[i].Link, Data: []byte("d")}}}
		if i%2 == 1 {
			b.Moves = append(b.Moves, cas.Move{Name: "memory/taken", Old: own[i].Link, New: own[i].Link, TS: Now})
		}
		batches.Go(func() { errs[i] = s.Commit(ctx, b) })
	}
	batches.Wait()
	for i := range n {
		refused := i%2 == 1
		if errors.Is(errs[i], protocol.ErrHeadMoved) != refused || errs[i] != nil && !refused {
			t.Errorf("batch %d: %v", i, errs[i])
		}
		if ok := must(Has(ctx, s, own[i].Link))(t); ok == refused {
			t.Errorf("batch %d: its block is stored: %t", i, ok)
		}
		if h := must(s.Head(ctx, fmt.Sprint("memory/", i)))(t); h.Link.Defined() == refused {
			t.Errorf("batch %d: its head is %s", i, h.Link)
		}
		if d, _, err := s.Derived(ctx, fmt.Sprint("d/", i)); err != nil || d.Head.Defined() == refused {
			t.Errorf("batch %d: its derived value is %v, %v", i, d, err)
		}
	}
}

func deleted(t *testing.T, open func() Store) {
	s, ctx := open(), t.Context()
	j := must(s.Journal(ctx, "r1"))(t)
	events := Append(t, j, 40)
	files := cas.Raw([]byte("files"))
	h := must(s.Head(ctx, "run/r1"))(t)
	if err := s.Commit(ctx, cas.Batch{Blocks: []cas.Block{files}, Moves: []cas.Move{{Name: protocol.FilesHead("r1"), New: files.Link, TS: Now}},
		Derived: []cas.Derived{{Key: cas.StateKey("r1"), Head: h.Link, Data: []byte("state")}}}); err != nil {
		t.Fatal(err)
	}
	must(j.Fork(ctx, Now, "r2", events[19], []cas.Draft{{Data: protocol.Forked{Base: events[19].CID}}}, nil, nil))(t)
	if d := cmp.Diff([]cas.Sharer{{Run: "r2", Seq: 20}}, must(s.Forks(ctx, "r1"))(t)); d != "" {
		t.Errorf("forks (-want +have):\n%s", d)
	}
	if base, shared, err := s.Base(ctx, "r2"); base != "r1" || shared != 20 || err != nil {
		t.Errorf("base of the fork: %s up to %d, %v", base, shared, err)
	}
	early := h
	early.Link, early.Seq = events[38].CID, 39
	for _, c := range []struct {
		h    cas.Head
		want error
	}{{early, protocol.ErrHeadMoved}, {h, nil}, {h, protocol.ErrRunDeleted}} {
		d := must(cas.Bury(c.h, protocol.Tombstone{At: Now, By: "someone"}))(t)
		if err := s.Commit(ctx, cas.Batch{Deletes: []cas.Deletion{d}}); !errors.Is(err, c.want) {
			t.Fatalf("delete at event %d: %v, want %v", c.h.Seq, err, c.want)
		}
	}
	for _, name := range []string{"run/r1", protocol.FilesHead("r1")} {
		if h := must(s.Head(ctx, name))(t); h.Link.Defined() {
			t.Errorf("%s is there: %s", name, h.Link)
		}
	}
	if d, _, err := s.Derived(ctx, cas.StateKey("r1")); d.Head.Defined() || err != nil {
		t.Errorf("its state is there: %v", err)
	}
	if _, _, err := s.Tip(ctx, "r1"); !errors.Is(err, protocol.ErrRunDeleted) {
		t.Errorf("tip: %v", err)
	}
	if _, err := Events(ctx, s, "r1", 0); !errors.Is(err, protocol.ErrRunDeleted) {
		t.Errorf("events: %v", err)
	}
	again := must(s.Journal(ctx, "r1"))(t)
	if _, err := again.Append(ctx, Now, []cas.Draft{{Data: protocol.ResumedBy{}}}, nil); !errors.Is(err, protocol.ErrRunDeleted) {
		t.Errorf("begun again: %v", err)
	}
	if _, err := j.Fork(ctx, Now, "r3", events[19], []cas.Draft{{Data: protocol.Forked{}}}, nil, nil); !errors.Is(err, protocol.ErrRunDeleted) {
		t.Errorf("forked after its end: %v", err)
	}
	if err := s.Commit(ctx, cas.Batch{Derived: []cas.Derived{{Key: cas.StateKey("r1"), Head: h.Link, Data: []byte("late")}}}); err != nil {
		t.Errorf("a late state: %v", err)
	}
	if d, _, err := s.Derived(ctx, cas.StateKey("r1")); d.Head.Defined() || err != nil {
		t.Errorf("a late state was stored: %v", err)
	}
	if got := must(Events(ctx, s, "r2", 0))(t); len(got) != 21 {
		t.Errorf("the fork has %d events, want 21", len(got))
	}
}

func memory(t *testing.T, open func() Store) {
	s, ctx := open(), t.Context()
	c := must(cas.OpenMemory(s, "role/fix/coder"))(t)
	read := func() (out []protocol.Entry) {
		for e, err := range c.After(ctx, 0) {
			out = append(out, must(e, err)(t))
		}
		return out
	}
	if got := read(); len(got) > 0 {
		t.Fatalf("%d events before the first", len(got))
	}
	draft := []cas.Draft{{Data: protocol.ResumedBy{By: "someone"}}}
	first := must(c.Append(ctx, Now, cas.EventRef{}, draft))(t)
	if _, err := c.Append(ctx, Now, cas.EventRef{}, draft); !errors.Is(err, protocol.ErrHeadMoved) {
		t.Errorf("from nowhere, though it has an event: %v", err)
	}
	must(c.Append(ctx, Now, cas.EventRef{Seq: 1, CID: first[0].CID}, draft))(t)
	if got := read(); len(got) != 2 || got[1].Prev != first[0].CID {
		t.Errorf("%d events came back", len(got))
	}
	if hs := must(s.Heads(ctx, "memory/"))(t); len(hs) != 1 || hs[0].Name != "memory/role/fix/coder" || hs[0].Seq != 2 {
		t.Errorf("heads: %+v", hs)
	}
}

func strangeFence(t *testing.T, open func() Store) {
	s, ctx := open(), t.Context()
	j := must(s.Journal(ctx, "r1"))(t)
	Append(t, j, 3)
	j.Under(cas.Fence{Root: "r1", Token: [16]byte{1}})
	if _, err := j.Append(ctx, Now, []cas.Draft{{Data: protocol.ResumedBy{}}}, nil); !errors.Is(err, protocol.ErrFenced) {
		t.Errorf("under a strange fence: %v", err)
	}
	j.Under(cas.Fence{})
	if got := Append(t, j, 1); got[0].Seq != 4 {
		t.Errorf("then event %d, want 4", got[0].Seq)
	}
}

// dropped drops a head that is no journal, from wherever it is.
func dropped(t *testing.T, open func() Store) {
	s, ctx := open(), t.Context()
	events, name := Append(t, must(s.Journal(ctx, "r1"))(t), 3), protocol.FilesHead("r1")
	drop := func(more ...cas.Move) {
		t.Helper()
		if err := s.Commit(ctx, cas.Batch{Moves: more, Drops: []string{name}}); err != nil {
			t.Fatal(err)
		}
		if h := must(s.Head(ctx, name))(t); h.Link.Defined() {
			t.Errorf("the head is at %s", h.Link)
		}
	}
	drop() // there is none
	for i := range 3 {
		x := cas.Raw(fmt.Append(nil, "files ", i))
		if err := s.Commit(ctx, cas.Batch{Blocks: []cas.Block{x}, Moves: []cas.Move{{Name: name, New: x.Link, TS: Now}}}); err != nil {
			t.Fatalf("a head after it was dropped: %v", err)
		}
		drop(cas.Move{Name: fmt.Sprint("memory/", i), New: x.Link, TS: Now})
	}
	if hs := must(s.Heads(ctx, protocol.FilesHead("")))(t); len(hs) > 0 {
		t.Errorf("heads: %+v", hs)
	}
	if d := cmp.Diff(events, must(Events(ctx, s, "r1", 0))(t), sameLink); d != "" {
		t.Errorf("the journal (-want +have):\n%s", d)
	}
}

// reach compares the bytes that events lead to with those that were stored.
func reach(t *testing.T, open func() Store) {
	s, ctx := open(), t.Context()
	if err := s.MayGoOn(ctx); err != nil {
		t.Error(err)
	}
	release := must(s.Hold(ctx))(t)
	j := must(s.Journal(ctx, "r1"))(t)
	want, links := []int64{}, map[protocol.Link]bool{}
	size := int64(0)
	add := func(l protocol.Link) {
		if !links[l] {
			links[l] = true
			size += int64(len(must(s.Block(ctx, l))(t)))
		}
	}
	for i, said := range []string{"short", strings.Repeat("long ", 20_000), strings.Repeat("long ", 20_000), string(noise(protocol.ChunkSize + 5)), "", string(noise(2000))} {
		e := must(j.Append(ctx, Now, []cas.Draft{{Step: "coder#1", Data: protocol.TextSaid{Content: protocol.NewText(said)}}}, nil))(t)[0]
		add(e.CID)
		if text := must(cas.DecodeData[protocol.TextSaid](&e.Event))(t).Content; text.Link.Defined() {
			add(text.Link)
			if raw := must(s.Block(ctx, text.Link))(t); len(raw) < len(said) { // it is in chunks
				for _, l := range must(cas.LinksIn(text.Link, raw))(t) {
					add(l)
				}
			}
		}
		want = append(want, size)
		if have := must(s.Reach(ctx, "r1", protocol.Seq(i+1)))(t); have != size {
			t.Errorf("event %d leads to %d bytes, want %d", i+1, have, size)
		}
	}
	for i, n := range want {
		if have := must(s.Reach(ctx, "r1", protocol.Seq(i+1)))(t); have != n {
			t.Errorf("later, event %d leads to %d bytes, want %d", i+1, have, n)
		}
	}
	if _, err := s.Reach(ctx, "unknown", 1); !errors.Is(err, protocol.ErrUnknownRun) {
		t.Errorf("of an unknown run: %v", err)
	}
	release()
	release() // more than once is fine
}
