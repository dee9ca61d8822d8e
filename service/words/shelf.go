package words

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"wf/files"
	"wf/protocol"
	"wf/store"
)

// A shelf is where an index lies: a directory of this machine, or rows of the database that all machines share. Segments on it are written once,
// and those that count change at once.
//
// damage distinguishes their errors.
type shelf interface {
	// stamp is another text whenever other segments count; "" where there is no index.
	stamp(ctx context.Context) (string, error)
	// names are those of the segments that count; none where there is no index.
	names(ctx context.Context) ([]string, error)
	// read has f read segments, one after another. wanted are the parts that it will read: what is far away sends them together, and others when
	// they are read.
	read(ctx context.Context, names []string, wanted func(i int) []part, f func(i int, r io.ReaderAt) error) error
	// lock waits until what is counted next can be counted. An error, but one of ctx, means that nothing can be written.
	lock(ctx context.Context) (unlock func(), err error)
	// put writes a segment, which does not count yet, and gives it a name. drop removes one again that will not count.
	put(ctx context.Context, data []byte) (name string, err error)
	drop(ctx context.Context, name string) error
	// count has some segments count, removes all others, and returns the stamp of that. Where the shelf had another stamp before than since, nothing
	// changes and the error is errMoved.
	count(ctx context.Context, since string, names []string) (stamp string, err error)
	// exists reports whether something lies there, remove removes all of it.
	exists(ctx context.Context) bool
	remove(ctx context.Context) error
	// String says what to remove where wf cannot.
	String() string
}

// A part is where something lies in a segment.
type part struct{ at, size int }

// Errors of shelves.
var (
	errDamaged = errors.New("not as wf wrote it")
	errMoved   = errors.New("another process has written to the index")
)

// damage reports whether an error is of an index that is made anew: it is not as this wf wrote it, or a part of it is gone. Any other is of the machine, as
// that too many files are open, or of a database, whose socket may be gone while it starts again: it says nothing about the index.
func damage(err error) bool {
	if protocol.CodeOf(err) != "" {
		return false
	}
	for _, of := range []error{errDamaged, files.ErrOdd, fs.ErrNotExist} {
		if errors.Is(err, of) {
			return true
		}
	}
	return false
}

// shelfOf is where the index of a store lies, and what it is sealed with. A directory is this user's: others may have written it. A database is
// written by those alone that write its runs, and they are one user.
func shelfOf(s store.Store, key func() []byte) (shelf, func() []byte) {
	beside := folder{filepath.Join(s.Beside(), Dir)}
	if h, ok := store.ShelfOf(s, Dir); ok {
		return rows{Shelf: h, former: beside}, func() []byte { return []byte(s.Dir()) }
	}
	return beside, key
}

// readAt reads a part whole. What ends before is damaged.
func readAt(r io.ReaderAt, p part) ([]byte, error) {
	b := make([]byte, p.size)
	n, err := r.ReadAt(b, int64(p.at))
	if n == len(b) {
		return b, nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = fmt.Errorf("its length is %w", errDamaged)
	}
	return nil, err
}
