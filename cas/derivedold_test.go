package cas

import (
	"bytes"
	"crypto/sha256"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// What an older wf derived has a checksum and no seal. It is as good as lost, and no damage: it is made again,
// and written over.
func TestWhatAnOlderWfDerivedIsMadeAgain(t *testing.T) {
	s, err := Open(t.Context(), t.TempDir(), Options{Seal: []byte("mine")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b := Raw([]byte("block"))
	commitBlocks(t, s, b)
	for _, data := range [][]byte{nil, []byte("short"), bytes.Repeat([]byte("state "), 100)} {
		rest := append(appendLink(nil, b.Link), data...)
		sum := sha256.Sum256(rest)
		err := s.update(t.Context(), func(tx *bolt.Tx) error {
			return sub(tx, indexDerived).Put([]byte("state/1"), append(sum[:16], rest...))
		})
		if err != nil {
			t.Fatal(err)
		}
		if d, ok, err := s.Derived(t.Context(), "state/1"); ok || err != nil {
			t.Errorf("%d bytes: %+v, %t, %v", len(data), d, ok, err)
		}
		if d, _, err := s.Derived(t.Context(), "state/1"); d.Head.Defined() || err != nil {
			t.Errorf("%d bytes are held against their source: %+v, %v", len(data), d, err)
		}
	}
	if err := s.Commit(t.Context(), Batch{Derived: []Derived{{Key: "state/1", Head: b.Link, Data: []byte("anew")}}}); err != nil {
		t.Fatal(err)
	}
	if d, ok, err := s.Derived(t.Context(), "state/1"); !ok || err != nil || string(d.Data) != "anew" {
		t.Errorf("made again: %+v, %t, %v", d, ok, err)
	}
}
