package cas

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"

	"wf/protocol"
)

// Batch is what one Commit makes durable, all of it or nothing.
type Batch struct {
	Blocks  []Block // as made by Raw, Encode or Payload; stored once however often given
	Moves   []Move
	Derived []Derived
	Deletes []Deletion
	Drops   []string // heads of no journal that go, wherever they are
	Fence   Fence    // the zero Fence for a batch that is written under no claim
	Runs    []Standing
}

// Move sets a head, if it still is where the writer last saw it.
type Move struct {
	Name     string
	Old, New protocol.Link // null Old: there is no such head yet
	// Events are the events of a journal that come with the move, in order; New is the last.
	// Empty for a head that is no journal.
	Events []EventRef
	Note   string // for the reflog
	TS     int64  // unix µs; 0 is now
	// Base is the run that a new fork shares the events up to Events[0].Seq−1 with; it must be there.
	Base protocol.RunID
	// Root is, of a new journal that is written under no claim, the run whose tree of runs it is a part of; "" is itself. A directory, where each run is
	// claimed for itself, ignores it.
	Root protocol.RunID
}

// EventRef is the place of an event and its name.
type EventRef struct {
	Seq protocol.Seq
	CID protocol.Link
}

// maxGroup bounds the batches of one transaction, and with it the time it holds the store.
const maxGroup = 512

// queue is the batches that wait for the next transaction.
type queue struct {
	mu      sync.Mutex
	waiting []*request
	running bool
	leave   context.CancelFunc // ends the wait of the committer for the store; nil while it does not wait
	crowded bool               // the last transaction held several batches: it pays to wait for the others
	closed  bool
	idle    sync.WaitGroup
	recent  recent
}

// request is a Batch, made ready by its caller so that the committer only writes.
type request struct {
	packs   []packed
	moves   []Move
	derived []Derived
	deletes []Deletion
	drops   []string
	err     error // refused; the rest of the transaction goes on
	done    chan error
}

// packed is a pack with its stored form; nil for one that is probably there already, and for one
// of small blocks that the committer packs with those of other batches.
type packed struct {
	blocks []Block
	stored []byte
}

// Commit writes a batch in one transaction, together with whatever other goroutines commit at
// that moment. When it returns nil, all of it is on disk.
//
// It returns an error wrapping ErrFenced for a batch with a Fence; ErrHeadMoved when a head is not at its Old; ErrRunDeleted for a head of a run
// that was deleted; ErrCorrupt for a block that is not what its link says; ErrDiskFull, ErrReadOnly, ErrBusy. Nothing of the
// batch is stored then. When ctx ends while the batch still queues, nothing is stored either
// and the cause is returned; once it is being written the outcome is awaited.
func (s *Store) Commit(ctx context.Context, b Batch) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, d := range b.Deletes {
		b.Blocks = append(b.Blocks[:len(b.Blocks):len(b.Blocks)], d.tombstone)
	}
	packs, err := s.prepare(b.Blocks)
	if err != nil {
		return err
	}
	return s.commit(ctx, b, packs)
}

// Ready packs the blocks of a batch; see Backing.
func (s *Store) Ready(blocks []Block) (commit func(context.Context, Batch) error, err error) {
	packs, err := s.prepare(blocks)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, b Batch) error { return s.commit(ctx, b, packs) }, nil
}

// commit is Commit with the blocks packed.
func (s *Store) commit(ctx context.Context, b Batch, packs []packed) (err error) {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if b.Fence != (Fence{}) { // the lock of a run is the kernel's here
		return fmt.Errorf("commit under the claim of run %s: %s gave no such claim: %w", b.Fence.Root, s.gate.dir, protocol.ErrFenced)
	}
	done := s.Measure(OpBatch)
	defer func() { done(err) }()
	r := &request{packs: packs, moves: b.Moves, derived: b.Derived, deletes: b.Deletes, drops: b.Drops, done: make(chan error, 1)}
	h, err := s.enqueue(r)
	if err != nil {
		return err
	}
	if h != nil {
		s.writeGroup(h, []*request{r})
		if !s.queue.ended() {
			s.queue.idle.Go(s.drain)
		}
		s.queue.idle.Done()
	}
	select {
	case err = <-r.done:
	case <-ctx.Done():
		if s.queue.withdraw(r) {
			return context.Cause(ctx)
		}
		err = <-r.done
	}
	if err == nil {
		s.queue.recent.add(b.Blocks)
	}
	return err
}

