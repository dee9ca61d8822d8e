package cas

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"

	"wf/files"
	"wf/protocol"
)

// Options are how a store is opened; the zero value is right for most.
type Options struct {
	// MustExist makes a missing store an error; otherwise it is created.
	MustExist bool
	// ReadOnly opens for reading: nothing on disk changes, but the queue for the locks.
	ReadOnly bool
	// AnyOwner also opens a directory that belongs to another user.
	AnyOwner bool
	// Wait is how long to queue for a store that other processes hold; by default as long as that goes on: a stopped process is waited
	// for 25 s, and one that neither commits nor gives the store to another for 10 min. Warn is called with a wait of a second.
	Wait time.Duration
	// Before, when set, is called before each operation on disk. Its error takes the place
	// of the operation; tests make operations fail by it, or end the process there.
	Before func(Op) error
	// Seal is a key outside of the store, see UserKey. A derived value that was not sealed with it is not
	// used: it is made again. Without it those are used that were sealed without one.
	Seal []byte
	// Warn is called with what went wrong without harm to what is stored: a derived value that could
	// not be written, a wait for another process. It must not block; nil is allowed.
	Warn func(error)
	// Now is the clock, unix µs, for moves that carry no time; default the system's.
	Now func() int64
}

// Op is an operation on disk, for Options.Before.
type Op string

// The operations, in the order in which a commit meets them.
const (
	OpOpen   Op = "open"   // store.db is opened
	OpBlob   Op = "blob"   // a blob file is written
	OpRename Op = "rename" // the blob file gets its name
	OpApply  Op = "apply"  // a batch is written into the transaction
	OpDerive Op = "derive" // and a derived value
	OpCommit Op = "commit" // the transaction is written and synced
	OpCount  Op = "count"  // the commit, done, is counted

	OpRewrite Op = "rewrite" // a collection adds to a new store.db
	OpSwap    Op = "swap"    // and puts it in place
	OpWipe    Op = "wipe"    // and writes zeros where nothing is any more
	OpBackup  Op = "backup"  // a backup writes a file
)

// OpBatch is Commit, from its call until the batch is on disk or refused; for an Observer alone.
const OpBatch Op = "batch"

// An Observer is called with how long something took, and its error: OpBatch, and OpCommit, whose transaction may
// hold several batches. It must not block.
type Observer func(what Op, took time.Duration, err error)

// Observed is what an Observer looks at: a store embeds it. Its methods are safe for concurrent use.
type Observed struct{ f atomic.Pointer[Observer] }

// Observe has f called from now on; nil ends it.
func (o *Observed) Observe(f Observer) { o.f.Store(&f) }

// Measure measures something that begins now; the caller calls done when it is over.
func (o *Observed) Measure(what Op) (done func(error)) {
	f := o.f.Load()
	if f == nil || *f == nil {
		return func(error) {}
	}
	began := time.Now()
	return func(err error) { (*f)(what, time.Since(began), err) }
}

func (o *Options) before(op Op) error {
	if o.Before == nil {
		return nil
	}
	return o.Before(op)
}

func (o *Options) warn(err error) {
	if o.Warn != nil {
		o.Warn(err)
	}
}

func (s *Store) warn(err error) { s.opts.warn(err) }

// ours are the names that a directory may hold before a store is made in it.
var ours = []string{fileDB, fileLock, fileTurn, dirBlobs, dirRuns, "config.yaml", ".gitignore", "trust", "tmp", fileBackup, fileLinks}

// Open opens the store in dir, and makes it when there is none. It takes no lock that stays:
// the store is held only while something is read or written, and other processes come in
// between.
//
// Errors wrap ErrStore where dir holds something else, is damaged, cut short or on a network
// file system, ErrNewerStore for a later layout, ErrReadOnly, ErrDiskFull, and ErrBusy when
// the store stayed held, see Options.Wait. Whatever the error, no store is moved, shortened or
// made anew.
func Open(ctx context.Context, dir string, o Options) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w: %w", dir, protocol.ErrStore, err)
	}
	s := &Store{opts: o}
	s.gate = gate{dir: dir, opts: &s.opts, check: s.admit}
	s.moved.ch = make(chan struct{})
	if err := s.open(ctx); err != nil {
		return nil, fmt.Errorf("open store %s: %w", dir, errors.Join(err, s.Close()))
	}
	return s, nil
}

// errNoStore, and wrongPlace for what else may be there, say that a store is looked for in the
// wrong place.
var (
	errNoStore = wrongPlace("there is no store")
	errNotDir  = wrongPlace("it is a file, a store is a directory")
)

func wrongPlace(format string, args ...any) error {
	return protocol.ErrStore.With("name the right one with --store; wf run makes one", format, args...)
}

func (s *Store) open(ctx context.Context) error {
	there, err := s.inspect()
	if err != nil {
		return err
	}
	if !there && (s.opts.MustExist || s.opts.ReadOnly) {
		return errNoStore
	}
	if !there {
		if err := s.create(); err != nil {
			return err
		}
	}
	if err := s.gate.open(); err != nil {
		return err
	}
	return s.view(ctx, func(*bolt.Tx) error { return nil })
}

