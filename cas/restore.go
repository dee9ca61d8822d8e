package cas

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"

	"wf/files"
	"wf/protocol"
)

// Held says why nothing in a store goes on: it was restored from a backup, and other copies of it may be going on
// elsewhere. It is in meta, under keyHeld.
type Held struct {
	Store  string `json:"store"`  // an id for this copy
	Backup string `json:"backup"` // directory
	Made   int64  `json:"made"`   // the backup, unix µs
	At     int64  `json:"at"`     // of the restoring, unix µs
}

var keyHeld = []byte("held")

// heldCache remembers that a store is not held: it never becomes so while it is open.
type heldCache struct{ free atomic.Bool }

// Held is nil for a store in which runs may go on.
func (s *Store) Held(ctx context.Context) (h *Held, err error) {
	if s.held.free.Load() {
		return nil, nil
	}
	err = s.view(ctx, func(tx *bolt.Tx) error {
		h = nil
		meta := tx.Bucket(bucketMeta)
		if meta == nil {
			return nil
		}
		if v := meta.Get(keyHeld); v != nil {
			h = new(Held)
			return json.Unmarshal(v, h)
		}
		return nil
	})
	if err == nil && h == nil {
		s.held.free.Store(true)
	}
	return h, err
}

// MayGoOn is nil for a store that is not held, else an error wrapping protocol.ErrHeld.
func (s *Store) MayGoOn(ctx context.Context) error {
	h, err := s.Held(ctx)
	if err == nil && h != nil {
		err = protocol.ErrHeld.With("", "%s was restored from the backup in %s, and nothing goes on in it", s.Dir(), h.Backup)
	}
	return err
}

// Release lets runs go on in a store that was restored.
func (s *Store) Release(ctx context.Context) error {
	return s.update(ctx, func(tx *bolt.Tx) error { return tx.Bucket(bucketMeta).Delete(keyHeld) })
}

// Restoring is the directory within that of a store in which it is made.
const Restoring = ".restoring"

// Restore makes a store of a backup in the directory to, which is empty or does not exist, proves it, and puts it
// in place. The store is held: see Held. now is unix µs. Cut off anywhere there is no store in the directory, and another
// Restore begins anew.
func Restore(ctx context.Context, backup, to string, now int64, o Options) (m Manifest, err error) {
	defer func() {
		if err != nil {
			err = damagedBackup(fmt.Errorf("restore %s from %s: %w", to, backup, classify(err)))
		}
	}()
	at := filepath.Join(to, Restoring)
	if backup, err = filepath.Abs(backup); err != nil {
		return m, err
	}
	if err := emptyFor(to); err != nil {
		return m, err
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return m, err
	}
	// As for a store that is being made: of two one goes on.
	turn, err := openLock(filepath.Join(to, fileTurn), false)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, files.FreeLock(turn)) }()
	free, err := files.TryLock(turn, false)
	if err == nil && !free {
		err = protocol.ErrBusy.With("", "another process makes a store in %s", to)
	}
	if err == nil {
		err = emptyFor(to)
	}
	if err != nil {
		return m, err
	}
	if err := errors.Join(os.RemoveAll(at), os.RemoveAll(filepath.Join(to, dirBlobs)), os.MkdirAll(filepath.Join(at, dirBlobs), 0o700)); err != nil {
		return m, err
	}
	if m, err = restoreInto(ctx, backup, at, now, o); err != nil {
		return m, errors.Join(err, os.RemoveAll(at))
	}
	r, err := VerifyDir(ctx, at, VerifyOptions{All: true})
	if err == nil && !r.OK {
		err = fmt.Errorf("what is restored is damaged: %s: %w", r.Findings[0], protocol.ErrCorrupt)
	}
	if err != nil {
		return m, errors.Join(err, os.RemoveAll(at))
	}
	// The database last: until then there is no store.
	for _, name := range []string{dirBlobs, fileDB} {
		if err := o.before(OpSwap); err != nil {
			return m, err
		}
		if err := errors.Join(os.Rename(filepath.Join(at, name), filepath.Join(to, name)), files.SyncDir(to)); err != nil {
			return m, err
		}
	}
	return m, os.RemoveAll(at)
}

