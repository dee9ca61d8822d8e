package cas

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"

	"wf/files"
	"wf/protocol"
)

// Store keeps blocks, heads and journals in one directory. It may be used by many goroutines
// at once, and many processes may have the same one open. Close it after use.
type Store struct {
	Observed
	opts  Options
	gate  gate
	queue queue
	moved movedSignal
	seen  seenHeads

	healing  sync.Mutex   // held while the index is looked at and made anew
	renewals atomic.Int64 // how often that was done

	held heldCache

	lookedOver atomic.Bool // the index was looked at for a block that was not found

	closing sync.Mutex
	closed  bool
	atClose []func() // what HandleStop and hearCommits began
	heard   bool     // the system reports commits of other processes
	deaf    bool     // and cannot be

	// ghost replaces a lost index/blocks where the store may not be written.
	ghost map[string][]byte
}

var _ protocol.Blocks = (*Store)(nil)
var _ protocol.Source = (*Store)(nil)

// Close ends the use of the store; what was committed is on disk already. Calls under way
// finish or fail.
func (s *Store) Close() error {
	s.queue.finish()
	s.gate.shut()
	s.closing.Lock()
	ends := s.atClose
	s.atClose, s.closed, s.heard = nil, true, false
	s.closing.Unlock()
	for _, end := range ends {
		end()
	}
	return nil
}

// Dir is the directory of the store, absolute.
func (s *Store) Dir() string { return s.gate.dir }

// Name is that by which another process opens the store: its directory.
func (s *Store) Name() string { return s.gate.dir }

// Beside is where files lie that belong to the store and are not in it: its directory.
func (s *Store) Beside() string { return s.gate.dir }

// Block gives a copy of a block, with its hash checked. A missing one is an error
// wrapping protocol.ErrNotFound, a damaged one an error wrapping protocol.ErrCorrupt.
func (s *Store) Block(ctx context.Context, l protocol.Link) ([]byte, error) {
	var data []byte
	err := s.view(ctx, func(tx *bolt.Tx) (err error) {
		data, err = s.newLookup(tx).block(l)
		return err
	})
	return data, err
}

// lookup finds blocks within one transaction and remembers the segments it has opened.
type lookup struct {
	s     *Store
	packs *bolt.Bucket
	index *bolt.Bucket
	meta  *bolt.Bucket
	seek  *bolt.Cursor // of index
	key   [8]byte      // what it seeks
	late  []byte       // entries that index lacks; nil when they are lost
	faint *sketch      // of late, where it is long and much is looked for
	held  map[[packKeySize]byte]*openPack
	alone bool // of a commit: one batch is all of it

	gathered gathered                 // of a commit of several
	buried   map[protocol.Link][]byte // tombstones of this commit

	// near is the segment of the block found last, and its place there: the event before an
	// event lies right before it, or a few blocks, and needs no look into the index.
	near []unpacked
	last int
}

// nearby is how many blocks before the last one are looked at.
const nearby = 4

type openPack struct {
	segments []segment
	blocks   [][]unpacked // of each segment, once opened
}

func (s *Store) newLookup(tx *bolt.Tx) *lookup {
	lk := &lookup{s: s, packs: tx.Bucket(bucketBlocks), index: sub(tx, indexBlocks), meta: tx.Bucket(bucketMeta)}
	if lk.meta != nil {
		lk.late = lk.meta.Get(keyLate)
	}
	if lk.index != nil {
		lk.seek = lk.index.Cursor()
	}
	return lk
}

// indexed reports whether the index is there; else the ghost replaces it.
func (lk *lookup) indexed() bool { return lk.index != nil && lk.late != nil }

// heldPacks bounds the packs a lookup remembers: a walk through a journal meets the same one
// for the events of one commit, or its neighbour.
const heldPacks = 32

func (lk *lookup) block(l protocol.Link) ([]byte, error) {
	digest, err := digestOf(l)
	if err != nil {
		return nil, err
	}
	for n := lk.last - 1; n >= 0 && n >= lk.last-nearby; n-- {
		if u := &lk.near[n]; string(u.digest[:]) == digest {
			lk.last = n
			return u.data, nil
		}
	}
	at := lk.places(digest)
	var damage error
	for _, p := range at {
		u, err := lk.at(p)
		switch {
		case err != nil:
			damage = err
		case string(u.digest[:]) == digest:
			return u.data, nil
		case string(u.digest[:len(lk.key)]) == digest[:len(lk.key)]: // another block, whole, whose CID begins alike
		default:
			damage = &Mismatch{l, linkOf(l.Bytes()[1], u.digest[:])}
		}
	}
	switch {
	case damage == nil:
		return nil, fmt.Errorf("block %s: %w", l, protocol.ErrNotFound)
	case len(at) > 1: // others begin alike; which one is damaged is not known
		return nil, fmt.Errorf("block %s is missing or damaged: %w", l, damage)
	}
	return nil, fmt.Errorf("block %s: %w", l, damage)
}

