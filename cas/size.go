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
	if err := s.eachBlob(ctx, func(_ string, fi fs.FileInfo) { out.Blobs += fi.Size() }); err != nil {
		return Size{}, fmt.Errorf("size of %s: %w", s.gate.dir, err)
	}
	return out, nil
}

// eachBlob gives f the files below blobs, also those that are being written.
func (s *Store) eachBlob(ctx context.Context, f func(path string, fi fs.FileInfo)) error {
	return filepath.WalkDir(filepath.Join(s.gate.dir, dirBlobs), func(path string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil && e.Type().IsRegular() {
			var fi fs.FileInfo
			if fi, err = e.Info(); err == nil {
				f(path, fi)
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // not made yet, or removed meanwhile
		}
		return classify(err)
	})
}
