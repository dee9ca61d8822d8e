package cas

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	bolt "go.etcd.io/bbolt"

	"wf/files"
	"wf/protocol"
)

// compact writes store.db anew when a good part of it is free. The new file is read and
// hashed before it takes the place of the old one.
func compact(ctx context.Context, s *Store) (bool, error) {
	resume := s.gate.pause()
	defer resume()
	g, err := bareGate(s.Dir(), s.opts.wait())
	if err != nil {
		return false, err
	}
	defer g.shut()
	h, err := g.enter(ctx, true)
	if err != nil {
		return false, err
	}
	defer g.leave(h, true)
	path := filepath.Join(s.Dir(), fileDB)
	worth, err := worthCompacting(path)
	if err != nil || !worth {
		return false, classify(err)
	}
	tmp := path + ".compact"
	if err := removeIfThere(tmp); err != nil {
		return false, classify(err)
	}
	err = writeCompact(s, path, tmp)
	if err == nil {
		err = s.compareBlocks(ctx, path, tmp)
	}
	if err == nil {
		if err = os.Rename(tmp, path); err == nil {
			return true, classify(files.SyncDir(s.Dir()))
		}
	}
	return false, errors.Join(classify(err), removeIfThere(tmp))
}

func worthCompacting(path string) (worth bool, err error) {
	err = readPages(path, func(p *pageFile) error {
		worth = p.size > 256<<10 && int64(len(p.pagesInUse()))*p.page < p.size*3/4
		return nil
	})
	return worth, err
}

func writeCompact(s *Store, from, to string) error {
	return guard(func() (err error) {
		src, err := bolt.Open(from, 0o600, boltOptions(false))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, src.Close()) }()
		dst, err := bolt.Open(to, 0o600, boltOptions(true))
		if err != nil {
			return err
		}
		dst.AllocSize = 64 << 10
		err = src.View(func(tx *bolt.Tx) error { return copyBuckets(dst, tx) })
		return errors.Join(err, dst.Sync(), dst.Close())
	})
}

// copyBuckets writes the buckets of the layout to another database, and no others.
func copyBuckets(dst *bolt.DB, from *bolt.Tx) error {
	c := copier{db: dst}
	for _, name := range layoutBuckets {
		if err := c.bucket([][]byte{name}, from.Bucket(name)); err != nil {
			return errors.Join(err, c.end())
		}
	}
	return c.end()
}

// copier writes in transactions of about copyMax bytes, in the order of the keys.
type copier struct {
	db   *bolt.DB
	tx   *bolt.Tx
	into *bolt.Bucket // in tx; nil after a commit
	size int
}

const copyMax = 1 << 20

func (c *copier) bucket(path [][]byte, from *bolt.Bucket) error {
	if from == nil {
		return nil
	}
	c.into = nil
	if err := c.open(path); err != nil {
		return err
	}
	if err := c.into.SetSequence(from.Sequence()); err != nil {
		return err
	}
	return from.ForEach(func(k, v []byte) error {
		if v == nil {
			err := c.bucket(append(slices.Clone(path), k), from.Bucket(k))
			c.into = nil
			return err
		}
		if c.size += len(k) + len(v); c.size > copyMax {
			if err := c.end(); err != nil {
				return err
			}
			c.size = len(k) + len(v)
		}
		if err := c.open(path); err != nil {
			return err
		}
		return c.into.Put(k, v)
	})
}

// open finds the bucket that is written to, and makes it.
func (c *copier) open(path [][]byte) (err error) {
	if c.into != nil {
		return nil
	}
	if c.tx == nil {
		if c.tx, err = c.db.Begin(true); err != nil {
			return err
		}
	}
	c.into, err = c.tx.CreateBucketIfNotExists(path[0])
	for _, name := range path[1:] {
		if err != nil {
			return err
		}
		c.into, err = c.into.CreateBucketIfNotExists(name)
	}
	if err == nil {
		c.into.FillPercent = 1 // keys come in their order
	}
	return err
}

func (c *copier) end() error {
	if c.tx == nil {
		return nil
	}
	tx := c.tx
	c.tx, c.into, c.size = nil, nil, 0
	return tx.Commit()
}

// compareBlocks reads every block of two files and finds them the same.
func (s *Store) compareBlocks(ctx context.Context, path, tmp string) error {
	had, err := s.blocksOf(ctx, path)
	if err != nil {
		return err
	}
	has, err := s.blocksOf(ctx, tmp)
	if err != nil {
		return err
	}
	for n, count := range had {
		if has[n] != count {
			return fmt.Errorf("compaction lost block %s: %w", n, protocol.ErrCorrupt)
		}
	}
	return nil
}

// blocksOf counts how often each block is in a file.
func (s *Store) blocksOf(ctx context.Context, path string) (map[blockName]int, error) {
	have := map[blockName]int{}
	err := readPages(path, func(p *pageFile) error {
		var damage error
		p.fault = func(what string) { damage = fmt.Errorf("%s: %s: %w", path, what, protocol.ErrCorrupt) }
		t, _ := p.sub(bucketBlocks)
		walk := t.whole(func(it pageItem) error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			us, err := s.unpack(it.value)
			for _, u := range us {
				have[blockName{u.codec, u.digest}]++
			}
			return err
		})
		return errors.Join(walk, damage)
	})
	return have, err
}
