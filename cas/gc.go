package cas

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// reflogKept is how long what a head pointed to is kept.
const reflogKept time.Duration = 14 * 24 * time.Hour

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
// error wrapping ErrCorrupt before anything is removed.
//
// Interrupted at any point the store is sound: packs go in transactions of at most 1,000
// keys, blob files after the packs that named them, and a compacted store.db replaces the old
// one by a rename.
//
// A caller that stores blocks in one commit and names them in a later one relies on the grace period.
func GC(ctx context.Context, s *Store, o GCOptions) (r GCReport, err error) {
	defer func() {
		if err != nil {
			r, err = GCReport{}, fmt.Errorf("gc of %s: %w", s.Dir(), err)
		}
	}()
	if !o.DryRun {
		unlockGC, err := lockGC(s, true)
		if err != nil {
			return r, err
		}
		defer unlockGC()
	}
	c := collector{s: s, o: o, clock: s.now(), now: extent{pack: string(packKey(0))}, blobs: map[[32]byte]bool{}}
	r = GCReport{Schema: "wf.gc/v1", DryRun: o.DryRun, Before: fileSize(s)}
	if err := c.mark(ctx, &r); err != nil {
		return r, err
	}
	if o.DryRun {
		r.After = r.Before
		return r, nil
	}
	if c.reindex {
		if err := s.reindex(ctx); err != nil {
			return r, err
		}
		r.Reindexed = true
	}
	if err := c.sweep(ctx, &r); err != nil {
		return r, err
	}
	if err := c.sweepBlobs(ctx, &r); err != nil {
		return r, err
	}
	if r.Compacted, err = compact(ctx, s); err != nil {
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

// lockGC keeps collections apart from each other and from imports: no head reaches the blocks of
// an import until its end.
func lockGC(s *Store, exclusive bool) (func(), error) {
	dir := filepath.Join(s.Dir(), dirRuns)
	if err := files.MakeDir(dir); err != nil {
		return nil, classify(err)
	}
	f, err := openLock(filepath.Join(dir, ".gc"), false)
	if err != nil {
		return nil, classify(err)
	}
	free := true
	if exclusive {
		free, err = tryLock(f)
	} else {
		err = lockWait(f, false)
	}
	if err == nil && !free {
		err = fmt.Errorf("an import or another gc is under way: %w", protocol.ErrBusy)
	}
	if err != nil {
		return nil, errors.Join(classify(err), f.Close())
	}
	return func() { _ = f.Close() }, nil // frees the lock; nothing was written
}

// collector is one collection.
type collector struct {
	s       *Store
	o       GCOptions
	clock   int64  // unix µs
	now     extent // of the store when it was read
	heads   map[string]protocol.Link
	live    map[[32]byte]struct{}
	old     extent            // what has outlived the grace period
	dead    []seenPack        // with blocks that nothing reaches
	blobs   map[[32]byte]bool // named by a pack
	reindex bool
}

// seenPack is a pack as it was when the store was read.
type seenPack struct {
	key   string
	sums  [][32]byte // of its blocks
	sizes []int
	blob  bool
}

// mark reads the whole store and finds what is reached.
func (c *collector) mark(ctx context.Context, r *GCReport) error {
	d, err := openEvidence(ctx, c.s.Dir(), c.s.opts.wait())
	if err != nil {
		return err
	}
	defer d.close()
	d.byContent = true
	var damage *Finding
	d.report = func(f Finding) {
		switch {
		case f.Kind == "index":
			c.reindex = true
		case damage == nil:
			damage = &f
		}
	}
	var packs []seenPack
	d.onPack = func(key, stored []byte, us []unpacked) {
		p := seenPack{key: string(key), blob: stored[0] == packBlob}
		for i := range us {
			p.sums = append(p.sums, us[i].digest)
			p.sizes = append(p.sizes, len(us[i].data))
		}
		packs = append(packs, p)
	}
	g := &graph{nodes: map[blockName]*node{}, from: d}
	if err := d.survey(ctx, g, true); err != nil {
		return err
	}
	if damage != nil {
		return fmt.Errorf("the store is damaged (%s); wf verify tells more: %w", damage, protocol.ErrCorrupt)
	}
	if err := c.reach(ctx, g, d); err != nil {
		return err
	}
	if n := len(packs); n > 0 {
		c.now = extent{packs[n-1].key, len(packs[n-1].sums)}
	}
	c.old = c.outlived(d)
	for _, p := range packs {
		gone := 0
		for i, sum := range p.sums {
			_, live := c.live[sum]
			switch {
			case live:
				r.Kept++
			case !c.old.holds(p.key, i):
				r.Young++
			default:
				gone++
				r.Removed++
				r.Bytes += int64(p.sizes[i])
			}
		}
		if p.blob && len(p.sums) > 0 {
			c.blobs[p.sums[0]] = gone == 0
		}
		if gone > 0 {
			c.dead = append(c.dead, p)
		}
	}
	return nil
}

// reach marks everything from the heads and the reflog on.
func (c *collector) reach(ctx context.Context, g *graph, d *storeEvidence) error {
	c.live = map[[32]byte]struct{}{}
	c.heads = map[string]protocol.Link{}
	for _, h := range d.heads {
		if err := c.head(ctx, g, h); err != nil {
			return err
		}
	}
	since := c.clock - reflogKept.Microseconds()
	for name, lines := range d.reflog {
		for _, m := range lines {
			n, ok := nameOf(m.New)
			if !ok || m.TS < since {
				continue
			}
			if _, err := g.get(ctx, n); errors.Is(err, protocol.ErrNotFound) {
				continue // collected when it was older than the reflog kept
			}
			if err := c.from(ctx, g, n, "reflog of "+name); err != nil {
				return err
			}
		}
	}
	return nil
}

// head marks what a head reaches.
func (c *collector) head(ctx context.Context, g *graph, h Head) error {
	n, ok := nameOf(h.Link)
	if !ok {
		return fmt.Errorf("head %s: %s is no block of this store: %w", h.Name, h.Link, protocol.ErrCorrupt)
	}
	c.heads[h.Name] = h.Link
	return c.from(ctx, g, n, "head "+h.Name)
}

func (c *collector) from(ctx context.Context, g *graph, root blockName, what string) error {
	for todo := []blockName{root}; len(todo) > 0; {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if _, done := c.live[n.sum]; done {
			continue
		}
		nd, err := g.get(ctx, n)
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("%s reaches block %s, which is missing or damaged; nothing was removed, wf verify tells more: %w: %w", what, n, protocol.ErrCorrupt, err)
		}
		c.live[n.sum] = struct{}{}
		for _, l := range nd.links {
			todo = append(todo, l.to)
		}
	}
	return nil
}
