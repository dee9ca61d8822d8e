package pgstore

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"wf/cas"
	"wf/protocol"
)

// What a row of a batch does to a head.
const (
	moves  = iota // from old to new
	buries        // from old to none, for good
	drops         // to none, from wherever
	shares        // nothing: it must be there, as a fork reads its events
	guards        // nothing: it has the token of the claim, or is locked for what is noted of its run
	stands        // nothing: it must be where the standing of its run follows from
)

// row is what a batch asks of a head.
type row struct {
	kind     int32
	name     string
	old, new []byte // nil: none
	seq      int64  // of new; 0 for a head that is no journal
	ts       int64
	note     string
	base     string // of a fork: the head that it shares events with, up to shared
	shared   int64
	root     string // of a new run of a sub-workflow, where no claim says it: the head of the run that its tree is claimed by
	moved    int32  // how many events the move has
	events   []byte // digests of the events of the move but the last, where they do not lie in data
	line            // what lies in its line of the reflog
}

// writes reports whether a row changes its head.
func (x row) writes() bool { return x.kind < shares }

// alone reports whether a group has a row at most once for its head.
func (x row) alone() bool { return x.writes() || x.kind == stands }

// request is a batch, made ready by its caller.
type request struct {
	blocks  []block
	rows    []row
	derived []value
	runs    []cas.Standing
	fence   cas.Fence
	small   []protocol.Link // of the blocks, and of those in lines
	names   []string        // of all rows, and of the root of the fence
	size    int             // bytes of blocks

	done chan error
	held chan struct{} // closed when its outcome may take long: the database is lost

	mu   sync.Mutex
	sent bool // it may be stored
	left bool // its caller is gone, and it was not sent
	slow bool // held is closed
}

// block is one with a row of its own, or a small one, whose stored form is made once it is known where it lies.
type block struct {
	cid, data []byte
	small     *cas.Block
}

type value struct {
	key  string
	data []byte // nil removes it
	run  string // the head of the run that it belongs to, or ""
}

// blocksOf checks blocks and compresses them.
func blocksOf(all []cas.Block) ([]block, error) {
	out := make([]block, 0, len(all))
	seen := make(map[protocol.Link]bool, len(all))
	for _, b := range all {
		if seen[b.Link] {
			continue
		}
		seen[b.Link] = true
		if err := cas.Admit(b); err != nil {
			return nil, fmt.Errorf("commit: %w", err)
		}
		x := block{cid: b.Link.Bytes()}
		if isSmall(b) {
			x.small = &b
		} else {
			x.data = cas.PackBlock(b)
		}
		out = append(out, x)
	}
	return out, nil
}

// linkBytes is a link as it is stored; nil for none.
func linkBytes(l protocol.Link) []byte {
	if !l.Defined() {
		return nil
	}
	return l.Bytes()
}

// requestOf is the request of a batch with these blocks.
func (s *Store) requestOf(b cas.Batch, blocks []block) (*request, error) {
	r := &request{fence: b.Fence, done: make(chan error, 1), held: make(chan struct{})}
	free := smallOf(blocks)
	for _, m := range b.Moves {
		x := row{kind: moves, name: m.Name, old: linkBytes(m.Old), new: linkBytes(m.New), ts: m.TS, note: m.Note}
		if x.ts == 0 {
			x.ts = s.now()
		}
		if n := len(m.Events); n > 0 {
			x.seq, x.moved = int64(m.Events[n-1].Seq), int32(n)
			if m.Base != "" {
				x.base, x.shared = protocol.RunHead(m.Base), int64(m.Events[0].Seq-1)
			}
		}
		if x.line = free.lay(m, s.recent.has); x.data == nil && x.moved > 0 {
			for _, e := range m.Events[:x.moved-1] {
				x.events = append(x.events, e.CID.Bytes()[4:]...) // behind what all CIDs of events begin with
			}
		}
		r.size += len(x.data)
		if m.Root != "" {
			x.root = protocol.RunHead(m.Root)
		}
		r.rows = append(r.rows, x)
		if m.Base != "" {
			r.rows = append(r.rows, row{kind: shares, name: protocol.RunHead(m.Base)})
		}
	}
	for _, d := range b.Deletes {
		t := d.Tombstone()
		r.rows = append(r.rows,
			row{kind: buries, name: protocol.RunHead(d.Run()), old: linkBytes(d.Head()), ts: d.TS()},
			row{kind: drops, name: protocol.FilesHead(d.Run()), ts: d.TS()},
			row{kind: moves, name: protocol.DeletedHead(d.Run()), new: t.Link.Bytes(), ts: d.TS()})
		r.derived = append(r.derived, value{key: cas.StateKey(d.Run())})
	}
	for _, name := range b.Drops {
		r.rows = append(r.rows, row{kind: drops, name: name, ts: s.now()})
	}
	for _, d := range b.Derived {
		v := value{key: d.Key}
		if d.Data != nil {
			v.data = d.Stored(s.o.Seal)
		}
		if run, ok := cas.StateOf(d.Key); ok {
			v.run = protocol.RunHead(run)
		}
		r.derived = append(r.derived, v)
	}
	slices.SortStableFunc(r.derived, func(a, b value) int { return bytes.Compare([]byte(a.key), []byte(b.key)) })
	if r.fence != (cas.Fence{}) {
		r.rows = append(r.rows, row{kind: guards, name: protocol.RunHead(r.fence.Root)})
	}
	r.stand(b.Runs)
	for _, x := range r.rows {
		r.names = append(r.names, x.name)
	}
	slices.Sort(r.names)
	r.names = slices.Compact(r.names)
	for _, x := range blocks {
		if x.small != nil {
			r.small = append(r.small, x.small.Link)
		}
		switch {
		case x.small != nil && free.taken(x.small.Link):
			continue
		case x.small != nil:
			x.data = cas.PackBlock(*x.small)
		}
		r.blocks = append(r.blocks, x)
		r.size += len(x.data)
	}
	return r, r.check()
}

