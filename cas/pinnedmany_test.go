package cas_test

import (
	"fmt"
	"os"
	"runtime/pprof"
	"sync"
	"testing"

	"wf/cas"
	"wf/protocol"
)

// Thousands of runs that end together are noted together: no head is lost, and the goroutines that
// wait take no threads with them.
func TestManyHeadsAreNotedTogether(t *testing.T) {
	state, dir := t.TempDir(), t.TempDir()
	const n = 2000
	before := pprof.Lookup("threadcreate").Count()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			h := cas.Head{Name: protocol.RunHead(protocol.RunID(fmt.Sprint("R", i))), Link: cas.Raw(fmt.Append(nil, i)).Link, Seq: protocol.Seq(i + 1)}
			if err := cas.See(t.Context(), state, dir, []cas.Head{h}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	w, err := cas.LoadPinnedHeads(state, dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(w.Heads) != n {
		t.Errorf("%d heads were noted, want %d", len(w.Heads), n)
	}
	if made := pprof.Lookup("threadcreate").Count() - before; made > 100 {
		t.Errorf("%d threads were made for %d notes", made, n)
	}
}

// What cannot be written is an error for every caller that wanted it.
func TestAFailureToNoteIsToldToAll(t *testing.T) {
	state := t.TempDir() + "/file"
	if err := os.WriteFile(state, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			h := cas.Head{Name: fmt.Sprint("run/R", i), Link: cas.Raw(fmt.Append(nil, i)).Link, Seq: 1}
			if err := cas.See(t.Context(), state, dir, []cas.Head{h}); err == nil {
				t.Error("a head was noted in a directory that is none")
			}
		})
	}
	all.Wait()
}
