package words

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	manifestSchema = "wf.search/v3" // another one where the words of a text are others, too
	manifestMax    = 1 << 20
	lockName       = "lock"
	segSuffix      = ".seg"

	lockPoll = 10 * time.Millisecond
)

type manifest struct {
	Schema   string   `json:"schema"`
	Segments []string `json:"segments"`
}

func (f folder) String() string { return "the directory " + f.dir }

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
func (f folder) exists(context.Context) bool {
	_, err := os.Lstat(f.dir)
	return !none(err)
}

// stamp has what tells a manifest from the one that it replaced.
func (f folder) stamp(context.Context) (string, error) {
	info, err := os.Lstat(filepath.Join(f.dir, manifestName))
	if none(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", fmt.Errorf("%s (%s) is %w", manifestName, info.Mode(), errDamaged)
	}
	return fmt.Sprint(st.Dev, " ", st.Ino, " ", info.Size(), " ", info.ModTime().UnixNano()), nil
}

func (f folder) names(context.Context) ([]string, error) {
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
	return segmentsOf(b)
}

// segmentsOf are the segments that a manifest names.
func segmentsOf(b []byte) ([]string, error) {
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

// read has one file open at a time, however many segments there are.
func (f folder) read(_ context.Context, names []string, _ func(int) []part, each func(int, io.ReaderAt) error) error {
	for i, name := range names {
		file, err := files.Open(filepath.Join(f.dir, name))
		if err != nil {
			return err
		}
		if err := errors.Join(each(i, file), file.Close()); err != nil {
			return err
		}
	}
	return nil
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

// put does not wait until it is durable: after a loss of power a segment may be damaged.
func (f folder) put(_ context.Context, data []byte) (string, error) {
	name := segmentName()
	return name, files.ReplaceSoon(filepath.Join(f.dir, name), data)
}

// segmentName is a name that no segment has had.
func segmentName() string {
	id := make([]byte, 8)
	rand.Read(id) // never fails
	return hex.EncodeToString(id) + segSuffix
}

func (f folder) drop(_ context.Context, name string) error {
	return os.Remove(filepath.Join(f.dir, name))
}

func (f folder) remove(context.Context) error { return os.RemoveAll(f.dir) }

// count is called with the lock: no other process has written.
func (f folder) count(ctx context.Context, _ string, names []string) (string, error) {
	b, err := json.Marshal(manifest{manifestSchema, names})
	if err == nil {
		err = files.ReplaceSoon(filepath.Join(f.dir, manifestName), b)
	}
	if err != nil {
		return "", err
	}
	stamp, err := f.stamp(ctx)
	return stamp, errors.Join(err, f.sweep(names))
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
