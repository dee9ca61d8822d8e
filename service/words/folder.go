package words

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"wf/files"
)

// Dir is the name of the index beside a store.
const Dir = "search.db"

// A folder is the directory of an index:
//
//	manifest    the names of the segments that count
//	*.seg       segments, each written once
//	lock        held by the process that writes
type folder struct{ dir string }

const (
	manifestName   = "manifest"
	manifestSchema = "wf.search/v2" // another one where the words of a text are others, too
	manifestMax    = 1 << 20
	lockName       = "lock"
	segSuffix      = ".seg"

	lockPoll = 10 * time.Millisecond
)

type manifest struct {
	Schema   string   `json:"schema"`
	Segments []string `json:"segments"`
}

// A stamp tells whether a manifest was replaced.
type stamp struct {
	mod  time.Time
	size int64
	file fs.FileInfo
}

func (a stamp) same(b stamp) bool {
	return a.file != nil && b.file != nil && a.mod.Equal(b.mod) && a.size == b.size && os.SameFile(a.file, b.file)
}

// own is nil for a directory that this user alone can read and write, whose manifest and lock can be replaced and locked. An error wraps
// fs.ErrNotExist or errDamaged.
func (f folder) own() error {
	info, err := os.Lstat(f.dir)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || info.Mode().Perm()&0o077 != 0 || !ok || int(st.Uid) != os.Getuid() {
		return fmt.Errorf("%s (%s) is %w", f.dir, info.Mode(), errDamaged)
	}
	for _, name := range []string{manifestName, lockName} {
		if info, err := os.Lstat(filepath.Join(f.dir, name)); err == nil && !info.Mode().IsRegular() {
			return fmt.Errorf("%s in %s (%s) is %w", name, f.dir, info.Mode(), errDamaged)
		}
	}
	return nil
}

// none reports whether an error says that nothing lies somewhere.
func none(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) }

// exists reports whether something lies where the index does, or might.
func (f folder) exists() bool {
	_, err := os.Lstat(f.dir)
	return !none(err)
}

// stamp is that of the manifest; zero where there is none.
func (f folder) stamp() (stamp, error) {
	info, err := os.Lstat(filepath.Join(f.dir, manifestName))
	if none(err) {
		return stamp{}, nil
	}
	if err != nil {
		return stamp{}, err
	}
	return stamp{info.ModTime(), info.Size(), info}, nil
}

// names are those of the segments; none where there is no index.
func (f folder) names() ([]string, error) {
	if err := f.own(); none(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	b, err := files.Read(filepath.Join(f.dir, manifestName), manifestMax)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var m manifest
	if err := json.Unmarshal(b, &m); err != nil || m.Schema != manifestSchema {
		return nil, fmt.Errorf("%s is %w", manifestName, errDamaged)
	}
	for _, name := range m.Segments {
		if name != filepath.Base(name) || !strings.HasSuffix(name, segSuffix) {
			return nil, fmt.Errorf("%s names %q and is %w", manifestName, name, errDamaged)
		}
	}
	return m.Segments, nil
}

// open opens a segment. One that was removed is an error wrapping fs.ErrNotExist.
func (f folder) open(name string) (*os.File, int, error) {
	file, err := files.Open(filepath.Join(f.dir, name))
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, int(min(info.Size(), segMost+1)), nil
}

// lock makes the directory and waits until no other process writes to it.
func (f folder) lock(ctx context.Context) (unlock func(), err error) {
	if err := f.own(); errors.Is(err, errDamaged) {
		if err := os.RemoveAll(f.dir); err != nil { // a link is removed, and not what it leads to
			return nil, err
		}
	}
	if err := files.MakeDir(f.dir); err != nil {
		return nil, err
	}
	if err := f.own(); err != nil {
		return nil, err
	}
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		l, err := files.LockNamed(filepath.Join(f.dir, lockName), os.O_CREATE)
		if err == nil {
			return func() { _ = files.FreeLock(l) }, nil // nothing was written to it
		}
		if !errors.Is(err, files.ErrLocked) {
			return nil, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// put writes a segment, and returns its name. It is not durable: after a loss of power it may be damaged.
func (f folder) put(data []byte) (string, error) {
	id := make([]byte, 8)
	rand.Read(id) // never fails
	name := hex.EncodeToString(id) + segSuffix
	return name, files.ReplaceSoon(filepath.Join(f.dir, name), data)
}

// count has some segments count, and no others. The lock is held.
func (f folder) count(names []string) error {
	b, err := json.Marshal(manifest{manifestSchema, names})
	if err != nil {
		return err
	}
	return files.ReplaceSoon(filepath.Join(f.dir, manifestName), b)
}

// sweep removes all but these segments: also what a process left that was killed.
func (f folder) sweep(names []string) error {
	all, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	stay := slices.Sorted(slices.Values(append([]string{manifestName, lockName}, names...)))
	var errs error
	for _, x := range all {
		if _, stays := slices.BinarySearch(stay, x.Name()); !stays {
			errs = errors.Join(errs, os.RemoveAll(filepath.Join(f.dir, x.Name())))
		}
	}
	return errs
}