// inspect looks at dir without changing it.
func (s *Store) inspect() (there bool, err error) {
	dir := s.gate.dir
	return look(dir, func(fi fs.FileInfo) error {
		if uid, other := ownedByAnother(fi); other && !s.opts.AnyOwner {
			return wrongPlace("the directory belongs to user %d, not to you", uid)
		}
		if kind, err := onNetwork(dir); err != nil {
			return classify(err)
		} else if kind != "" {
			return wrongPlace("it is on a network file system (%s), whose locks do not hold between machines", kind)
		}
		if db, err := os.Lstat(filepath.Join(dir, fileDB)); err == nil && !db.Mode().IsRegular() {
			return fmt.Errorf("%s is no regular file: %w", fileDB, protocol.ErrStore)
		}
		return nil
	})
}

// look tells whether there is a store.db in dir, whatever its state, unless that is refused.
func look(dir string, refuse func(fs.FileInfo) error) (there bool, err error) {
	fi, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, classify(err)
	case !fi.IsDir():
		return false, errNotDir
	}
	if err := refuse(fi); err != nil {
		return false, err
	}
	if _, err = os.Lstat(filepath.Join(dir, fileDB)); errors.Is(err, fs.ErrNotExist) {
		return false, vacant(dir)
	}
	return err == nil, classify(err)
}

// vacant refuses a directory that holds something else, or that lost its store.db.
func vacant(dir string) error {
	names, err := os.ReadDir(dir)
	if err != nil {
		return classify(err)
	}
	for _, e := range names {
		if e.Name() == Restoring {
			return protocol.ErrStore.With("wf store restore BACKUP "+protocol.ShellWord(dir)+" begins it anew", "a backup is being restored there, or that was cut off: there is no store yet")
		}
		if !slices.Contains(ours, e.Name()) && !strings.HasPrefix(e.Name(), fileDB+".") {
			return wrongPlace("the directory holds something else (%s) and no store", e.Name())
		}
	}
	if n, err := readCounter(filepath.Join(dir, fileLock)); err == nil && n > 0 {
		if _, err := os.Lstat(filepath.Join(dir, fileDB)); err == nil {
			return nil // made, and written to, since it was looked for
		}
		return fmt.Errorf("%s is gone, though %d commits were made to it; put it back: %w", fileDB, n, protocol.ErrStore)
	}
	return nil
}

// create makes the store: a new file under another name, synced, then renamed, so that a
// power loss leaves no half-made one (etcd#16596). Of several processes one does it.
func (s *Store) create() error {
	dir := s.gate.dir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return classify(err)
	}
	if _, err := s.inspect(); err != nil { // again: a network mount shows only now
		return err
	}
	turn, err := openLock(filepath.Join(dir, fileTurn), false)
	if err != nil {
		return classify(err)
	}
	defer func() { _ = files.FreeLock(turn) }() // nothing was written
	if err := files.WaitLock(turn, false); err != nil {
		return classify(err)
	}
	path := filepath.Join(dir, fileDB)
	if _, err := os.Lstat(path); err == nil {
		return nil // another one was faster
	}
	tmp := path + ".new"
	if err := removeIfThere(tmp); err != nil {
		return classify(err)
	}
	if err := s.initDB(tmp); err != nil {
		return errors.Join(classify(err), removeIfThere(tmp))
	}
	if err := os.Rename(tmp, path); err != nil {
		return classify(err)
	}
	return classify(files.SyncDir(dir))
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (s *Store) initDB(path string) error {
	db, err := bolt.Open(path, 0o600, boltOptions(true))
	if err != nil {
		return err
	}
	return errors.Join(db.Update(s.rebuild), db.Close())
}

func boltOptions(write bool) *bolt.Options {
	return &bolt.Options{
		Timeout:      time.Second, // our own locks decide; this is for other programs
		FreelistType: bolt.FreelistMapType,
		ReadOnly:     !write,
		NoStatistics: true,
		OpenFile:     openBolt,
	}
}

// openDB opens an existing database and nothing else.
func openDB(path string, o *Options, write bool) (db *bolt.DB, err error) {
	f, err := openData(path)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return nil, fmt.Errorf("%w: %w", protocol.ErrStore, err)
		}
		return nil, classify(err)
	}
	fi, err := f.Stat()
	if err == nil {
		err = checkHeader(f, fi.Size())
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = o.before(OpOpen)
	}
	if err == nil {
		err = guard(func() (err error) {
			db, err = bolt.Open(path, 0o600, boltOptions(write))
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, classify(err))
	}
	// bbolt grows the file by this much at a time; its default of 16 MiB is most of a small store.
	db.AllocSize = int(min(max(fi.Size()/16, 64<<10), 16<<20))
	return db, nil
}
