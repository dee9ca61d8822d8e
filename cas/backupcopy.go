package cas

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"

	"wf/protocol"
)

// The packs of a store are read once, from the newest to the oldest, and copied as soon as a head is known to lead to them:
//
//	copy out of the store ─► unpack and hash ─► follow the links ─► write to a bundle
//
// each beside the others. Packs with blocks that something leads to only later are read a second time at the end.

// seenPart is a part of the packs, or a piece of one, on its way to a bundle.
type seenPart struct {
	last  *partOf // that is not used behind it, or nil
	packs []copiedPack
}

type copiedPack struct {
	entry
	sum     [32]byte
	content [32]byte
	blocks  []glimpse
	err     error
}

// copyDown copies the packs up to top that are known to be reached when they come.
func (b *backup) copyDown(ctx context.Context, top []byte) error {
	parts := b.packsDown(ctx, top)
	if !b.o.Gentle {
		parts = beside(parts)
	}
	seen := func(yield func(seenPart, error) bool) {
		for part, err := range parts {
			if err != nil {
				yield(seenPart{}, err)
				return
			}
			for piece := range b.pieces(part) {
				if !yield(b.look(piece), nil) {
					return
				}
			}
		}
	}
	if !b.o.Gentle {
		seen = beside(seen)
	}
	begun := time.Now()
	for part, err := range seen {
		if err != nil {
			return err
		}
		for i := range part.packs {
			if err := b.take(&part.packs[i]); err != nil {
				return err
			}
		}
		if err := b.later(ctx, b.copyTaken(part, b.packs[len(b.packs)-len(part.packs):])); err != nil {
			return err
		}
		b.rest(ctx, begun)
		b.progress(b.packs[len(b.packs)-len(part.packs):])
		begun = time.Now()
	}
	return nil
}

// take takes a pack into the graph, and decides whether it is copied now.
func (b *backup) take(p *copiedPack) error {
	if p.err != nil {
		return fmt.Errorf("the store is damaged (pack %s: %s); wf verify tells more: %w", packNumber(p.key), oneLine(p.err), protocol.ErrCorrupt)
	}
	it := backupPack{key: [packKeySize]byte(p.key), sum: p.sum, content: p.content, stored: len(p.value), blob: isBlob(p.value), blocks: b.graph.addAll(p.blocks)}
	it.taken = b.graph.live(it.blocks)
	b.packs = append(b.packs, it)
	return nil
}

// copyTaken copies those of a part that were taken.
func (b *backup) copyTaken(part seenPart, packs []backupPack) func() error {
	packs = slices.Clone(packs) // they are changed meanwhile
	return func() error {
		for i := range packs {
			if packs[i].taken {
				if err := b.copy(&packs[i], part.packs[i].value); err != nil {
					return err
				}
			}
		}
		b.freePart(part.last)
		if b.o.Gentle && b.bundle != nil { // what waits for the disk would hold up others all at once
			return b.bundle.settle()
		}
		return nil
	}
}

// copyLeft copies what was not known to be reached when it came.
func (b *backup) copyLeft(ctx context.Context) error {
	var left []*backupPack
	for i := range slices.Backward(b.packs) {
		if p := &b.packs[i]; !p.taken && b.graph.live(p.blocks) {
			left = append(left, p)
			b.of += int64(p.stored)
		}
	}
	begun := time.Now()
	for len(left) > 0 {
		part, err := b.copyOut(ctx, left)
		if err != nil {
			return err
		}
		for piece := range b.pieces(part) {
			seen := b.look(piece)
			packs := make([]backupPack, len(seen.packs))
			for i := range packs {
				if err := b.retake(left[i], &seen.packs[i]); err != nil {
					return err
				}
				packs[i] = *left[i]
			}
			if err := b.later(ctx, b.copyTaken(seen, packs)); err != nil {
				return err
			}
			left = left[len(packs):]
			b.rest(ctx, begun)
			b.progress(packs)
			begun = time.Now()
		}
	}
	return nil
}