// enqueue has r written by the committer. Where there is none and the store is open, h is not nil,
// and the caller is the committer for this one batch.
func (s *Store) enqueue(r *request) (h *holding, err error) {
	q := &s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, fmt.Errorf("%s: %w", s.gate.dir, errClosed)
	}
	if !q.running && !q.crowded {
		if h = s.gate.join(); h != nil {
			q.running = true
			q.idle.Add(1)
			return h, nil
		}
	}
	q.waiting = append(q.waiting, r)
	if !q.running {
		q.running = true
		q.idle.Go(s.drain)
	}
	return nil, nil
}

func (q *queue) withdraw(r *request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, r)
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		if len(q.waiting) == 0 && q.leave != nil {
			q.leave()
		}
	}
	return i >= 0
}

// awaited is a context for the committer's wait for the store, which ends when no batch waits any more.
func (q *queue) awaited() context.Context {
	q.mu.Lock()
	defer q.mu.Unlock()
	ctx, leave := context.WithCancel(context.Background())
	q.leave = leave
	if len(q.waiting) == 0 {
		leave()
	}
	return ctx
}

// take gives what waits.
func (q *queue) take(limit int) []*request {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.waiting), limit)
	out := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	q.crowded = n > 1
	if q.leave != nil {
		q.leave()
		q.leave = nil
	}
	return out
}

func (q *queue) isCrowded() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.crowded
}

// ended ends the committer where nothing waits; else the caller goes on as the committer, or starts one.
func (q *queue) ended() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running = len(q.waiting) > 0
	return !q.running
}

// finish waits for the batches under way and refuses later ones.
func (q *queue) finish() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.idle.Wait()
}

// drain is the committer: one transaction for all that wait, until none does.
func (s *Store) drain() {
	for !s.queue.ended() {
		ctx := s.queue.awaited()
		h, err := s.gate.enter(ctx, true)
		if err != nil && ctx.Err() != nil {
			continue // the callers left; others may have come since
		}
		if err != nil {
			for _, r := range s.queue.take(1 << 30) {
				r.done <- err
			}
			continue
		}
		group := s.queue.take(maxGroup)
		if len(group) == 0 { // their callers left
			s.gate.leave(h, false)
			continue
		}
		s.writeGroup(h, group)
		runtime.Gosched() // the callers of the written batches come with the next ones
	}
}

// writeGroup is one transaction for several batches. It leaves h. Where derived values cannot
// be written the batches are, in a transaction without them.
func (s *Store) writeGroup(h *holding, group []*request) {
	ctx, renewals := context.Background(), s.renewals.Load()
	err := s.writeOnce(h, group, true)
	again := func(derived bool) {
		if h, err = s.gate.enter(ctx, true); err == nil {
			err = s.writeOnce(h, group, derived)
		}
	}
	if _, ok := errors.AsType[*derivedLost](err); ok {
		s.warn(err)
		again(false)
	}
	if s.healed(ctx, err, renewals) {
		again(true)
	}
	for _, r := range group {
		r.done <- cmp.Or(r.err, err)
	}
	s.moved.signal()
}

// writeOnce is one try of a transaction, with what is derived or without. It leaves h.
func (s *Store) writeOnce(h *holding, group []*request, derived bool) error {
	return s.write(h, func(tx *bolt.Tx) error {
		lk := s.newLookup(tx)
		lk.alone = len(group) == 1
		before := len(lk.late)
		if before > lateMax {
			lk.faint = sketchOf(lk.late)
		}
		for _, r := range group {
			r.err = nil
			if err := s.apply(tx, lk, r); err != nil {
				return classify(err)
			}
		}
		if err := s.putGathered(lk); err != nil {
			return classify(err)
		}
		if err := lk.keepLate(before, lateRoom(before, len(lk.late))); err != nil || !derived {
			return classify(err)
		}
		for _, r := range group {
			if err := s.putDerived(tx, r); err != nil {
				return err
			}
		}
		return nil
	})
}

