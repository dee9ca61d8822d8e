package cas

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	bolt "go.etcd.io/bbolt"

	"wf/protocol"
)

// largePacks are the packs of one large block each, in order.
func largePacks(t *testing.T, s *Store) (keys []string) {
	t.Helper()
	err := s.view(t.Context(), func(tx *bolt.Tx) error {
		return tx.Bucket(bucketBlocks).ForEach(func(k, v []byte) error {
			us, err := s.unpack(v)
			if err == nil && len(us) == 1 && len(us[0].data) > smallBlock && v[0] != packBlob {
				keys = append(keys, string(k))
			}
			return err
		})
	})
	if err != nil || len(keys) < 2 {
		t.Fatalf("%d packs of one large block, %v", len(keys), err)
	}
	return keys
}

func longSample(t *testing.T) *Store {
	t.Helper()
	s := openSample(t)
	sampleRunOf(t, s, "one", 6, func(i int) string { return randomText(40<<10 + i) })
	return s
}

func change(t *testing.T, s *Store, f func(packs *bolt.Bucket) error) Report {
	t.Helper()
	if err := s.update(t.Context(), func(tx *bolt.Tx) error { return f(tx.Bucket(bucketBlocks)) }); err != nil {
		t.Fatal(err)
	}
	r, err := Verify(t.Context(), s, VerifyOptions{Run: "one"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestW19TwoSwappedBlocksAreNamed(t *testing.T) {
	s := longSample(t)
	keys := largePacks(t, s)
	r := change(t, s, func(packs *bolt.Bucket) error {
		a, b := bytes.Clone(packs.Get([]byte(keys[1]))), bytes.Clone(packs.Get([]byte(keys[2])))
		return errors.Join(packs.Put([]byte(keys[1]), b), packs.Put([]byte(keys[2]), a))
	})
	wantKinds(t, r, "corrupt")
	wantWhere(t, r, "one/6/data.content")
	wantWhere(t, r, "one/9/data.content")
	if all, err := Verify(t.Context(), s, VerifyOptions{}); err != nil {
		t.Error(err)
	} else {
		wantKinds(t, all, "corrupt", "index")
		wantWhere(t, all, "one/6/data.content")
		wantWhere(t, all, "one/9/data.content")
	}
}

func TestW19ADeletedBlockIsNamed(t *testing.T) {
	s := longSample(t)
	keys := largePacks(t, s)
	r := change(t, s, func(packs *bolt.Bucket) error { return packs.Delete([]byte(keys[3])) })
	wantKinds(t, r, "corrupt")
	wantWhere(t, r, "one/12/data.content")
	if _, err := Export(t.Context(), io.Discard, s, ExportOptions{}, "one"); protocol.CodeOf(err) != protocol.ErrCorrupt.Code {
		t.Errorf("export: %v", err)
	}
}

// A block that a run names and that is not even in the index is damage too, whoever meets it.
func TestARunThatLacksABlockIsCorrupt(t *testing.T) {
	s := longSample(t)
	head, err := s.Head(t.Context(), "run/one")
	if err != nil {
		t.Fatal(err)
	}
	event := head.Link
	err = s.update(t.Context(), func(tx *bolt.Tx) error {
		return sub(tx, indexBlocks).Delete([]byte(event.CID().KeyString()[4:12]))
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Block(t.Context(), event); protocol.CodeOf(err) != protocol.ErrNotFound.Code {
		t.Fatalf("the block alone: %v", err)
	}
	if _, err := Export(t.Context(), io.Discard, s, ExportOptions{}, "one"); protocol.CodeOf(err) != protocol.ErrCorrupt.Code {
		t.Errorf("export: %v", err)
	}
	for _, err = range s.After(t.Context(), "one", 0) {
	}
	if protocol.CodeOf(err) != protocol.ErrCorrupt.Code {
		t.Errorf("its events: %v", err)
	}
}

func TestW19AStoreThatWillNotOpenIsVerified(t *testing.T) {
	dir, j := closedSample(t, 5)
	file := filepath.Join(dir, fileDB)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	for at := range 2 * page { // both meta pages
		data[at] = 0xa5
	}
	writeOver(t, file, data)
	if s, err := Open(t.Context(), dir, Options{}); err == nil {
		s.Close()
		t.Fatal("it opens")
	}
	r := verifyClosed(t, dir, VerifyOptions{})
	wantKinds(t, r, "page")
	head, seq := j.Head()
	if len(r.Heads) != 1 || r.Heads[0].Link != head || r.Heads[0].Seq != seq || r.Checked.Events != int64(seq) {
		t.Errorf("heads %+v, checked %+v; want %s at %d", r.Heads, r.Checked, head, seq)
	}
	for _, f := range r.Findings {
		if f.Kind != "page" {
			t.Errorf("every block is there, yet: %s", f)
		}
	}
	if !strings.Contains(strings.Join(r.NotProven, "\n"), "page by page") {
		t.Errorf("not proven: %q", r.NotProven)
	}
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(after, data) {
		t.Errorf("verify changed the file: %v", err)
	}
}

func TestW19NoOverflowCountMakesVerifyRunAway(t *testing.T) {
	dir, _ := closedSample(t, 5)
	file := filepath.Join(dir, fileDB)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	for at := 0; at+16 <= len(whole); at += page {
		for _, field := range []int{0, 8, 10, 12} { // id, flags, count, overflow
			data := bytes.Clone(whole)
			copy(data[at+field:], "\xff\xff\xff")
			writeOver(t, file, data)
			if r, err := VerifyDir(t.Context(), dir, VerifyOptions{}); err != nil || r.OK && r.Checked.Events != 17 {
				t.Errorf("page %d, field %d: %d events, %v", at/page, field, r.Checked.Events, err)
			}
		}
	}
}

func TestPinnedHeadsKeepTheNewestOfManyWriters(t *testing.T) {
	state, dir := t.TempDir(), t.TempDir()
	link := Raw(nil).Link
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			for seq := range protocol.Seq(5) {
				h := []Head{{Name: fmt.Sprint("run/", w), Link: Raw(fmt.Append(nil, seq)).Link, Seq: seq + 1}, {Name: "run/all", Link: link, Seq: 7}}
				if err := See(t.Context(), state, dir, h); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	w, err := LoadPinnedHeads(state, dir)
	if err != nil || len(w.Heads) != 9 || w.Heads["run/3"].Seq != 5 {
		t.Fatalf("%+v, %v", w, err)
	}
	if err := See(t.Context(), state, dir, []Head{{Name: "run/3", Link: link, Seq: 2}}); err != nil {
		t.Fatal(err)
	}
	if w, err = LoadPinnedHeads(state, dir); err != nil || w.Heads["run/3"].Seq != 5 {
		t.Errorf("an older head replaced a newer one: %+v, %v", w.Heads["run/3"], err)
	}
	if err := Forget(t.Context(), state, dir, []string{"run/3"}); err != nil {
		t.Fatal(err)
	}
	if w, err = LoadPinnedHeads(state, dir); err != nil || len(w.Heads) != 8 {
		t.Errorf("%+v, %v", w, err)
	}
}

func TestPinnedHeadsThatDoNotReadAreAnError(t *testing.T) {
	state, dir := t.TempDir(), t.TempDir()
	if err := See(t.Context(), state, dir, []Head{{Name: "run/a", Link: Raw(nil).Link, Seq: 1}}); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(state, "heads", "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	writeOver(t, files[0], []byte("{"))
	if _, err := LoadPinnedHeads(state, dir); !errors.Is(err, protocol.ErrCorrupt) {
		t.Errorf("err = %v", err)
	}
	if got := StateDir(func(k string) string { return map[string]string{"HOME": "/h"}[k] }); got != "/h/.local/state/wf" {
		t.Errorf("state dir %q", got)
	}
}
