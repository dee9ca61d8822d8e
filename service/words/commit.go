package words

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"wf/protocol"
)

// Sizes of segments. Small ones are joined eightfold, so that each text is written a few times alone; large ones stay, so that
// a purge writes little.
const (
	joinMany = 8
	joinFrom = 8 << 10
	joinUpTo = 512 << 10

	joinAtOnce = 2 * joinMany // of them make one that can be read: segMost

	headsMany = 32 // units from which heads are listed at once
)

// commit adds what a builder has, and drops units with what builds on them. Where another process writes until wait ends, what is added is kept
// in memory, and to drop something is an error wrapping errWaits. The caller has the turn.
func (x *Index) commit(ctx, wait context.Context, b *builder, drop []string) error {
	for {
		if err := x.commitOnce(ctx, wait, b, drop); !errors.Is(err, errMoved) {
			return err
		}
	}
}

// commitOnce is commit; errMoved is that another process was faster.
func (x *Index) commitOnce(ctx, wait context.Context, b *builder, drop []string) error {
	unlock, err := x.shelf.lock(wait)
	writes := err == nil
	if writes {
		defer unlock()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !writes && wait.Err() != nil && len(drop) > 0 { // what is on the shelf changes meanwhile
		return errWaits
	}
	v, failed := x.refresh(ctx) // what other processes wrote before
	if failed != nil {
		return failed
	}
	gone := v.below(drop)
	segs := slices.Clone(v.segs)
	if b != nil {
		s, err := x.fitting(ctx, b, v)
		if err != nil {
			return err
		}
		if s != nil {
			segs = append(segs, s)
		}
	}
	segs, bad := x.without(ctx, segs, gone)
	if bad == nil {
		segs, bad = x.joined(ctx, segs, writes)
	}
	if bad != nil && !damage(bad) {
		return bad
	}
	if bad != nil { // all of it is indexed again, unless another process has replaced a segment
		if now, err := x.refresh(ctx); err != nil || now != v {
			return cmp.Or(err, errMoved)
		}
		x.discard()
		segs = nil
	}
	x.mu.Lock()
	same := len(segs) > 0 && len(x.memory) == 0 && slices.Equal(segs, v.segs)
	x.mu.Unlock()
	if same { // another process has done it
		return nil
	}
	stamp := v.stamp
	if writes {
		var own []*segment
		var now string
		if own, now, err = x.write(ctx, v.stamp, segs); err == nil {
			segs, stamp = own, now
		}
		if errors.Is(err, errMoved) {
			return cmp.Or(context.Cause(ctx), err)
		}
	}
	x.reads.Lock() // one that has begun to read does not put what it finds in the place of this
	defer x.reads.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.memory = nil
	var own []*segment
	for _, s := range segs {
		if s.memo != nil { // what cannot be written is kept in memory
			x.memory = append(x.memory, s)
		} else {
			own = append(own, s)
		}
	}
	x.hold(own, stamp)
	if err == nil {
		x.ignore = false
	}
	unread := !slices.ContainsFunc(v.segs, func(s *segment) bool { return s.memo == nil }) // what is on the shelf is not known
	if err != nil && (len(gone) > 0 || len(drop) > 0 && unread) && x.shelf.exists(ctx) {
		return fmt.Errorf("%w: %w", errKept, err)
	}
	return nil
}

// errWaits is that another process writes, and nothing is dropped.
var errWaits = errors.New("another process writes to the index")

// errKept is a file that still holds what was dropped.
var errKept = errors.New("the index cannot be written")

// write puts the segments that are in memory on the shelf, has these alone count, and gives them as they lie there.
func (x *Index) write(ctx context.Context, since string, segs []*segment) (own []*segment, stamp string, err error) {
	var names, puts []string
	for _, s := range segs {
		if s.memo != nil {
			put := *s // others may read this one
			if put.name, err = x.shelf.put(ctx, s.memo); err != nil {
				break
			}
			puts = append(puts, put.name)
			put.memo, s = nil, &put
		}
		own, names = append(own, s), append(names, s.name)
	}
	if err == nil {
		stamp, err = x.shelf.count(ctx, since, names)
	}
	if err != nil {
		if x.Shared() && !errors.Is(err, errMoved) { // they may count after all; else the next count removes them
			return nil, "", err
		}
		for _, name := range puts { // a disk that is full has no room for them, and words of runs that were deleted meanwhile may be in them
			err = errors.Join(err, x.shelf.drop(ctx, name))
		}
		return nil, "", err
	}
	return own, stamp, nil
}

// fitting is what a builder has, as a segment, without what another process has indexed meanwhile and without runs that were deleted;
// nil where nothing is left.
func (x *Index) fitting(ctx context.Context, b *builder, v *view) (*segment, error) {
	deleted, err := x.deleted(ctx, b)
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for more := true; more; {
		more = false
		for i := range b.units {
			u := &b.units[i]
			base := u.base != "" && v.unit(u.id) == nil && v.at(u.base) < u.shared && (b.unit(u.base) == nil || out[u.base])
			at := v.at(u.id)
			if v.unit(u.id) == nil {
				at = u.shared
			}
			if !out[u.id] && (deleted[u.id] || base || u.from != at) {
				out[u.id], more = true, true
			}
		}
	}
	s, err := x.memorize(b)
	if err != nil || len(out) == 0 {
		return s, err
	}
	left, err := x.without(ctx, []*segment{s}, out)
	if err != nil || len(left) == 0 {
		return nil, err
	}
	return left[0], nil
}

// deleted are the runs of a builder that are gone.
func (x *Index) deleted(ctx context.Context, b *builder) (map[string]bool, error) {
	out := map[string]bool{}
	if len(b.units) > headsMany {
		heads, err := x.store.Heads(ctx, protocol.RunHead(""))
		if err != nil {
			return nil, err
		}
		there := make(map[string]bool, len(heads))
		for _, h := range heads {
			there[string(protocol.RunOf(h.Name))] = true
		}
		for i := range b.units {
			if u := &b.units[i]; u.run() != "" && !there[u.id] {
				out[u.id] = true
			}
		}
		return out, nil
	}
	for i := range b.units {
		if u := &b.units[i]; u.run() != "" {
			h, err := x.store.Head(ctx, protocol.RunHead(u.run()))
			if err != nil {
				return nil, err
			}
			if !h.Link.Defined() {
				out[u.id] = true
			}
		}
	}
	return out, nil
}

// memorize makes a segment in memory.
func (x *Index) memorize(b *builder) (*segment, error) {
	memo := b.encode(x.key())
	read, err := readSegment(bytes.NewReader(memo), x.key())
	if err != nil {
		return nil, err
	}
	read.memo = memo
	return read, nil
}

// without are segments in which units are dropped: those that hold some of them are made again.
func (x *Index) without(ctx context.Context, segs []*segment, drop map[string]bool) ([]*segment, error) {
	if len(drop) == 0 {
		return segs, nil
	}
	var out []*segment
	for _, s := range segs {
		if !slices.ContainsFunc(s.units, func(u unit) bool { return drop[u.id] }) {
			out = append(out, s)
			continue
		}
		made, err := x.made(ctx, []*segment{s}, drop)
		if err != nil {
			return nil, err
		}
		if made != nil {
			out = append(out, made)
		}
	}
	return out, nil
}

// joined are segments of which there are not too many small ones. Where nothing is written, those in memory are joined alone.
func (x *Index) joined(ctx context.Context, segs []*segment, writes bool) ([]*segment, error) {
	for most := joinFrom; most <= joinUpTo; most *= joinMany {
		var small, rest []*segment
		for _, s := range segs {
			if s.size < most && (writes || s.memo != nil) && len(small) < joinAtOnce {
				small = append(small, s)
			} else {
				rest = append(rest, s)
			}
		}
		if len(small) < joinMany {
			continue
		}
		made, err := x.made(ctx, small, nil)
		if err != nil {
			return nil, err
		}
		segs = append(rest, made)
	}
	return segs, nil
}

// made is one segment in memory of some, without the units that are dropped; nil where none is left.
func (x *Index) made(ctx context.Context, segs []*segment, drop map[string]bool) (*segment, error) {
	var b builder
	if err := b.merge(segs, drop, func(each func(int, io.ReaderAt) error) error {
		return x.read(ctx, segs, func(s *segment) []part { return []part{{0, s.size}} }, each)
	}); err != nil || len(b.units) == 0 {
		return nil, err
	}
	return x.memorize(&b)
}

// discard has what is on the shelf count as nothing; the next commit removes it.
func (x *Index) discard() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ignore, x.memory = true, nil
	x.hold(nil, x.at.stamp)
}

