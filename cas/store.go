package cas

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"

	"wf/protocol"
)

// Store keeps blocks, heads and journals in one directory. It may be used by many goroutines
// at once, and many processes may have the same one open. Close it after use.
type Store struct {
	opts  Options
	gate  gate
	queue queue
	moved movedSignal

	// ghost stands in for a lost index/blocks where the store may not be written.
	ghost map[string][]byte
}

var _ protocol.Blocks = (*Store)(nil)
var _ protocol.Source = (*Store)(nil)

// Close ends the use of the store; what was committed is on disk already. Calls under way
// finish or fail.
func (s *Store) Close() error {
	s.queue.finish()
	s.gate.shut()
	return nil
}

// Dir is the directory of the store, absolute.
func (s *Store) Dir() string { return s.gate.dir }

// Block gives a copy of a block whose hash was just checked. A missing one is an error
// wrapping protocol.ErrNotFound, a damaged one an error wrapping protocol.ErrCorrupt.
func (s *Store) Block(ctx context.Context, l protocol.Link) ([]byte, error) {
	var data []byte
	err := s.view(ctx, func(tx *bolt.Tx) (err error) {
		data, err = s.newLookup(tx).block(l)
		return err
	})
	return data, err
}

// Has reports whether a block is stored and undamaged.
func (s *Store) Has(ctx context.Context, l protocol.Link) (bool, error) {
	_, err := s.Block(ctx, l)
	if errors.Is(err, protocol.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// lookup finds blocks within one transaction and remembers the packs it has opened.
type lookup struct {
	s     *Store
	packs *bolt.Bucket
	index *bolt.Bucket
	held  map[[packKeySize]byte][]unpacked
}

func (s *Store) newLookup(tx *bolt.Tx) *lookup {
	return &lookup{s: s, packs: tx.Bucket(bucketBlocks), index: sub(tx, indexBlocks)}
}

// heldPacks bounds the packs a lookup remembers: a walk through a journal meets the same one
// for the events of one commit, or its neighbour.
const heldPacks = 64

func (lk *lookup) block(l protocol.Link) ([]byte, error) {
	digest, err := digestOf(l)
	if err != nil {
		return nil, err
	}
	at := lk.places(digest)
	var damage error
	for _, p := range at {
		u, err := lk.open(p.pack)
		if err != nil {
			damage = err
			continue
		}
		if int(p.index) < len(u) {
			if string(u[p.index].digest[:]) == digest {
				return u[p.index].data, nil
			}
			damage = mismatch(l, linkOf(l.Bytes()[1], u[p.index].digest[:]))
		} else {
			damage = fmt.Errorf("its pack holds %d blocks, not %d: %w", len(u), p.index+1, protocol.ErrCorrupt)
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

// places is where blocks lie whose digest begins like digest.
func (lk *lookup) places(digest string) []place {
	if lk.index == nil {
		return places(lk.s.ghost[digest[:8]])
	}
	return places(lk.index.Get([]byte(digest[:8])))
}

// open gives the blocks of a pack.
func (lk *lookup) open(key [packKeySize]byte) ([]unpacked, error) {
	if u, ok := lk.held[key]; ok {
		return u, nil
	}
	u, err := lk.s.unpack(lk.packs.Get(key[:]))
	if err != nil {
		return nil, err
	}
	if lk.held == nil || len(lk.held) >= heldPacks {
		lk.held = make(map[[packKeySize]byte][]unpacked)
	}
	lk.held[key] = u
	return u, nil
}

// unpack opens a stored pack, in store.db or in a blob file.
func (s *Store) unpack(stored []byte) ([]unpacked, error) {
	if len(stored) == 1+32 && stored[0] == packBlob {
		b, err := os.ReadFile(s.blobPath(stored[1:]))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("blob file %x is gone: %w", stored[1:], protocol.ErrCorrupt)
		}
		if err != nil {
			return nil, classify(err)
		}
		stored = b
	}
	return unpack(stored)
}

// blobPath is where the stored pack of a large block is.
func (s *Store) blobPath(digest []byte) string {
	name := hex.EncodeToString(digest)
	return filepath.Join(s.gate.dir, dirBlobs, name[:2], name)
}

// writeBlob puts a stored pack beside store.db. It is durable when writeBlob returns: temp,
// fsync, rename, fsync of the directory; only then may a commit refer to it.
func (s *Store) writeBlob(digest, stored []byte) (err error) {
	path := s.blobPath(digest)
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, stored) {
		return nil
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
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
	write := s.opts.WriteBlob
	if write == nil {
		write = func(f *os.File, b []byte) error {
			_, err := f.Write(b)
			return err
		}
	}
	if err := errors.Join(write(f, stored), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return errors.Join(syncDir(dir), syncDir(filepath.Dir(dir)), syncDir(s.gate.dir))
}