// apply writes one batch but for what is derived. An error of the batch alone goes to r.err.
func (s *Store) apply(tx *bolt.Tx, lk *lookup, r *request) error {
	heads := make([]Head, len(r.moves))
	for i, m := range r.moves {
		h, err := s.readHead(tx, m.Name)
		if err != nil {
			r.err = err
			return nil
		}
		if !h.Link.Defined() {
			if r.err = s.deleted(tx, lk, m.Name); r.err != nil {
				return nil
			}
		}
		if h.Link != m.Old {
			r.err = fmt.Errorf("commit to %s: its head is %s, not %s: %w", m.Name, orNone(h.Link), orNone(m.Old), protocol.ErrHeadMoved)
			return nil
		}
		if r.err = s.forkable(tx, lk, m); r.err != nil {
			return nil
		}
		heads[i] = h
	}
	if r.err = s.deletable(tx, lk, r.deletes); r.err != nil {
		return nil
	}
	if err := s.opts.before(OpApply); err != nil {
		return err
	}
	lk.packs.FillPercent = 1 // keys only ever grow
	for _, p := range r.packs {
		if p.stored == nil && !lk.alone && len(p.blocks[0].Data) <= smallBlock {
			lk.gather(p.blocks)
			continue
		}
		if err := s.putPack(lk, p); err != nil {
			return err
		}
	}
	for i, m := range r.moves {
		if m.TS == 0 {
			m.TS = s.now()
		}
		if err := moveHead(tx, heads[i], m); err != nil {
			return err
		}
	}
	for _, d := range r.deletes {
		if err := s.bury(tx, lk, d); err != nil {
			return err
		}
	}
	for _, name := range r.drops {
		if err := dropHead(tx, name); err != nil {
			return err
		}
	}
	return nil
}

// forkable refuses a fork of a run that was deleted since it was read: a collection may have removed its events.
func (s *Store) forkable(tx *bolt.Tx, lk *lookup, m Move) error {
	if m.Base == "" {
		return nil
	}
	base := protocol.RunHead(m.Base)
	h, err := s.readHead(tx, base)
	if err == nil && !h.Link.Defined() {
		err = s.absent(tx, lk, base)
	}
	return err
}

func orNone(l protocol.Link) string {
	if !l.Defined() {
		return "none"
	}
	return l.String()
}

func (s *Store) now() int64 {
	if s.opts.Now != nil {
		return s.opts.Now()
	}
	return time.Now().UnixMicro()
}

// putPack stores the blocks of p that are not there yet; keepLate is to follow.
func (s *Store) putPack(lk *lookup, p packed) error {
	fresh := p.blocks
	if slices.ContainsFunc(p.blocks, lk.present) {
		fresh = slices.DeleteFunc(slices.Clone(p.blocks), lk.present)
		p.stored = nil
	}
	if len(fresh) == 0 {
		return nil
	}
	if p.stored == nil || !s.blobThere(p.stored) {
		var err error
		if p.stored, err = s.stored(fresh); err != nil {
			return err
		}
	}
	return s.put(lk, packed{fresh, p.stored})
}

// put stores a pack of blocks that are not there yet.
func (s *Store) put(lk *lookup, p packed) error {
	key, first, err := lk.room(len(p.blocks), &p.stored)
	if err != nil {
		return err
	}
	if err := lk.packs.Put(key, p.stored); err != nil {
		return err
	}
	lk.late = slices.Grow(lk.late, len(p.blocks)*lateSize)
	for i, b := range p.blocks {
		lk.late = noteLate(lk.late, sumOf(b.Link), key, first+i)
		if lk.faint != nil {
			lk.faint.add(lk.late[len(lk.late)-lateSize:])
		}
	}
	return nil
}

// room finds the pack for n more blocks: the newest, with its segments put before those of
// stored, or a new one. first is the place of the first of the blocks. Where only one batch is
// written there is time to make more room in it.
func (lk *lookup) room(n int, stored *[]byte) (key []byte, first int, err error) {
	last := packKey(lk.packs.Sequence())
	v := lk.packs.Get(last)
	inline := len(v) > 0 && v[0] != packBlob && (*stored)[0] != packBlob
	if inline && lk.alone && len(v) <= packRoom && len(v)+len(*stored) > packRoom {
		v = tightened(v)
	}
	if inline && len(v)+len(*stored) <= packRoom {
		if segs, err := segments(v); err == nil {
			end := segs[len(segs)-1]
			if first = end.first + end.count; first+n <= packBlocks {
				*stored = append(append(make([]byte, 0, len(v)+len(*stored)), v...), *stored...)
				delete(lk.held, [packKeySize]byte(last))
				return last, first, nil
			}
		}
	}
	seq, err := lk.packs.NextSequence()
	return packKey(seq), 0, err
}

// present reports whether a block is stored undamaged; a damaged one is stored again.
func (lk *lookup) present(b Block) bool {
	digest := sumOf(b.Link)
	for _, p := range lk.places(digest) {
		if u, err := lk.at(p); err == nil && string(u.digest[:]) == digest {
			return true
		}
	}
	return false
}