// A purge is asked for by several at once.
type purge struct {
	ids  []string
	done bool
	err  error
}

// Purge drops what is indexed of runs that were deleted. When it returns nil none of their words is in the index of this
// machine, or of its database: it waits for another process that writes to it.
func (x *Index) Purge(ctx context.Context, runs []protocol.RunID) error {
	there := x.shelf.exists(ctx)
	x.mu.Lock()
	if !there && len(x.memory) == 0 {
		x.mu.Unlock()
		return nil
	}
	if x.purges == nil {
		x.purges = &purge{}
	}
	p := x.purges
	for _, run := range runs {
		p.ids = append(p.ids, string(run))
		delete(x.loose, run)
	}
	x.mu.Unlock()
	if err := x.take(ctx); err != nil {
		return err
	}
	defer x.give()
	if p.done { // by one that was before
		return p.err
	}
	x.mu.Lock()
	x.purges = nil
	x.mu.Unlock()
	p.done, p.err = true, x.commit(ctx, ctx, nil, p.ids)
	if errors.Is(p.err, errKept) {
		if gone := x.shelf.remove(ctx); gone == nil {
			p.err = nil
			x.discard()
		}
	}
	if p.err != nil {
		p.err = fmt.Errorf("remove %s, which has words of them: %w", x.shelf, p.err)
	}
	return p.err
}
