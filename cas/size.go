package cas

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

// Size is what a store takes on disk, in bytes.
type Size struct {
	Live  int64 // entries of store.db, keys and their heads included
	File  int64 // length of store.db
	Blobs int64 // blob files
}

// Size measures the store; it walks through all pages of the database.
func (s *Store) Size(ctx context.Context) (Size, error) {
	var out Size
	err := s.view(ctx, func(tx *bolt.Tx) error {
		out.Live = 0
		return tx.ForEach(func(_ []byte, b *bolt.Bucket) error {
			st := b.Stats()
			out.Live += int64(st.LeafInuse)
			return nil
		})
	})
	if err != nil {
		return Size{}, fmt.Errorf("size of %s: %w", s.gate.dir, err)
	}
	fi, err := os.Stat(filepath.Join(s.gate.dir, fileDB))
	if err != nil {
		return Size{}, fmt.Errorf("size of %s: %w", s.gate.dir, classify(err))
	}
	out.File = fi.Size()
	err = filepath.WalkDir(filepath.Join(s.gate.dir, dirBlobs), func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		fi, err := d.Info()
		if err == nil {
			out.Blobs += fi.Size()
		}
		return err
	})
	if err != nil {
		return Size{}, fmt.Errorf("size of %s: %w", s.gate.dir, classify(err))
	}
	return out, nil
}
