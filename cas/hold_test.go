package cas

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"wf/files"
)

// HoldForTest keeps the store for writing while f runs.
func HoldForTest(s *Store, f func() error) error {
	return s.update(context.Background(), func(*bolt.Tx) error { return f() })
}

// ReadForTest keeps the store for reading while f runs.
func ReadForTest(s *Store, f func() error) error {
	return s.view(context.Background(), func(*bolt.Tx) error { return f() })
}

// StoppedForTest reports whether a process is stopped, as a wait for it finds out.
func StoppedForTest(pid int) bool { return stoppedProcess(pid) }

// TurnForTest keeps the turn of a store while f runs, and goes no further.
func TurnForTest(dir string, f func() error) error {
	turn, err := openLock(filepath.Join(dir, fileTurn), false)
	if err != nil {
		return err
	}
	return errors.Join(files.WaitLock(turn, false), f(), files.FreeLock(turn))
}

// WaitForTest changes how long a store is waited for, between two calls.
func WaitForTest(s *Store, wait time.Duration) { s.opts.Wait = wait }

// shareEntry makes the index say that a and b begin alike, as if by chance.
func shareEntry(t *testing.T, s *Store, a, b Block) error {
	t.Helper()
	return s.update(context.Background(), func(tx *bolt.Tx) error {
		index := sub(tx, indexBlocks)
		ka, kb := []byte(a.Link.CID().KeyString()[4:12]), []byte(b.Link.CID().KeyString()[4:12])
		both := append(append([]byte(nil), index.Get(ka)...), index.Get(kb)...)
		if err := index.Put(ka, both); err != nil {
			return err
		}
		return index.Put(kb, both)
	})
}
