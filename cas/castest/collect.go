package castest

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/cas"
	"wf/protocol"
)

// ExerciseGC checks the collection of a store of any kind. collect removes all that nothing reaches, and that is as old as it has
// to be; it fails the test where that fails.
func ExerciseGC[S Store](t *testing.T, open Opener[S], collect func(t *testing.T, s S) cas.GCReport) {
	s := open(t, t.TempDir()+"/store")
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	collects(t, s, func() cas.GCReport {
		t.Helper()
		return collect(t, s)
	})
}

// collects fills a store with what stays and what goes.
func collects(t *testing.T, s Store, collect func() cas.GCReport) {
	ctx := t.Context()
	commit := func(b cas.Batch) {
		t.Helper()
		if err := s.Commit(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	bury := func(run protocol.RunID) {
		t.Helper()
		d := must(cas.Bury(must(s.Head(ctx, protocol.RunHead(run)))(t), protocol.Tombstone{At: Now, By: "someone"}))(t)
		commit(cas.Batch{Deletes: []cas.Deletion{d}})
	}
	stored := func(what string, l protocol.Link, want bool) {
		t.Helper()
		if have := must(Has(ctx, s, l))(t); have != want {
			t.Errorf("%s is stored: %t, want %t", what, have, want)
		}
	}
	// nest is a block that leads to two others, one of them large.
	nest := func(name string) (all []cas.Block) {
		t.Helper()
		small, large := cas.Raw([]byte(name+", small")), cas.Raw(append(noise(150<<10), name...))
		top := must(cas.Encode(map[string]any{"name": name, "small": small.Link, "large": large.Link}))(t)
		return []cas.Block{top, small, large}
	}
	all := func(what string, blocks []cas.Block, want bool) {
		t.Helper()
		for _, b := range blocks {
			stored(what, b.Link, want)
		}
	}

	// begin begins a journal of 40 events, of which no other one has any.
	begin := func(run protocol.RunID) (*cas.Journal, []protocol.Entry) {
		t.Helper()
		j := must(s.Journal(ctx, run))(t)
		first := must(j.Append(ctx, Now, []cas.Draft{{Data: protocol.ResumedBy{By: string(run)}}}, nil))(t)
		return j, append(first, Append(t, j, 39)...)
	}
	_, kept := begin("kept")
	base, ofBase := begin("base")
	fork := must(base.Fork(ctx, Now, "fork", ofBase[19], []cas.Draft{{Data: protocol.Forked{Base: ofBase[19].CID}}}, nil, nil))(t)
	ofFork := must(Events(ctx, s, "fork", 0))(t)
	must(fork.Fork(ctx, Now, "leaf", ofFork[20], []cas.Draft{{Data: protocol.Forked{Base: ofFork[20].CID}}}, nil, nil))(t)
	bury("base")
	_, gone := begin("gone")
	files := nest("files of the run that goes")
	commit(cas.Batch{Blocks: files, Moves: []cas.Move{{Name: protocol.FilesHead("gone"), New: files[0].Link, TS: Now}}})
	bury("gone")
	memory := must(must(cas.OpenMemory(s, "user"))(t).Append(ctx, Now, cas.EventRef{}, []cas.Draft{{Data: protocol.ResumedBy{By: "someone"}}}))(t)

	orphan, memo, wasMemo, held, wasHeld, dropped := nest("orphan"), nest("memo"), nest("memo that was"), nest("files"), nest("files that were"), nest("files that are dropped")
	commit(cas.Batch{Blocks: orphan})
	commit(cas.Batch{Blocks: memo, Derived: []cas.Derived{cas.PutMemo("k", cas.StoredMemo{Memo: memo[0].Link, At: 1 << 60})}})
	commit(cas.Batch{Blocks: wasMemo, Derived: []cas.Derived{cas.PutMemo("old", cas.StoredMemo{Memo: wasMemo[0].Link, At: 1 << 60})}})
	commit(cas.Batch{Derived: []cas.Derived{cas.DropMemo("old")}})
	commit(cas.Batch{Blocks: wasHeld, Moves: []cas.Move{{Name: protocol.FilesHead("kept"), New: wasHeld[0].Link}}}) // now: the reflog keeps it
	commit(cas.Batch{Blocks: held, Moves: []cas.Move{{Name: protocol.FilesHead("kept"), Old: wasHeld[0].Link, New: held[0].Link}}})
	commit(cas.Batch{Blocks: dropped, Moves: []cas.Move{{Name: protocol.FilesHead("fork"), New: dropped[0].Link}}})
	commit(cas.Batch{Drops: []string{protocol.FilesHead("fork")}})
	lost := cas.Raw([]byte("was never stored"))
	commit(cas.Batch{Derived: []cas.Derived{cas.PutMemo("broken", cas.StoredMemo{Memo: lost.Link, At: 1 << 60}), cas.PutMemo("aged", cas.StoredMemo{Memo: memo[0].Link, At: 1})}})
	ofGone := must(cas.Encode(protocol.Memo{Kind: protocol.KindMemo, V: protocol.RecordVersion, Origin: "gone:a#1"}))(t)
	commit(cas.Batch{Blocks: []cas.Block{ofGone}, Derived: []cas.Derived{cas.PutMemo("of-gone", cas.StoredMemo{Memo: ofGone.Link, At: 1 << 60}), cas.PutMemoOf("of-gone", cas.StoredMemo{Memo: ofGone.Link, At: 1 << 60})}})
	commit(cas.Batch{Derived: cas.PutTable(cas.StoredTable{ID: "T1", At: 1, Head: []byte("{}"), Data: []byte("{}")})})

	check := func() {
		t.Helper()
		if d := cmp.Diff(kept, must(Events(ctx, s, "kept", 0))(t), sameLink); d != "" {
			t.Errorf("a run (-want +have):\n%s", d)
		}
		if got := must(Events(ctx, s, "fork", 0))(t); len(got) != 21 {
			t.Errorf("the fork of a run that was deleted has %d events", len(got))
		}
		stored("an event that a fork shares", ofBase[19].CID, true)
		stored("a later event of its base", ofBase[20].CID, false)
		for _, e := range gone {
			stored("an event of a run that was deleted", e.CID, false)
		}
		stored("the event of a memory", memory[0].CID, true)
		if x := must(cas.Tombstone(ctx, s, "gone"))(t); x == nil || x.By != "someone" {
			t.Errorf("its tombstone: %+v", x)
		}
		all("what nothing leads to", orphan, false)
		all("what a memo leads to", memo, true)
		all("what a memo led to", wasMemo, false)
		stored("the memo of a run that was deleted", ofGone.Link, false)
		all("what a head leads to", held, true)
		all("what it led to lately", wasHeld, true)
		all("what a head led to that was dropped", dropped, false)
		all("the files of a run that was deleted", files, false)
	}
	r := collect()
	check()
	if r.Schema != "wf.gc/v1" || r.DryRun || r.Removed < 40+21+4*3 || r.Bytes < 4*(150<<10) || r.Kept < 40+21 || r.Young > 0 {
		t.Errorf("report: %+v", r)
	}
	keys, kin := must(s.DerivedKeys(ctx, ""))(t), []string(nil)
	for _, key := range keys {
		if strings.HasPrefix(key, "kin/own/") {
			kin = append(kin, key[strings.LastIndexByte(key, '/')+1:])
		}
	}
	slices.Sort(kin)
	if d := cmp.Diff([]string{"fork", "kept", "leaf"}, kin); d != "" {
		t.Errorf("runs whose own parts are found (-want +have):\n%s", d)
	}
	if d := cmp.Diff([]string{"memo/broken", "memo/k"}, slices.DeleteFunc(keys, ofKin)); d != "" {
		t.Errorf("derived values (-want +have):\n%s", d)
	}
	if again := collect(); again.Removed != 0 || again.Kept != r.Kept {
		t.Errorf("at once again: %+v", again)
	}
	check()

	// What was removed comes back. A fork of a fork leans on two runs that were deleted, and lets them go.
	commit(cas.Batch{Blocks: orphan, Moves: []cas.Move{{Name: "memory/back", New: orphan[0].Link, TS: Now}}})
	bury("fork")
	if r := collect(); r.Removed > 0 {
		t.Errorf("of the fork, which another one leans on: %+v", r)
	}
	if got := must(Events(ctx, s, "leaf", 0))(t); len(got) != 22 {
		t.Errorf("the fork of the fork has %d events", len(got))
	}
	bury("leaf")
	if r := collect(); r.Removed < 20 {
		t.Errorf("of the forks and what they shared: %+v", r)
	}
	all("what was removed and stored again", orphan, true)
	stored("an event that a fork shared", ofBase[19].CID, false)
	if _, err := Events(ctx, s, "fork", 0); !errors.Is(err, protocol.ErrRunDeleted) {
		t.Errorf("events of the fork: %v", err)
	}
	for i, b := range orphan {
		if got := must(s.Block(ctx, b.Link))(t); !bytes.Equal(got, b.Data) {
			t.Errorf("block %d came back with %d bytes", i, len(got))
		}
	}
	if n := len(must(cas.Tombstones(ctx, s))(t)); n != 4 {
		t.Errorf("%d tombstones, want 4", n)
	}
}