// check refuses what would have the whole group refused.
func (r *request) check() error {
	moved := map[string]bool{}
	for _, x := range r.rows {
		switch {
		case !storable(x.name) || !storable(x.note):
			return fmt.Errorf("commit to %q: a name or note that is no text: %w", x.name, protocol.ErrUsage)
		case x.writes() && moved[x.name]:
			return fmt.Errorf("commit to %s: the batch moves it twice: %w", x.name, protocol.ErrUsage)
		case x.kind == moves && x.new == nil:
			return fmt.Errorf("commit to %s: to nowhere: %w", x.name, protocol.ErrUsage)
		case x.seq > math.MaxInt32:
			return fmt.Errorf("commit to %s: event %d: a journal in a database has at most %d: %w", x.name, x.seq, math.MaxInt32, protocol.ErrUsage)
		}
		moved[x.name] = moved[x.name] || x.writes()
	}
	if err := r.checkRuns(); err != nil {
		return err
	}
	for i, v := range r.derived {
		if !storable(v.key) {
			return fmt.Errorf("derived value %q: its key is no text: %w", v.key, protocol.ErrUsage)
		}
		if i > 0 && r.derived[i-1].key == v.key {
			return fmt.Errorf("derived value %s: the batch writes it twice: %w", v.key, protocol.ErrUsage)
		}
	}
	return nil
}

func (s *Store) now() int64 {
	if s.o.Now != nil {
		return s.o.Now()
	}
	return time.Now().UnixMicro()
}

// Ready checks and compresses the blocks of a batch; see cas.Backing.
func (s *Store) Ready(blocks []cas.Block) (commit func(context.Context, cas.Batch) error, err error) {
	ready, err := blocksOf(blocks)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, b cas.Batch) error { return s.commit(ctx, b, ready) }, nil
}

// Commit writes a batch in one transaction, together with those of other goroutines; see the package, and engine.Ledger for its errors. When ctx
// ends before the batch was sent, nothing is stored and its cause is returned. While the database is lost, one that was sent
// returns an error wrapping protocol.ErrUnreachable when ctx ends. Without that it waits, also without cas.Patient, whose end ends the
// wait for a lost database alone.
func (s *Store) Commit(ctx context.Context, b cas.Batch) error {
	for _, d := range b.Deletes {
		b.Blocks = append(b.Blocks[:len(b.Blocks):len(b.Blocks)], d.Tombstone())
	}
	ready, err := blocksOf(b.Blocks)
	if err != nil {
		return err
	}
	return s.commit(ctx, b, ready)
}

func (s *Store) commit(ctx context.Context, b cas.Batch, blocks []block) (err error) {
	done := s.Measure(cas.OpBatch)
	defer func() { done(err) }()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r, err := s.requestOf(b, blocks)
	if err != nil {
		return err
	}
	if !s.queue.add(r, s.drain) {
		return fmt.Errorf("%s: %w", s.a.Shown, errClosed)
	}
	why := ctx
	var given <-chan struct{} // up, while the database is lost
	if until := cas.Patience(ctx); until != nil {
		given = until.Done()
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
	case <-given:
		select {
		case err := <-r.done:
			return err
		case <-ctx.Done():
		case <-s.outage.lost():
			why = cas.Patience(ctx)
		}
	}
	switch left := r.leave(); {
	case left && why == ctx:
		return context.Cause(ctx)
	case left:
		return fmt.Errorf("commit to %s: it was not stored: %w", s.a.Shown, protocol.ErrUnreachable)
	}
	select {
	case err := <-r.done:
		return err
	case <-r.held:
	case <-s.outage.lost():
	}
	select {
	case err := <-r.done: // it was settled at the same moment
		return err
	default:
		return fmt.Errorf("commit to %s: whether it was stored is not known (%w): %w", s.a.Shown, context.Cause(why), protocol.ErrUnreachable)
	}
}

// leave has a batch that was not sent withdrawn; false where it was.
func (r *request) leave() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = !r.sent
	return r.left
}

// send reports whether a batch is still wanted, and that it is sent from now on.
func (r *request) send() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = !r.left
	return r.sent
}

// hold tells the caller that the outcome may take long.
func (r *request) hold() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.slow {
		r.slow = true
		close(r.held)
	}
}
