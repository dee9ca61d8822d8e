package cas

import (
	"context"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A store may lie in a workspace, where an agent can write. What it puts in place of the files of the
// store is neither followed nor waited for.
func TestNothingInPlaceOfAFileOfTheStoreIsFollowed(t *testing.T) {
	for name, put := range map[string]func(path, copied string) error{
		"a link": func(path, copied string) error { return os.Symlink(copied, path) },
		"a pipe": func(path, _ string) error { return syscall.Mkfifo(path, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			open := func() (*Store, error) { return Open(t.Context(), dir, Options{}) }
			s, err := open()
			if err != nil {
				t.Fatal(err)
			}
			noise := make([]byte, 4<<20) // compresses to no less, and so gets a file
			_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
			lost := Raw(noise)
			commitBlocks(t, s, lost)
			files, err := filepath.Glob(filepath.Join(dir, dirBlobs, "*", "*"))
			if err != nil || len(files) != 1 {
				t.Fatalf("blobs: %v, %v", files, err)
			}
			back := swap(t, files[0], put)
			if _, err := s.Block(t.Context(), lost.Link); err == nil || !strings.Contains(err.Error(), "not a regular file") {
				t.Errorf("a block is read: %v", err)
			}
			back()
			if _, err := s.Block(t.Context(), lost.Link); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			back = swap(t, filepath.Join(dir, fileDB), put)
			if s, err := open(); err == nil || !strings.Contains(err.Error(), "no regular file") {
				t.Errorf("a store is opened: %v", errors.Join(err, s.Close()))
			}
			back()
		})
	}
}

// A link in place of a directory of the store would have wf write elsewhere.
func TestNoDirectoryOfAStoreIsALink(t *testing.T) {
	noise := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(noise)
	digest := Raw(noise).Link.CID().KeyString()[4:]
	for what, c := range map[string]struct {
		dir string
		do  func(*Store) error
	}{
		"the lock of a run": {dirRuns, func(s *Store) error { _, err := s.Claim(context.Background(), "R1"); return err }},
		"a collection":      {dirRuns, func(s *Store) error { _, err := lockGC(t.Context(), s, true); return err }},
		"a large block":     {dirBlobs, func(s *Store) error { return s.Commit(t.Context(), Batch{Blocks: []Block{Raw(noise)}}) }},
		"one of a shard": {filepath.Join(dirBlobs, hex.EncodeToString([]byte(digest[:1]))), func(s *Store) error {
			return s.Commit(t.Context(), Batch{Blocks: []Block{Raw(noise)}})
		}},
	} {
		elsewhere := t.TempDir()
		s, err := Open(t.Context(), filepath.Join(t.TempDir(), "store"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		link := filepath.Join(s.Dir(), c.dir)
		if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o700), os.Symlink(elsewhere, link)); err != nil {
			t.Fatal(err)
		}
		if err := c.do(s); err == nil || !strings.Contains(err.Error(), "not a directory") {
			t.Errorf("%s: %v", what, err)
		}
		if left, err := os.ReadDir(elsewhere); len(left) > 0 || err != nil {
			t.Errorf("%s was written elsewhere: %v, %v", what, left, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// What lies in place of a large block is read no further than a block can be.
func TestABlobIsReadNoFurtherThanABlock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "blob")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40)); err != nil {
		t.Fatal(err)
	}
	if b, err := readData(path); err == nil {
		t.Errorf("%d bytes were read", len(b))
	}
}

// swap puts something in the place of a file, until back is called.
func swap(t *testing.T, path string, put func(path, copied string) error) (back func()) {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "copy")
	if err := errors.Join(os.Rename(path, copied), put(path, copied)); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := errors.Join(os.Remove(path), os.Rename(copied, path)); err != nil {
			t.Fatal(err)
		}
	}
}
