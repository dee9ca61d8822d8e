package service

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"wf/api"
	"wf/cas"
	"wf/protocol"
)

func tableStore(t *testing.T) *Local {
	t.Helper()
	s, err := cas.Open(t.Context(), filepath.Join(t.TempDir(), "s"), cas.Options{Seal: []byte("k")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return &Local{Store: s}
}

// A table is shown as it is while a process fills it, whole at the end, and as interrupted when that process is gone before it was
// complete.
func TestM03ATableIsFollowedWhileItIsFilled(t *testing.T) {
	l := tableStore(t)
	id := TableID(api.OfSweep, "these arguments")
	f, err := l.FillTable(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.FillTable(t.Context(), id); !errors.Is(err, protocol.ErrBusy) {
		t.Errorf("a second process: %v", err)
	}
	if _, err := l.Table(t.Context(), id); !errors.Is(err, protocol.ErrNotFound) {
		t.Errorf("before the first: %v", err)
	}
	for n := range 1000 {
		f.Put(&api.Table{TableHead: api.TableHead{Kind: api.OfSweep, Title: "two models", Done: n + 1, Trials: 1000}, Body: []api.TableRow{{Cells: []string{fmt.Sprint(n)}}}})
	}
	list, err := l.Tables(t.Context(), api.Part{})
	for err == nil && len(list.Items) == 0 { // it is stored soon
		list, err = l.Tables(t.Context(), api.Part{})
	}
	if err != nil || !list.Items[0].Live || list.Items[0].Complete || list.Items[0].ID != id {
		t.Fatalf("while it is filled: %+v, %v", list, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	x, err := l.Table(t.Context(), id)
	if err != nil || x.Live || x.Complete || x.Done != 1000 || x.Body[0].Cells[0] != "999" || x.Schema != "wf.table/v1" || x.ID != id || x.Changed == "" {
		t.Fatalf("when it was left: %+v, %v", x, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // Ctrl-C: the end is stored all the same
	if f, err = l.FillTable(ctx, id); err != nil {
		t.Fatal(err)
	}
	f.Put(&api.Table{TableHead: api.TableHead{Kind: api.OfSweep, Complete: true}})
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if x, err := l.Table(t.Context(), id); err != nil || !x.Complete || x.Live {
		t.Errorf("at the end: %+v, %v", x, err)
	}
}

// A list of tables is read in parts, while they change.
func TestM03TablesAreListedInParts(t *testing.T) {
	l := tableStore(t)
	id := func(i int) protocol.RunID { return TableID(api.OfEval, fmt.Sprint(i)) }
	put := func(i int, at int64) {
		t.Helper()
		if err := l.Store.Commit(t.Context(), cas.Batch{Derived: cas.PutTable(cas.StoredTable{ID: id(i), At: at, Head: []byte(`{"kind":"eval"}`), Data: []byte(`{`)})}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		put(i, int64(i))
	}
	first, err := l.Tables(t.Context(), api.Part{Limit: 2})
	if err != nil || len(first.Items) != 2 || first.Items[0].ID != id(4) || first.Next == "" {
		t.Fatalf("%+v, %v", first, err)
	}
	put(3, 9) // where the next part begins
	rest, err := l.Tables(t.Context(), api.Part{After: first.Next})
	if err != nil || len(rest.Items) != 3 || rest.Items[0].ID != id(2) || rest.Next != "" {
		t.Errorf("%+v, %v", rest, err)
	}
	for _, after := range []string{"x", "9", "9.", ".9", "9.A B"} {
		if _, err := l.Tables(t.Context(), api.Part{After: after}); after != "9.A B" && !errors.Is(err, protocol.ErrUsage) {
			t.Errorf("after %q: %v", after, err)
		}
	}
	if _, err := l.Table(t.Context(), id(0)); !errors.Is(err, protocol.ErrCorrupt) {
		t.Errorf("one that is no JSON: %v", err)
	}
}
