package cas

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/protocol"
)

func TestEveryMoveIsInTheReflog(t *testing.T) {
	s, ctx := openSample(t), t.Context()
	var want []ReflogLine
	var old protocol.Link
	for i := range 130 {
		b := Raw(fmt.Append(nil, "version ", i))
		if i%3 == 0 {
			b = must(Encode(map[string]any{"version": i}))
		}
		line := ReflogLine{Old: old, New: b.Link, TS: 1_790_000_000_000_000 + int64(i*i) - int64(i%7)*1000}
		if i%5 == 0 {
			line.Note = "note " + fmt.Sprint(i)
		}
		err := s.Commit(ctx, Batch{Blocks: []Block{b}, Moves: []Move{
			{Name: "memory/a", Old: old, New: b.Link, TS: line.TS, Note: line.Note},
			{Name: "memory/b", Old: old, New: b.Link, TS: line.TS, Note: line.Note},
		}})
		if err != nil {
			t.Fatal(err)
		}
		old = b.Link
		want = append(want, line)
	}
	d, err := openEvidence(ctx, s.Dir(), s.opts)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	if err := d.survey(ctx, &graph{nodes: map[blockName]*node{}, from: readingAhead(d)}, false); err != nil {
		t.Fatal(err)
	}
	same := cmp.Comparer(func(a, b protocol.Link) bool { return a == b })
	if diff := cmp.Diff(map[string][]ReflogLine{"memory/a": want, "memory/b": want}, d.reflog, same); diff != "" {
		t.Errorf("reflog (-want +have):\n%s", diff)
	}
}
