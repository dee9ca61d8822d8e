package cas

import (
	"context"
	"crypto/sha256"
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

// seenPart is a part of the packs, in the way from one step to the next.
type seenPart []copiedPack

type copiedPack struct {
	entry
	sum     [32]byte
	content [32]byte
	blocks  []glimpse
	err     error
}

// copyDown copies the packs up to top that are known to be reached when they come.
func (b *backup) copyDown(ctx context.Context, top []byte) error {
	parts := b.s.packsDown(ctx, top)
	if !b.o.Gentle {
		parts = beside(parts)
	}
	seen := func(yield func(seenPart, error) bool) {
		for part, err := range parts {
			if !yield(b.look(part), err) {
				return
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
		for i := range part {
			if err := b.take(&part[i]); err != nil {
				return err
			}
		}
		if err := b.later(ctx, b.copyTaken(part, b.packs[len(b.packs)-len(part):])); err != nil {
			return err
		}
		b.rest(ctx, begun)
		begun = time.Now()
	}
	return nil
}

// take takes a pack into the graph, and decides whether it is copied now.
func (b *backup) take(p *copiedPack) error {
	if p.err != nil {
		return fmt.Errorf("the store is damaged (pack %s: %s); wf verify tells more: %w", packNumber(p.key), oneLine(p.err), protocol.ErrCorrupt)
	}
	it := backupPack{key: [packKeySize]byte(p.key), sum: p.sum, content: p.content, stored: len(p.value), blob: p.value[0] == packBlob, blocks: b.graph.addAll(p.blocks)}
	it.taken = b.graph.live(it.blocks)
	b.packs = append(b.packs, it)
	b.progress(int64(it.stored))
	return nil
}

// copyTaken copies those of a part that were taken.
func (b *backup) copyTaken(part seenPart, packs []backupPack) func() error {
	packs = slices.Clone(packs) // they are changed meanwhile
	return func() error {
		for i := range part {
			if packs[i].taken {
				if err := b.copy(&packs[i], part[i].value); err != nil {
					return err
				}
			}
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
		part, err := b.s.copyOut(ctx, left)
		if err != nil {
			return err
		}
		packs := make([]backupPack, len(part))
		seen := b.look(part)
		for i := range part {
			if err := b.retake(left[i], &seen[i]); err != nil {
				return err
			}
			packs[i] = *left[i]
		}
		if err := b.later(ctx, b.copyTaken(seen, packs)); err != nil {
			return err
		}
		left = left[len(part):]
		b.rest(ctx, begun)
		begun = time.Now()
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
	b.progress(int64(p.stored))
	return nil
}

// look hashes packs on all processors, and unpacks those that are not known.
func (b *backup) look(part []entry) seenPart {
	out := make(seenPart, len(part))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(part)) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(part); i = int(next.Add(1)) - 1 {
				out[i] = copiedPack{entry: part[i]}
				out[i].err = b.lookAt(&out[i])
			}
		})
	}
	workers.Wait()
	return out
}

func (b *backup) lookAt(p *copiedPack) error {
	p.sum = sha256.Sum256(p.value)
	p.content = p.sum
	stored, err := b.s.loaded(p.value)
	if err != nil {
		return err
	}
	blob := len(p.value) > 0 && p.value[0] == packBlob
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

// packsDown gives the packs up to top from the newest to the oldest, in parts. The store is held while a part is copied.
func (s *Store) packsDown(ctx context.Context, top []byte) iter.Seq2[[]entry, error] {
	return func(yield func([]entry, error) bool) {
		for from, first := top, true; from != nil; first = false {
			var part []entry
			err := s.view(ctx, func(tx *bolt.Tx) error {
				var copied partOf
				c := tx.Bucket(bucketBlocks).Cursor()
				k, v := c.Seek(from)
				if !first {
					k, v = c.Prev()
				}
				for ; k != nil && copied.more(); k, v = c.Prev() {
					copied.add(k, v)
				}
				part = copied.all
				return nil
			})
			if err != nil || len(part) > 0 {
				if !yield(part, err) || err != nil {
					return
				}
			}
			if from = nil; len(part) > 0 {
				from = part[len(part)-1].key
			}
		}
	}
}

// copyOut copies the first of some packs out of the store.
func (s *Store) copyOut(ctx context.Context, packs []*backupPack) (part []entry, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		var copied partOf
		for all := tx.Bucket(bucketBlocks); len(copied.all) < len(packs) && copied.more(); {
			key := packs[len(copied.all)].key[:]
			v := all.Get(key)
			if v == nil {
				return fmt.Errorf("pack %s is gone; wf verify tells more: %w", packNumber(key), protocol.ErrCorrupt)
			}
			copied.add(key, v)
		}
		part = copied.all
		return nil
	})
	return part, err
}

// partOf is what is copied out of a bucket while the store is held.
type partOf struct {
	all   []entry
	buf   []byte // what the entries are in
	size  int
	begun time.Time
}

// more reports whether the store may be held for one more entry.
func (p *partOf) more() bool {
	if p.all == nil {
		p.begun, p.buf = time.Now(), make([]byte, 0, sliceBytes)
		return true
	}
	return p.size < sliceBytes && (len(p.all)%16 != 0 || time.Since(p.begun) < sliceTime)
}

func (p *partOf) add(k, v []byte) {
	if n := len(k) + len(v); cap(p.buf)-len(p.buf) < n {
		p.buf = make([]byte, 0, max(n, sliceBytes/8))
	}
	at := len(p.buf)
	p.buf = append(append(p.buf, k...), v...)
	end := at + len(k)
	p.all = append(p.all, entry{p.buf[at:end:end], p.buf[end:len(p.buf):len(p.buf)]})
	p.size += len(k) + len(v)
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

func (b *backup) progress(n int64) {
	b.done += n
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
