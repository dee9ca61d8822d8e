package cas

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Usage measures, again and again, what a store takes on disk. It is cheaper than Store.Size: it opens no
// database, and of the blob files it looks only into directories that changed. It is for one goroutine.
type Usage struct {
	Store *Store

	blobs map[string]blobDir // by name
}

// blobDir is a directory of blob files as it was read.
type blobDir struct {
	changed time.Time
	bytes   int64
}

// fresh is how long ago a directory must have changed for its time to tell it from what comes: the clocks of file
// systems tick in milliseconds, some in seconds.
const fresh = 3 * time.Second

// Disk is what a store takes on disk, and what is left there, in bytes.
type Disk struct {
	Database int64 // store.db
	Blobs    int64 // blob files
	Free     int64 // of the file system, for this user
}

// Read measures the store.
func (u *Usage) Read(ctx context.Context) (Disk, error) {
	dir := u.Store.gate.dir
	out, err := u.read(ctx, dir, time.Now())
	if err != nil {
		return out, fmt.Errorf("size of %s: %w", dir, classify(err))
	}
	return out, nil
}

func (u *Usage) read(ctx context.Context, dir string, now time.Time) (out Disk, err error) {
	db, err := os.Stat(filepath.Join(dir, fileDB))
	if err != nil {
		return out, err
	}
	out.Database = db.Size()
	var at unix.Statfs_t
	if err := unix.Statfs(dir, &at); err != nil {
		return out, err
	}
	out.Free = int64(at.Bavail) * int64(at.Bsize)
	names, err := os.ReadDir(filepath.Join(dir, dirBlobs))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return out, err
	}
	seen := make(map[string]blobDir, len(names))
	for _, name := range names {
		if ctx.Err() != nil {
			return out, context.Cause(ctx)
		}
		if !name.IsDir() {
			continue
		}
		d, err := u.blobs[name.Name()].again(filepath.Join(dir, dirBlobs, name.Name()), now)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return out, err
		}
		seen[name.Name()] = d
		out.Blobs += d.bytes
	}
	u.blobs = seen
	return out, nil
}

// again reads a directory if it is not as it was.
func (d blobDir) again(path string, now time.Time) (blobDir, error) {
	info, err := os.Stat(path)
	if err != nil || info.ModTime().Equal(d.changed) {
		return d, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return d, err
	}
	d = blobDir{}
	if now.Sub(info.ModTime()) > fresh {
		d.changed = info.ModTime()
	}
	for _, e := range entries {
		file, err := e.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return d, err
		case file.Mode().IsRegular():
			d.bytes += file.Size()
		}
	}
	return d, nil
}
