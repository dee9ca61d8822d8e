package cas_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/cas"
	"wf/protocol"
)

// What moved, came or went is named once, by whichever process; compared with what the heads say, in a random order of deeds.
func TestMovedHeadsAreNamed(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	stores := []*cas.Store{must(cas.Open(ctx, dir, cas.Options{}))(t), must(cas.Open(ctx, dir, cas.Options{}))(t)}
	for _, s := range stores {
		defer s.Close()
	}
	moved := stores[0].Moved()
	if names, known, err := moved(ctx); known || len(names) > 0 || err != nil {
		t.Errorf("the first look knows %q, %v, %v", names, known, err)
	}
	blocks := []cas.Block{cas.Raw([]byte("a")), cas.Raw([]byte("b"))}
	at := map[string]protocol.Link{}
	for i := range 60 {
		var want []string
		for j := range 1 + i%3 {
			name := fmt.Sprintf("memory/%02d", (i*7+j*11)%40)
			if slices.Contains(want, name) {
				continue
			}
			want = append(want, name)
			to := blocks[0]
			if at[name] == to.Link {
				to = blocks[1]
			}
			b := cas.Batch{Blocks: []cas.Block{to}, Moves: []cas.Move{{Name: name, Old: at[name], New: to.Link}}}
			if at[name].Defined() && i%5 == 0 {
				b = cas.Batch{Drops: []string{name}}
				to.Link = protocol.Link{}
			}
			if err := stores[i%2].Commit(ctx, b); err != nil {
				t.Fatal(err)
			}
			at[name] = to.Link
		}
		slices.Sort(want)
		names, known, err := moved(ctx)
		if d := cmp.Diff(want, names); err != nil || !known || d != "" {
			t.Fatalf("%d: known: %v, %v\n%s", i, known, err, d)
		}
	}
	if names, known, err := moved(ctx); !known || len(names) > 0 || err != nil {
		t.Errorf("nothing has moved: %q, %v, %v", names, known, err)
	}
}
