package cas

import (
	"fmt"
	"testing"
	"time"

	"wf/protocol"
)

// Tables are listed by when they changed, and a collection keeps TablesKept of them, none older than tableKeptAt.
func TestM03ACollectionBoundsTables(t *testing.T) {
	now := time.Now().UnixMicro()
	s := memoStore(t, &now)
	ctx := t.Context()
	id := func(i int) protocol.RunID { return protocol.RunID(fmt.Sprintf("T%09d", i)) }
	put := func(i int, at int64) {
		t.Helper()
		if err := s.Commit(ctx, Batch{Derived: PutTable(StoredTable{ID: id(i), At: at, Head: fmt.Appendf(nil, `{"i":%d}`, i), Data: []byte(`{}`)})}); err != nil {
			t.Fatal(err)
		}
	}
	there := func(i int) bool {
		t.Helper()
		x, ok, err := Table(ctx, s, id(i))
		if err != nil {
			t.Fatal(err)
		}
		return ok && string(x.Head) == fmt.Sprintf(`{"i":%d}`, i) && string(x.Data) == `{}`
	}
	gc := func() {
		t.Helper()
		if _, err := GC(ctx, s, GCOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var all Batch
	for i := range TablesKept - 1 {
		all.Derived = append(all.Derived, PutTable(StoredTable{ID: id(i), At: now + int64(i), Head: fmt.Appendf(nil, `{"i":%d}`, i), Data: []byte(`{}`)})...)
	}
	if err := s.Commit(ctx, all); err != nil {
		t.Fatal(err)
	}
	put(TablesKept-1, now+TablesKept)
	gc()
	if !there(0) {
		t.Error("at the bound the oldest is gone")
	}
	put(0, now+TablesKept+1) // it changes: the second is the oldest now
	put(TablesKept, now+TablesKept+2)
	gc()
	if !there(0) || there(1) || !there(2) {
		t.Errorf("beyond the bound: %t %t %t, want the one that changed longest ago to be gone", there(0), there(1), there(2))
	}
	list, err := Tables(ctx, s)
	if err != nil || len(list) != TablesKept || list[0].ID != id(TablesKept) || list[1].ID != id(0) || list[0].Data != nil {
		t.Errorf("%d are listed, %v", len(list), err)
	}
	now += tableKeptAt.Microseconds() + TablesKept + 2
	gc()
	if there(0) || !there(TablesKept) {
		t.Errorf("at their age: %t %t", there(0), there(TablesKept))
	}
	now++
	gc()
	if there(TablesKept) {
		t.Error("one is kept beyond its age")
	}
}

// What another user, or any program, put there is not shown.
func TestM03OnlyOwnTablesAreShown(t *testing.T) {
	now := time.Now().UnixMicro()
	s := memoStore(t, &now)
	ctx := t.Context()
	key := s.opts.Seal
	s.opts.Seal = []byte("another")
	if err := s.Commit(ctx, Batch{Derived: PutTable(StoredTable{ID: "T000000001", At: now, Head: []byte(`{}`), Data: []byte(`{}`)})}); err != nil {
		t.Fatal(err)
	}
	s.opts.Seal = key
	list, err := Tables(ctx, s)
	if _, ok, e := Table(ctx, s, "T000000001"); ok || len(list) > 0 || err != nil || e != nil {
		t.Errorf("%t %v, %v %v", ok, list, err, e)
	}
}
