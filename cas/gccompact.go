package cas

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"

	"wf/protocol"
)

// compact writes store.db anew when a good part of it is free. The new file is read and
// hashed before it takes the place of the old one.
func compact(ctx context.Context, s *Store) (bool, error) {
	resume := s.gate.pause()
	defer resume()
	turn, lock, err := queueFor(ctx, s.Dir(), true, s.opts.wait())
	if err != nil {
		return false, err
	}
	defer closeAll(turn, lock)
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
			return true, classify(syncDir(s.Dir()))
		}
	}
	return false, errors.Join(classify(err), removeIfThere(tmp))
}

func worthCompacting(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return false, err
	}
	p, err := openPages(f, fi.Size())
	if err != nil {
		return false, fmt.Errorf("%w: %w", protocol.ErrCorrupt, err)
	}
	return fi.Size() > 256<<10 && int64(len(p.pagesInUse()))*p.page < fi.Size()*3/4, nil
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
		err = bolt.Compact(dst, src, 1<<20)
		return errors.Join(err, dst.Sync(), dst.Close())
	})
}

// compareBlocks reads every block of two files and finds them the same.
func (s *Store) compareBlocks(ctx context.Context, path, tmp string) error {
	var have [2]map[blockName]int
	for i, name := range []string{path, tmp} {
		have[i] = map[blockName]int{}
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		err = func() error {
			fi, err := f.Stat()
			if err != nil {
				return err
			}
			p, err := openPages(f, fi.Size())
			if err != nil {
				return fmt.Errorf("%w: %w", protocol.ErrCorrupt, err)
			}
			p.fault = func(what string) { err = fmt.Errorf("%s: %s: %w", name, what, protocol.ErrCorrupt) }
			t, _ := p.sub(bucketBlocks)
			walk := t.whole(func(it pageItem) error {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				us, err := s.unpack(it.value)
				if err != nil {
					return err
				}
				for j := range us {
					have[i][blockName{us[j].codec, us[j].digest}]++
				}
				return nil
			})
			return errors.Join(walk, err)
		}()
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	for n, count := range have[0] {
		if have[1][n] != count {
			return fmt.Errorf("compaction lost block %s: %w", linkOf(n.codec, n.sum[:]), protocol.ErrCorrupt)
		}
	}
	return nil
}
