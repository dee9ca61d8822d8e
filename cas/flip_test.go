package cas

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"

	"wf/protocol"
)

// Each of the two meta pages may be damaged at any byte, that of the page size included: the store
// opens by the other one.
func TestAStoreOpensByEitherMetaPage(t *testing.T) {
	dir, _ := closedSample(t, 2)
	file := filepath.Join(dir, fileDB)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	for _, meta := range []int{0, page} {
		for at := meta + pageHead; at < meta+pageHead+64; at++ {
			flipByte(t, file, data, at)
			s, err := Open(t.Context(), dir, Options{ReadOnly: true})
			if err == nil {
				_, err = s.Heads(t.Context(), "")
				if cerr := s.Close(); cerr != nil {
					t.Error(cerr)
				}
			}
			r := verifyClosed(t, dir, VerifyOptions{})
			if err != nil || !r.OK {
				t.Errorf("byte %d: open says %v, verify %v", at, err, r.Findings)
			}
			flipByte(t, file, data, at)
		}
	}
}

// A flip in a head or in its reflog is an error or changes nothing that is read.
func TestNoFlipInAHeadIsShown(t *testing.T) {
	s := openSample(t)
	sampleRun(t, s, "one", 5)
	const name = "run/one"
	head, err := s.Head(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	same := cmp.Comparer(func(a, b protocol.Link) bool { return a == b })
	set := func(bucket, key, value []byte) {
		t.Helper()
		if err := s.update(t.Context(), func(tx *bolt.Tx) error { return tx.Bucket(bucket).Put(key, value) }); err != nil {
			t.Fatal(err)
		}
	}
	wrong := 0
	for _, bucket := range [][]byte{bucketRefs, bucketReflog} {
		var key, value []byte
		if err := s.view(t.Context(), func(tx *bolt.Tx) error {
			k, v := tx.Bucket(bucket).Cursor().First()
			key, value = bytes.Clone(k), bytes.Clone(v)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for at := range value {
			for _, bit := range []byte{1, 0x40} {
				flipped := bytes.Clone(value)
				flipped[at] ^= bit
				set(bucket, key, flipped)
				if h, err := s.Head(t.Context(), name); err == nil && !cmp.Equal(h, head, same) {
					t.Errorf("%s, byte %d: the head reads as %+v", bucket, at, h)
				} else if err != nil {
					wrong++
				}
				if all, err := s.Heads(t.Context(), ""); err == nil && !cmp.Equal(all, []Head{head}, same) {
					t.Errorf("%s, byte %d: the heads read as %+v", bucket, at, all)
				}
			}
		}
		set(bucket, key, value)
	}
	if wrong == 0 {
		t.Error("no flip was found")
	}
	if h, err := s.Head(t.Context(), name); err != nil || !cmp.Equal(h, head, same) {
		t.Errorf("afterwards the head is %+v, %v", h, err)
	}
}