// retake takes a pack that was read a second time. The newest may have grown since.
func (b *backup) retake(p *backupPack, now *copiedPack) error {
	err := now.err
	for i, id := range p.blocks {
		if err == nil && (i >= len(now.blocks) || now.blocks[i].name != b.graph.names[id]) {
			err = fmt.Errorf("block %d was another one before: %w", i+1, protocol.ErrCorrupt)
		}
	}
	if err != nil {
		return fmt.Errorf("the store is damaged (pack %s: %s); wf verify tells more: %w", packNumber(now.key), oneLine(err), protocol.ErrCorrupt)
	}
	p.sum, p.content, p.stored, p.taken = now.sum, now.content, len(now.value), true
	p.blocks = b.graph.addAll(now.blocks)
	return nil
}

// piece is what is worked on at a time: a part, or less of it in a gentle backup.
type piece struct {
	all  []entry
	last *partOf // its part, of the last piece
}

// A gentle backup copies more out of the store at a time, since a live run that had to give it up finds nothing of it in its memory
// afterwards, and works on less of that at a time. A blob file counts as a piece.
const (
	gentleBytes = 8 << 20
	gentlePiece = 256 << 10
)

func (b *backup) pieces(part *partOf) iter.Seq[piece] {
	return func(yield func(piece) bool) {
		rest := part.all
		for b.o.Gentle && len(rest) > 0 {
			n, size := 0, 0
			for ; n < len(rest) && size < gentlePiece; n++ {
				if size += len(rest[n].value); isBlob(rest[n].value) {
					size += gentlePiece
				}
			}
			if n == len(rest) {
				break
			}
			if !yield(piece{all: rest[:n]}) {
				return
			}
			rest = rest[n:]
		}
		yield(piece{rest, part})
	}
}

// isBlob reports whether a stored pack is in a file of its own.
func isBlob(stored []byte) bool { return len(stored) > 0 && stored[0] == packBlob }

// look hashes packs, and unpacks those that are not known; on all processors, but for a gentle backup.
func (b *backup) look(p piece) seenPart {
	out := make([]copiedPack, len(p.all))
	var next atomic.Int64
	var workers sync.WaitGroup
	processors := runtime.GOMAXPROCS(0)
	if b.o.Gentle {
		processors = 1
	}
	for range min(processors, len(out)) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(out); i = int(next.Add(1)) - 1 {
				out[i] = copiedPack{entry: p.all[i]}
				out[i].err = b.lookAt(&out[i])
			}
		})
	}
	workers.Wait()
	return seenPart{p.last, out}
}

func (b *backup) lookAt(p *copiedPack) error {
	p.sum = sha256.Sum256(p.value)
	p.content = p.sum
	stored, err := b.s.loaded(p.value)
	if errors.Is(err, errEmptied) {
		return nil // nothing reaches it; where something does, it is missing
	}
	if err != nil {
		return err
	}
	blob := isBlob(p.value)
	if blob {
		p.content = sha256.Sum256(stored)
	}
	if known, ok := b.links.of(p.content); ok && (!blob || len(known) == 1 && known[0].name == briefly(p.value[1:])) {
		p.blocks = known
		return nil
	}
	var digest [32]byte
	err = eachUnpacked(stored, func(u *unpacked) {
		digest = u.digest
		p.blocks = append(p.blocks, glimpseOf(u))
	})
	if err == nil {
		err = misplaced(p.value, len(p.blocks), digest)
	}
	return err
}

// glance reads the store. A gentle backup comes back only later, and keeps it from others no longer.
func (b *backup) glance(ctx context.Context, f func(*bolt.Tx) error) error {
	err := b.s.view(ctx, f)
	if b.o.Gentle {
		b.s.gate.yield()
	}
	return err
}

