package words

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"sync"

	"wf/protocol"
)

// A view is the index at a moment. It does not change.
type view struct {
	segs  []*segment
	stamp string                   // of the shelf, as it was read
	parts [spread]map[string]known // by what the id of a unit hashes to
	runs  int                      // units that are runs

	once sync.Once // what belongs together is found with the first search
	ids  map[string]int
	nums [][]int    // by segment: the numbers of its units
	of   []*unit    // by number, as ids has it
	in   [][]spot   // by number: where its parts are
	from [][]source // what counts as said in each besides its own texts
}

// A spot is where a part of a unit lies: the numbers of a segment of a view, and of a unit of the segment.
type spot struct{ seg, unit int }

// spread is into how many maps the units are divided, so that a change copies few of them.
const spread = 1024

var spreadSeed = maphash.MakeSeed()

func spreadOf(id string) uint64 { return maphash.String(spreadSeed, id) % spread }

// known is what segments have of a unit.
type known struct {
	*unit              // as it is indexed last
	parts int          // in how many segments it is
	first int          // how many of these have its beginning
	sum   protocol.Seq // the events that they have
}

// unit is a unit as it is indexed last; nil for one that is not.
func (v *view) unit(id string) *unit { return v.parts[spreadOf(id)][id].unit }

// all yields the units.
func (v *view) all() iter.Seq[*unit] {
	return func(yield func(*unit) bool) {
		for i := range v.parts {
			for _, k := range v.parts[i] {
				if !yield(k.unit) {
					return
				}
			}
		}
	}
}

// begin is the event behind which a unit has texts of its own.
func (u *unit) begin() protocol.Seq {
	if u.base == "" {
		return 0
	}
	return u.shared
}

// with is the view with other segments. What it costs grows with the units of those that differ. A view with a hole is an error wrapping
// errDamaged.
func (v *view) with(segs []*segment) (*view, error) {
	next := &view{segs: segs, parts: v.parts, runs: v.runs}
	added := make(map[*segment]bool, len(segs))
	for _, s := range segs {
		added[s] = true
	}
	own := map[uint64]bool{} // the maps that are not shared with v
	touched := map[string]bool{}
	change := func(u *unit, by func(*known) error) error {
		i := spreadOf(u.id)
		if !own[i] {
			own[i] = true
			if next.parts[i] = maps.Clone(next.parts[i]); next.parts[i] == nil {
				next.parts[i] = map[string]known{}
			}
		}
		touched[u.id] = true
		k := next.parts[i][u.id]
		err := by(&k)
		next.parts[i][u.id] = k
		return err
	}
	count := func(k *known, u *unit, n int) {
		if k.parts += n; u.from == u.begin() {
			k.first += n
		}
		k.sum += protocol.Seq(n) * (u.seq - u.from)
	}
	for _, s := range v.segs {
		if added[s] {
			delete(added, s)
			continue
		}
		for i := range s.units {
			_ = change(&s.units[i], func(k *known) error { count(k, &s.units[i], -1); return nil })
		}
	}
	for _, s := range segs {
		if !added[s] {
			continue
		}
		for i := range s.units {
			u := &s.units[i]
			if err := change(u, func(k *known) error {
				if count(k, u, 1); k.unit == nil || k.seq <= u.seq {
					k.unit = u
				}
				if u.from < u.begin() {
					return fmt.Errorf("the beginning of %s is %w", u.id, errDamaged)
				}
				return nil
			}); err != nil {
				return nil, err
			}
		}
	}
	gone := false
	for id := range touched {
		part := next.parts[spreadOf(id)]
		k, had := part[id], v.unit(id) != nil
		if k.parts == 0 {
			delete(part, id)
			gone = true
		} else if k.first < 1 || k.sum != k.seq-k.begin() {
			return nil, fmt.Errorf("the parts of %s are %w", id, errDamaged)
		}
		if has := k.parts > 0; k.run() != "" && has != had {
			if next.runs++; had {
				next.runs -= 2
			}
		}
	}
	based := func(u *unit) error {
		if u.base != "" && next.at(u.base) < u.shared {
			return fmt.Errorf("what %s shares with %s is %w", u.id, u.base, errDamaged)
		}
		return nil
	}
	if gone { // others may have built on it
		for u := range next.all() {
			if err := based(u); err != nil {
				return nil, err
			}
		}
		return next, nil
	}
	for id := range touched {
		if err := based(next.unit(id)); err != nil {
			return nil, err
		}
	}
	return next, nil
}