// emptyFor refuses a directory with anything in it but what a restoring that was cut off left there.
func emptyFor(to string) error {
	names, err := os.ReadDir(to)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	there := map[string]bool{}
	for _, e := range names {
		there[e.Name()] = true
	}
	if there[fileDB] {
		return protocol.ErrUsage.With("name a directory that is empty, or that does not exist; if it was restored there before, wf store adopt --store "+protocol.ShellWord(to)+" goes on with it", "there is a store in %s", to)
	}
	for name := range there {
		if name != Restoring && name != fileTurn && (!there[Restoring] || name != dirBlobs) {
			return protocol.ErrUsage.With("name a directory that is empty, or that does not exist", "%s is not empty: there is %s", to, name)
		}
	}
	return err
}

// restoreInto writes the files of a store.
func restoreInto(ctx context.Context, backup, at string, now int64, o Options) (m Manifest, err error) {
	s := &Store{opts: o}
	s.gate = gate{dir: at, opts: &s.opts}
	w := rewriter{collector: &collector{s: s}, tmp: filepath.Join(at, fileDB)}
	if err := w.open(); err != nil {
		return m, err
	}
	defer func() {
		if w.db != nil {
			err = errors.Join(err, w.db.Close())
		}
	}()
	size := 0
	var packs []entry
	var blobs []entry // packs that name a blob file, which is written first
	flush := func() error {
		slices.SortFunc(packs, func(a, b entry) int { return bytes.Compare(a.key, b.key) })
		err := w.put([][]byte{bucketBlocks}, packs)
		packs, size = nil, 0
		return err
	}
	add := func(it entry, us []unpacked) error {
		for i := range us {
			w.enter(us[i].digest, it.key, i)
		}
		packs = append(packs, it)
		if size += len(it.value); size < sliceBytes {
			return nil
		}
		return flush()
	}
	m, err = readBackup(ctx, backup, func(at int, stored []byte) error {
		it := entry{packKey(uint64(at) + 1), stored}
		if len(stored) > 0 && stored[0] == packBlob {
			blobs = append(blobs, it)
			return nil
		}
		us, err := unpack(stored)
		if err != nil {
			return err
		}
		return add(it, us)
	}, func(name string, data []byte) error {
		dir := filepath.Join(at, dirBlobs, name[:2])
		if err := errors.Join(os.MkdirAll(dir, 0o700), o.before(OpBlob)); err != nil {
			return err
		}
		return files.Replace(filepath.Join(dir, name), data)
	}, func(refs, reflog []entry) error {
		for _, it := range blobs {
			us, err := s.unpack(it.value)
			if err == nil {
				err = add(it, us)
			}
			if err != nil {
				return err
			}
		}
		return errors.Join(flush(), w.put([][]byte{bucketRefs}, refs), w.put([][]byte{bucketReflog}, reflog))
	})
	if err != nil {
		return m, err
	}
	if err := w.writeIndex(); err != nil {
		return m, err
	}
	held, err := json.Marshal(Held{Store: rand.Text(), Backup: backup, Made: m.At, At: now})
	if err != nil {
		return m, err
	}
	if err := w.db.Update(func(tx *bolt.Tx) error {
		if err := seal(tx, uint64(m.Packs.Count), held); err != nil {
			return err
		}
		return s.kinAnew(tx)
	}); err != nil {
		return m, err
	}
	err = errors.Join(w.db.Sync(), w.db.Close(), files.SyncDir(filepath.Join(at, dirBlobs)), files.SyncDir(at))
	w.db = nil
	return m, err
}

// seal makes the buckets that are missing, and writes what a store says of itself.
func seal(tx *bolt.Tx, packs uint64, held []byte) error {
	for _, name := range layoutBuckets {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	for _, name := range layoutIndexes {
		if _, err := tx.Bucket(bucketIndex).CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	meta := tx.Bucket(bucketMeta)
	return errors.Join(tx.Bucket(bucketBlocks).SetSequence(packs), meta.Put(keyVersion, []byte{layoutOf(tx)}),
		meta.Put(keyLate, []byte{}), meta.Put(keyHeld, bytes.Clone(held)))
}
