package cas

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"wf/files"
	"wf/protocol"
)

// GCOptions say what to keep.
type GCOptions struct {
	// Grace keeps blocks that no head reaches for at least this long. How old a block is
	// follows from earlier collections, which note how far the store had got; so the first
	// one with a grace removes nothing. 0 keeps none: right while no process writes.
	Grace time.Duration
	// DryRun reports what would be removed and changes nothing.
	DryRun bool
}

// ReflogKept is how long what a head pointed to is kept.
const ReflogKept time.Duration = 14 * 24 * time.Hour

// GCReport is what a collection did, or with DryRun would do: wf.gc/v1.
type GCReport struct {
	Schema    string `json:"schema"`
	DryRun    bool   `json:"dry_run"`
	Kept      int64  `json:"kept"`      // blocks that are reached
	Young     int64  `json:"young"`     // blocks that are not, within the grace period
	Removed   int64  `json:"removed"`   // blocks
	Bytes     int64  `json:"bytes"`     // of the removed blocks, unpacked
	Blobs     int64  `json:"blobs"`     // files removed
	Reindexed bool   `json:"reindexed"` // the index was wrong and made anew
	Compacted bool   `json:"compacted"` // store.db was written anew
	Before    int64  `json:"file_before"`
	After     int64  `json:"file_after"` // bytes of store.db
}

// GC removes blocks that nothing reaches: no head, and no move of a head within the reflog's
// time. Other processes may go on working; what they commit meanwhile is kept. The whole
// store is read first, and damage, or a reachable block that is missing, ends it with an
// error wrapping ErrCorrupt before anything is removed. What only runs that were deleted reached
// goes at once, whatever the grace period.
//
// It holds the store for milliseconds at a time, so that others go on: to copy out what it reads,
// for transactions that remove a few packs, and at the end of a rewriting for the last changes.
//
// Interrupted at any point the store is sound: where little is dead, packs go in small transactions; where
// much is, or the index is wrong, a new store.db without them replaces the old one by a rename, if there is room for both; blob
// files go after the packs that named them, and those that none names before anything is written, so that a full disk has room for the
// rest. Where it has none still, blob files go before the packs that name them, and leave empty ones, by which everybody knows that they
// went. At the end the free pages of store.db are zeros.
//
// A caller that stores blocks in one commit and names them in a later one relies on the grace period, or on Hold.
func GC(ctx context.Context, s *Store, o GCOptions) (r GCReport, err error) {
	defer func() {
		if err != nil {
			r, err = GCReport{}, fmt.Errorf("gc of %s: %w", s.Dir(), err)
		}
	}()
	if !o.DryRun {
		unlockGC, err := lockGC(ctx, s, true)
		if err != nil {
			return r, err
		}
		defer unlockGC()
	}
	c := collector{s: s, o: o, clock: s.now(), now: extent{pack: string(packKey(0))}, blobs: map[[32]byte]bool{}}
	r = GCReport{Schema: "wf.gc/v1", DryRun: o.DryRun, Before: fileSize(s)}
	if !o.DryRun {
		if err := c.dropAged(ctx); err != nil && !errors.Is(err, protocol.ErrDiskFull) { // there is room for it behind this one
			return r, err
		}
	}
	if err := c.mark(ctx, &r); err != nil {
		return r, err
	}
	if o.DryRun {
		r.After = r.Before
		return r, nil
	}
	r.Reindexed = c.reindex
	worth, err := c.worthRewriting(ctx)
	if err != nil {
		return r, err
	}
	if !c.reindex { // else it is not known which files packs name
		if err := c.sweepBlobs(ctx, &r); err != nil {
			return r, err
		}
	}
	if worth {
		err = c.rewrite(ctx)
		r.Compacted = err == nil
	}
	if !worth || !c.reindex && errors.Is(err, protocol.ErrDiskFull) { // there is no room for a second store.db
		err = c.sweep(ctx)
	}
	if errors.Is(err, protocol.ErrDiskFull) && !c.reindex {
		c.crowded = true
		err = c.sweep(ctx)
	}
	if err != nil {
		return r, err
	}
	if err := c.s.update(ctx, c.note); err != nil {
		return r, err
	}
	if err := c.sweepBlobs(ctx, &r); err != nil {
		return r, err
	}
	if err := c.wipe(ctx); err != nil {
		return r, err
	}
	r.After = fileSize(s)
	return r, nil
}

func fileSize(s *Store) int64 {
	fi, err := os.Stat(filepath.Join(s.Dir(), fileDB))
	if err != nil {
		return 0 // it is there: we have it open
	}
	return fi.Size()
}

// Hold keeps collections away until release is called: what is stored meanwhile stays, although nothing leads to
// it yet. It waits for one that is under way.
func (s *Store) Hold(ctx context.Context) (release func(), err error) {
	if release, err = lockGC(ctx, s, false); err != nil {
		return nil, err
	}
	return sync.OnceFunc(release), nil
}

// lockGC keeps collections apart from each other and from imports: no head reaches the blocks of
// an import until its end.
func lockGC(ctx context.Context, s *Store, exclusive bool) (func(), error) {
	dir := filepath.Join(s.Dir(), dirRuns)
	if err := files.MakeDir(dir); err != nil {
		return nil, classify(err)
	}
	f, err := openLock(filepath.Join(dir, ".gc"), false)
	if err != nil {
		return nil, classify(err)
	}
	free, err := files.TryLock(f, !exclusive)
	for ; err == nil && !free && !exclusive; free, err = files.TryLock(f, true) { // until the collection has ended
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), f.Close())
		}
	}
	if err == nil && !free {
		err = fmt.Errorf("an import, a backup, another gc or a step that stores large artifacts is under way: %w", protocol.ErrBusy)
	}
	if err != nil {
		return nil, errors.Join(classify(err), f.Close())
	}
	return func() { _ = files.FreeLock(f) }, nil // nothing was written
}

// collector is one collection.
type collector struct {
	s       *Store
	o       GCOptions
	clock   int64  // unix µs
	now     extent // of the store when it was read
	heads   map[string]protocol.Link
	marks   marker
	packs   []seenPack        // all, in order
	fresh   []uint32          // blocks that were marked as live, in the order of marking
	old     extent            // what has outlived the grace period
	extents map[string]bool   // packs that earlier collections noted the store to end with
	waste   int64             // stored bytes of dead blocks, about
	blobs   map[[32]byte]bool // named by a pack
	reindex bool
	crowded bool // the disk has no room for what is to be written
}

// seenPack is a pack as it was when the store was read.
type seenPack struct {
	key    string
	blocks []uint32 // by their ids in the graph
	dead   int      // how many of them
	stored int      // bytes
	blob   bool
	sum    [32]byte // of the block in a blob file
}
