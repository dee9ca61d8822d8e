package cas

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"wf/protocol"
)

func memoStore(t *testing.T, now *int64) *Store {
	t.Helper()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "s"), Options{Seal: []byte("k"), Now: func() int64 { return *now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// A collection keeps the newest memos with what they lead to, at most MemosKept, and none that is older than memosKeptAt.
func TestM01ACollectionBoundsMemos(t *testing.T) {
	now := time.Now().UnixMicro()
	s := memoStore(t, &now)
	ctx := t.Context()
	put := func(from, to int, at int64) {
		t.Helper()
		var b Batch
		for i := from; i < to; i++ {
			block := Raw(fmt.Appendf(nil, "result %d", i))
			b.Blocks = append(b.Blocks, block)
			b.Derived = append(b.Derived, PutMemo(fmt.Sprintf("%05d", i), StoredMemo{Memo: block.Link, At: at + int64(i)}), PutMemoOf(fmt.Sprintf("%05d", i), StoredMemo{Memo: block.Link, At: at + int64(i)}))
		}
		if err := s.Commit(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	there := func(i int) bool {
		t.Helper()
		m, ok, err := FindMemo(ctx, s, fmt.Sprintf("%05d", i))
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			if _, err := s.Block(ctx, m.Memo); err != nil {
				t.Errorf("memo %d: %v", i, err)
			}
		}
		_, of, err := FindMemoOf(ctx, s, fmt.Sprintf("%05d", i))
		if err != nil || of != ok {
			t.Errorf("memo %d: %t, what it followed from: %t, %v", i, ok, of, err)
		}
		return ok
	}
	gc := func() GCReport {
		t.Helper()
		r, err := GC(ctx, s, GCOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	put(0, MemosKept, now)
	if r := gc(); r.Removed != 0 || !there(0) || !there(MemosKept-1) {
		t.Errorf("at the bound: %+v, %t %t", r, there(0), there(MemosKept-1))
	}
	put(MemosKept, MemosKept+1, now)
	if r, err := GC(ctx, s, GCOptions{DryRun: true}); err != nil || !there(0) {
		t.Errorf("a dry run removes: %+v %v", r, err)
	}
	if r := gc(); r.Removed != 1 || there(0) || !there(1) || !there(MemosKept) {
		t.Errorf("beyond it: %+v, %t %t %t", r, there(0), there(1), there(MemosKept))
	}
	now += memosKeptAt.Microseconds() + MemosKept
	if r := gc(); r.Removed != MemosKept-1 || there(MemosKept-1) || !there(MemosKept) {
		t.Errorf("old ones: %+v, %t", r, there(MemosKept-1))
	}
	now++
	if gc(); there(MemosKept) {
		t.Error("the last one is there")
	}
}

func TestM01AMemoIsSealedAndFoundAgain(t *testing.T) {
	now := time.Now().UnixMicro()
	s := memoStore(t, &now)
	block := Raw([]byte("x"))
	want := StoredMemo{block.Link, now, []byte("data")}
	if err := s.Commit(t.Context(), Batch{Blocks: []Block{block}, Derived: []Derived{PutMemo("k", want)}}); err != nil {
		t.Fatal(err)
	}
	got, ok, err := FindMemo(t.Context(), s, "k")
	if err != nil || !ok || got.Memo != want.Memo || got.At != want.At || string(got.Data) != "data" {
		t.Errorf("%+v %t %v", got, ok, err)
	}
	s.opts.Seal = []byte("another")
	if _, ok, err := FindMemo(context.WithoutCancel(t.Context()), s, "k"); ok || err != nil {
		t.Errorf("one of another user: %t %v", ok, err)
	}
	s.opts.Seal = []byte("k")
	if err := s.Commit(t.Context(), Batch{Derived: []Derived{DropMemo("k")}}); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := FindMemo(t.Context(), s, "k"); ok || err != nil {
		t.Errorf("a dropped one: %t %v", ok, err)
	}
	var none protocol.Link
	if err := s.Commit(t.Context(), Batch{Derived: []Derived{PutMemo("n", StoredMemo{Memo: none})}}); err != nil {
		t.Fatal(err)
	}
	if _, ok, _ := FindMemo(t.Context(), s, "n"); ok {
		t.Error("a memo without a block is one")
	}
}