// at is how far a unit is indexed.
func (v *view) at(id string) protocol.Seq {
	if u := v.unit(id); u != nil {
		return u.seq
	}
	return 0
}

// below are some units, those that build on them, and the definitions that nothing else has.
func (v *view) below(ids []string) map[string]bool {
	drop := map[string]bool{}
	for _, id := range ids {
		if v.unit(id) != nil {
			drop[id] = true
		}
	}
	for more := len(drop) > 0; more; {
		more = false
		for u := range v.all() {
			if !drop[u.id] && u.base != "" && drop[u.base] {
				drop[u.id], more = true, true
			}
		}
	}
	if len(drop) == 0 {
		return drop
	}
	needed := map[string]bool{}
	for u := range v.all() {
		if !drop[u.id] {
			for _, d := range u.defs {
				needed[d] = true
			}
		}
	}
	for u := range v.all() {
		if u.run() == "" && !needed[u.id] {
			drop[u.id] = true
		}
	}
	return drop
}

// Refresh looks whether another process has changed the index. Where it cannot be read, what is known of it stays: CatchUp and Find say why.
func (x *Index) Refresh(ctx context.Context) { _, _ = x.refresh(ctx) }

// refresh reads the index again where another process has changed it. What is damaged counts as nothing, and the next commit
// puts another in its place. An error is one of the machine: what was known before still holds.
func (x *Index) refresh(ctx context.Context) (*view, error) {
	x.reads.Lock()
	defer x.reads.Unlock()
	for {
		now, err := x.shelf.stamp(ctx)
		x.mu.Lock()
		at, had, ignore := x.at, x.segs, x.ignore
		x.mu.Unlock()
		if err == nil && now == at.stamp {
			return at, nil
		}
		var segs []*segment
		if err == nil && !ignore {
			segs, err = x.load(ctx, had)
		}
		if errors.Is(err, fs.ErrNotExist) {
			if again, err := x.shelf.stamp(ctx); err == nil && again != now {
				continue // a segment was removed since the manifest was read
			}
		}
		if err != nil && !damage(err) {
			return at, fmt.Errorf("read the index for searches, which can be removed (%s): %w", x.shelf, err)
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.hold(segs, now), nil
	}
}

// hold takes segments for what is on the shelf, and goes on with those in memory where the two belong together. mu is held.
func (x *Index) hold(segs []*segment, stamp string) *view {
	v, err := x.at.with(append(slices.Clone(segs), x.memory...))
	if err != nil && len(segs) > 0 { // another process has indexed the same
		if v, err = x.at.with(segs); err == nil {
			x.memory = nil
		}
	}
	if err != nil {
		segs = nil
		v, err = x.at.with(x.memory)
	}
	if err != nil {
		x.memory, v = nil, &view{}
	}
	v.stamp = stamp
	x.at, x.segs = v, segs
	return v
}

// load reads the segments that count; those that are known already are not read again.
func (x *Index) load(ctx context.Context, known []*segment) ([]*segment, error) {
	names, err := x.shelf.names(ctx)
	if err != nil {
		return nil, err
	}
	had := make(map[string]*segment, len(known))
	for _, s := range known {
		had[s.name] = s
	}
	out := make([]*segment, len(names))
	var missing []string
	var at []int
	for i, name := range names {
		if out[i] = had[name]; out[i] == nil {
			missing, at = append(missing, name), append(at, i)
		}
	}
	err = x.shelf.read(ctx, missing, func(int) []part { return []part{{0, headFirst}} }, func(i int, r io.ReaderAt) error {
		s, err := readSegment(r, x.key())
		if err != nil {
			return fmt.Errorf("segment %s: %w", missing[i], err)
		}
		s.name, out[at[i]] = missing[i], s
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// read has each read segments, those in memory too, one after another; wanted are the parts that it will read.
func (x *Index) read(ctx context.Context, segs []*segment, wanted func(*segment) []part, each func(i int, r io.ReaderAt) error) error {
	var names []string
	var at []int
	for i, s := range segs {
		if s.memo == nil {
			names, at = append(names, s.name), append(at, i)
		} else if err := each(i, bytes.NewReader(s.memo)); err != nil {
			return err
		}
	}
	return x.shelf.read(ctx, names, func(i int) []part { return wanted(segs[at[i]]) }, func(i int, r io.ReaderAt) error { return each(at[i], r) })
}
