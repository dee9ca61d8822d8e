package engine_test

import (
	"reflect"
	"strings"
	"testing"

	"wf/cas"
	"wf/engine"
	"wf/protocol"
)

// Who watches a run is told the texts of every event whole, however long they are.
func TestANoticeHoldsEveryTextWhole(t *testing.T) {
	store, err := cas.Open(t.Context(), t.TempDir(), cas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	j, err := store.Journal(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	read := func(l protocol.Link) ([]byte, error) { return store.Block(t.Context(), l) }
	for _, e := range protocol.Events() {
		for _, size := range []int{0, protocol.InlineMax - 1, protocol.InlineMax, protocol.InlineMax + 1, 200 << 10, protocol.ChunkSize + 1} {
			into, data := e.New()
			if data == nil || len(protocol.Texts(into)) == 0 && size > 0 {
				continue
			}
			for i, text := range protocol.Texts(into) {
				*text = protocol.NewText(strings.Repeat(string(rune('a'+i)), size))
			}
			entries, err := j.Append(t.Context(), 1, []cas.Draft{{Data: data()}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			n, err := engine.ReadUpdate(read, "run", entries[0])
			if err != nil || !reflect.DeepEqual(n.Data, data()) {
				t.Errorf("%s, texts of %d bytes: told %.300v, %v", e.Type, size, n.Data, err)
			}
		}
	}
}
