package cas_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"wf/cas"
	"wf/cas/castest"
	"wf/protocol"
)

// A derived value that cannot be written leaves its batch, and those of others, as they are.
func TestABatchIsStoredWithoutWhatIsDerivedWhereThatFails(t *testing.T) {
	var told []string
	s, err := cas.Open(t.Context(), filepath.Join(t.TempDir(), "store"), cas.Options{
		Before: func(op cas.Op) error {
			if op == cas.OpDerive {
				return errors.New("no room")
			}
			return nil
		},
		Warn: func(err error) { told = append(told, err.Error()) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b := cas.Raw([]byte("block"))
	err = s.Commit(t.Context(), cas.Batch{Blocks: []cas.Block{b}, Moves: []cas.Move{{Name: "x/1", New: b.Link}},
		Derived: []cas.Derived{{Key: "state/1", Head: b.Link, Data: []byte("state")}}})
	if err != nil {
		t.Fatal(err)
	}
	if h, err := s.Head(t.Context(), "x/1"); err != nil || h.Link != b.Link {
		t.Errorf("the head is %v, %v", h.Link, err)
	}
	if _, ok, err := s.Derived(t.Context(), "state/1"); ok || err != nil {
		t.Errorf("a derived value: %v, %v", ok, err)
	}
	if len(told) != 1 || !strings.Contains(told[0], "state/1") || !strings.Contains(told[0], "no room") {
		t.Errorf("told %q", told)
	}
	// A head that moved is still refused, and nothing is told of it.
	err = s.Commit(t.Context(), cas.Batch{Moves: []cas.Move{{Name: "x/1", New: b.Link}}, Derived: []cas.Derived{{Key: "k", Data: []byte("d")}}})
	if !errors.Is(err, protocol.ErrHeadMoved) || len(told) != 1 {
		t.Errorf("%v, told %q", err, told)
	}
}

// What another key sealed, or none, or what lay under another name, is not there but for those who hold it
// against its source.
func TestWhatAnotherKeySealedIsNotUsed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	b := cas.Raw([]byte("block"))
	with := func(seal string, do func(*cas.Store)) {
		t.Helper()
		s, err := cas.Open(t.Context(), dir, cas.Options{Seal: []byte(seal)})
		if err != nil {
			t.Fatal(err)
		}
		do(s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, by := range []string{"mine", "another", ""} {
		with(by, func(s *cas.Store) {
			d := cas.Derived{Key: "state/1", Head: b.Link, Data: []byte("of " + by)}
			if err := s.Commit(t.Context(), cas.Batch{Blocks: []cas.Block{b}, Derived: []cas.Derived{d}}); err != nil {
				t.Fatal(err)
			}
		})
		with("mine", func(s *cas.Store) {
			if d, ok, err := s.Derived(t.Context(), "state/1"); err != nil || ok != (by == "mine") {
				t.Errorf("sealed by %q: %q, %t, %v", by, d.Data, ok, err)
			}
			if d, sealed, err := s.Derived(t.Context(), "state/1"); err != nil || sealed != (by == "mine") || string(d.Data) != "of "+by {
				t.Errorf("sealed by %q, held against its source: %q, %t, %v", by, d.Data, sealed, err)
			}
		})
	}
}

// A page of derived values that is damaged is as good as lost: reads find nothing there, and
// commits go on without.
func TestADamagedPageOfDerivedValuesStopsNothing(t *testing.T) {
	t.Run("of this wf", func(t *testing.T) { damagedDerived(t, false) })
	t.Run("of an older one", func(t *testing.T) { damagedDerived(t, true) }) // it is first written to when the store is opened
}

func damagedDerived(t *testing.T, older bool) {
	dir := filepath.Join(t.TempDir(), "store")
	s := openStore(t, dir)
	if older {
		castest.Sample(t, s, "one", 1, nil)
	}
	b := cas.Raw([]byte("block"))
	// Larger than what bbolt keeps within the page of another bucket.
	value := bytes.Repeat([]byte("state "), 3000)
	for _, key := range []string{"state/1", "state/2", "state/3"} {
		if err := s.Commit(t.Context(), cas.Batch{Blocks: []cas.Block{b}, Derived: []cas.Derived{{Key: key, Head: b.Link, Data: value}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "store.db")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	damaged := 0
	for at := 0; at+page <= len(data); at += page {
		// A leaf page whose first keys are those: its flags, and the number of its entries.
		if i := bytes.Index(data[at:at+page], []byte("state/1")); i > 0 && data[at+8] == 2 {
			copy(data[at+10:], "\xff\xff")
			copy(data[at+16:], bytes.Repeat([]byte{0xfe}, 64))
			damaged++
		}
	}
	if damaged == 0 {
		t.Fatal("no page of derived values was found")
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if older {
		edit(t, dir, func(tx *bolt.Tx) error { return tx.Bucket([]byte("meta")).Delete([]byte("kin")) })
	}
	told := 0
	s, err = cas.Open(t.Context(), dir, cas.Options{Warn: func(error) { told++ }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, ok, err := s.Derived(t.Context(), "state/1"); ok || err != nil {
		t.Errorf("a derived value on a damaged page: %v, %v", ok, err)
	}
	more := cas.Raw([]byte("more"))
	err = s.Commit(t.Context(), cas.Batch{Blocks: []cas.Block{more}, Moves: []cas.Move{{Name: "x/1", New: more.Link}},
		Derived: []cas.Derived{{Key: "state/1", Head: more.Link, Data: value}}})
	if err != nil {
		t.Fatal(err)
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
	if got, err := s.Block(t.Context(), more.Link); err != nil || string(got) != "more" {
		t.Errorf("%q, %v", got, err)
	}
}
