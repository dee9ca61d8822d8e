package cas

import (
	"context"

	bolt "go.etcd.io/bbolt"
)

// HoldForTest keeps the store for writing while f runs.
func HoldForTest(s *Store, f func() error) error {
	return s.update(context.Background(), func(*bolt.Tx) error { return f() })
}
