package cas_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"

	"wf/cas"
	"wf/cas/castest"
	"wf/protocol"
)

const pageSize = 4096

// damagePages overwrites the leaf pages of store.db of which is says so, and counts them.
func damagePages(t *testing.T, dir string, is func(page []byte) bool) (damaged int) {
	t.Helper()
	path := filepath.Join(dir, "store.db")
	leaves := map[int]bool{}
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, PreLoadFreelist: true})
	if err != nil {
		t.Fatal(err)
	}
	err = db.View(func(tx *bolt.Tx) error {
		for id := 0; ; id++ {
			p, err := tx.Page(id)
			if p == nil || err != nil {
				return err
			}
			leaves[id] = p.Type == "leaf"
		}
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := 2 * pageSize; at+pageSize <= len(data); at += pageSize {
		page := data[at : at+pageSize]
		if !leaves[at/pageSize] || !is(page) {
			continue
		}
		copy(page[10:], "\xff\xff") // the number of entries, then where they lie
		copy(page[16:], bytes.Repeat([]byte{0xfe}, 400))
		damaged++
	}
	if damaged == 0 {
		t.Fatal("no such page was found")
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return damaged
}

// manyBlocks are a store with a journal and so many blocks that its index has pages of its own.
func manyBlocks(t *testing.T, dir string) []cas.Block {
	t.Helper()
	s := openStore(t, dir)
	j, err := s.Journal(t.Context(), "r1")
	if err != nil {
		t.Fatal(err)
	}
	var all []cas.Block
	for i := range 40 {
		var blocks []cas.Block
		var drafts []cas.Draft
		for k := range 50 {
			blocks = append(blocks, cas.Raw(fmt.Appendf(nil, "block %d of commit %d", k, i)))
			drafts = append(drafts, cas.Draft{Data: protocol.ResumedBy{By: fmt.Sprint(i, k)}})
		}
		if _, err := j.Append(t.Context(), castest.Now, drafts, blocks); err != nil {
			t.Fatal(err)
		}
		all = append(all, blocks...)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return all
}

// F-01: what is derived stops nothing. A store whose index has damaged pages is read and written
// as before, and is whole afterwards.
func TestADamagedIndexIsMadeAnewWhenItIsMet(t *testing.T) {
	for _, meet := range []string{"opening", "reading", "writing"} {
		t.Run(meet, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			blocks := manyBlocks(t, dir)
			seen := 0
			n := damagePages(t, dir, func(page []byte) bool {
				// In index/blocks a key is 8 bytes of a digest, and a value 6 bytes.
				size := func(at int) uint32 { return binary.LittleEndian.Uint32(page[at:]) }
				if size(16+8) != 8 || size(16+12) != 6 {
					return false
				}
				// Who opens a store looks at the first page alone.
				seen++
				return meet == "opening" || seen == 20
			})
			t.Logf("%d pages are damaged", n)
			told := 0
			s, err := cas.Open(t.Context(), dir, cas.Options{Warn: func(error) { told++ }})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			more := cas.Raw([]byte("more"))
			if meet == "writing" {
				// Enough that late entries go to the index.
				many := []cas.Block{more}
				for i := range 2000 {
					many = append(many, cas.Raw(fmt.Appendf(nil, "more %d", i)))
				}
				if err := s.Commit(t.Context(), cas.Batch{Blocks: many, Moves: []cas.Move{{Name: "x/1", New: more.Link}}}); err != nil {
					t.Fatal(err)
				}
			}
			for _, b := range blocks {
				got, err := s.Block(t.Context(), b.Link)
				if err != nil || !bytes.Equal(got, b.Data) {
					t.Fatalf("%s: %q, %v", b.Link, got, err)
				}
			}
			if told != 1 {
				t.Errorf("the user was warned %d times, want once", told)
			}
			if events, err := castest.Events(t.Context(), s, "r1", 0); err != nil || len(events) != 2000 {
				t.Errorf("%d events, %v", len(events), err)
			}
			if err := s.Commit(t.Context(), cas.Batch{Blocks: []cas.Block{cas.Raw([]byte("last"))}}); err != nil {
				t.Fatal(err)
			}
			// A collection frees the damaged pages, and nothing is found wrong then.
			if _, err := cas.GC(t.Context(), s, cas.GCOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			r, err := cas.VerifyDir(t.Context(), dir, cas.VerifyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range r.Findings {
				if f.Kind != "chain" { // the events are no run
					t.Errorf("%+v", f)
				}
			}
		})
	}
}