// packsDown gives the packs up to top from the newest to the oldest, in parts. The store is held while a part is copied.
func (b *backup) packsDown(ctx context.Context, top []byte) iter.Seq2[*partOf, error] {
	return func(yield func(*partOf, error) bool) {
		from, first := top, true
		for from != nil {
			part := b.newPart()
			err := b.glance(ctx, func(tx *bolt.Tx) error {
				part.begin()
				readAhead(tx)
				c := tx.Bucket(bucketBlocks).Cursor()
				k, v := c.Seek(from)
				if !first {
					k, v = c.Prev()
				}
				for ; k != nil && part.more(); k, v = c.Prev() {
					part.add(k, v)
				}
				return nil
			})
			if err == nil && len(part.all) == 0 {
				return
			}
			if first = false; err == nil {
				from = bytes.Clone(part.all[len(part.all)-1].key)
			}
			if !yield(part, err) || err != nil {
				return
			}
		}
	}
}

// copyOut copies the first of some packs out of the store.
func (b *backup) copyOut(ctx context.Context, packs []*backupPack) (*partOf, error) {
	part := b.newPart()
	err := b.glance(ctx, func(tx *bolt.Tx) error {
		part.begin()
		for all := tx.Bucket(bucketBlocks); len(part.all) < len(packs) && part.more(); {
			key := packs[len(part.all)].key[:]
			v := all.Get(key)
			if v == nil {
				return fmt.Errorf("pack %s is gone; wf verify tells more: %w", packNumber(key), protocol.ErrCorrupt)
			}
			part.add(key, v)
		}
		return nil
	})
	return part, err
}

// partOf is what is copied out of a bucket while the store is held.
type partOf struct {
	all   []entry
	most  int    // bytes, about
	buf   []byte // what the entries are in
	begun time.Time
}

// newPart gives a part that was freed before: the pages of new memory cost as much as what is copied there.
func (b *backup) newPart() *partOf {
	select {
	case p := <-b.idle:
		return p
	default:
		most := sliceBytes
		if b.o.Gentle {
			most = gentleBytes
		}
		return &partOf{most: most, buf: make([]byte, 0, most+2*inlineMax)}
	}
}

// freePart ends the use of the entries of a part.
func (b *backup) freePart(p *partOf) {
	if p == nil {
		return
	}
	select {
	case b.idle <- p:
	default:
	}
}

func (p *partOf) begin() { p.all, p.buf, p.begun = p.all[:0], p.buf[:0], time.Now() }

// more reports whether the store may be held for one more entry.
func (p *partOf) more() bool {
	return len(p.buf) < p.most && (len(p.all)%16 != 0 || time.Since(p.begun) < sliceTime || len(p.all) == 0)
}

func (p *partOf) add(k, v []byte) {
	at := len(p.buf)
	p.buf = append(append(p.buf, k...), v...)
	end := at + len(k)
	p.all = append(p.all, entry{p.buf[at:end:end], p.buf[end:len(p.buf):len(p.buf)]})
}

// beside makes what a sequence gives in a goroutine of its own, a part ahead.
func beside[T any](seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	type made struct {
		part T
		err  error
	}
	return func(yield func(T, error) bool) {
		out, stop := make(chan made, 1), make(chan struct{})
		var maker sync.WaitGroup
		maker.Go(func() {
			defer close(out)
			for part, err := range seq {
				select {
				case out <- made{part, err}:
				case <-stop:
					return
				}
			}
		})
		defer maker.Wait()
		defer close(stop)
		for m := range out {
			if !yield(m.part, m.err) {
				return
			}
		}
	}
}

// progress tells that these packs were read.
func (b *backup) progress(packs []backupPack) {
	for i := range packs {
		b.done += int64(packs[i].stored)
	}
	if b.o.Progress != nil {
		b.o.Progress(b.done, b.of)
	}
}

// listPacks writes which packs the backup has, in their order.
func (b *backup) listPacks() (err error) {
	var list []byte
	for _, p := range slices.Backward(b.packs) {
		if p.taken {
			list = append(list, p.sum[:]...)
			b.m.Bytes += int64(p.stored)
		}
	}
	b.m.Packs, err = b.list(list, len(list)/sha256.Size)
	return err
}