// places are the places of the blocks with digests that begin like digest.
func (lk *lookup) places(digest string) []place {
	if !lk.indexed() {
		return places(lk.s.ghost[digest[:8]])
	}
	copy(lk.key[:], digest)
	out := places(valueAt(lk.seek, lk.key[:]))
	if lk.faint != nil && !lk.faint.has(lk.key[:]) {
		return out
	}
	return latePlaces(out, lk.late, digest[:8])
}

// at unpacks the block at a place.
func (lk *lookup) at(p place) (unpacked, error) {
	o, ok := lk.held[p.pack]
	if !ok {
		stored, err := lk.s.loaded(lk.packs.Get(p.pack[:]))
		if err != nil {
			return unpacked{}, err
		}
		segs, err := segments(stored)
		if err != nil && len(segs) == 0 {
			return unpacked{}, err
		}
		o = &openPack{segs, make([][]unpacked, len(segs))}
		if lk.held == nil || len(lk.held) >= heldPacks {
			lk.held = make(map[[packKeySize]byte]*openPack, heldPacks)
		}
		lk.held[p.pack] = o
	}
	for i, s := range o.segments {
		n := int(p.index) - s.first
		if n >= s.count {
			continue
		}
		if o.blocks[i] == nil {
			u, err := s.open()
			if err != nil {
				return unpacked{}, err
			}
			o.blocks[i] = u
		}
		lk.near, lk.last = o.blocks[i], n
		return o.blocks[i][n], nil
	}
	return unpacked{}, fmt.Errorf("its pack does not hold %d blocks: %w", p.index+1, protocol.ErrCorrupt)
}

// unpack opens a stored pack, in store.db or in a blob file.
func (s *Store) unpack(stored []byte) ([]unpacked, error) {
	stored, err := s.loaded(stored)
	if err != nil {
		return nil, err
	}
	return unpack(stored)
}

// loaded gives a stored pack that may be in a blob file.
func (s *Store) loaded(stored []byte) ([]byte, error) {
	if len(stored) != 1+sha256.Size || stored[0] != packBlob {
		return stored, nil
	}
	b, err := readData(s.blobPath(stored[1:]))
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("blob file %x is gone: %w", stored[1:], protocol.ErrCorrupt)
		if _, there := os.Lstat(emptied(s.blobPath(stored[1:]))); there == nil {
			err = fmt.Errorf("%w: %w", err, errEmptied)
		}
		return nil, err
	}
	if err != nil {
		return nil, classify(err)
	}
	return b, nil
}

// blobPath is where the stored pack of a large block is.
func (s *Store) blobPath(digest []byte) string {
	name := hex.EncodeToString(digest)
	return filepath.Join(s.gate.dir, dirBlobs, name[:2], name)
}

// blobThere reports whether a stored pack has the blob file that it may name: a collection may
// have removed one that was found there before.
func (s *Store) blobThere(stored []byte) bool {
	if stored[0] != packBlob {
		return true
	}
	_, err := os.Lstat(s.blobPath(stored[1:]))
	return !errors.Is(err, fs.ErrNotExist)
}

// writeBlob puts a stored pack beside store.db. It is durable when writeBlob returns: temp,
// fsync, rename, fsync of the directory; only then may a commit refer to it.
func (s *Store) writeBlob(digest, stored []byte) (err error) {
	path := s.blobPath(digest)
	if old, err := readData(path); err == nil && bytes.Equal(old, stored) {
		return nil
	}
	dir := filepath.Dir(path)
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := files.MakeDir(d); err != nil {
			return err
		}
	}
	f, err := os.CreateTemp(dir, "new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, removeIfThere(f.Name()))
		}
	}()
	if err = s.opts.before(OpBlob); err == nil {
		_, err = f.Write(stored)
	}
	if err := errors.Join(err, f.Sync(), f.Close(), s.opts.before(OpRename)); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return errors.Join(files.SyncDir(dir), files.SyncDir(filepath.Dir(dir)), files.SyncDir(s.gate.dir))
}
