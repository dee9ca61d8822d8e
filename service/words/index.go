package words

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"wf/cas"
	"wf/engine"
	"wf/protocol"
	"wf/service/query"
	"wf/store"
)

// An Index is what is known of the runs of a store to find them by. It is safe for concurrent use.
type Index struct {
	store  store.Store
	engine *engine.Engine
	key    func() []byte // that seals it
	shelf  shelf

	turn chan struct{} // holds one while this process reads journals, or changes the index

	reads sync.Mutex // held while the shelf is read

	mu     sync.Mutex // held for moments, and behind reads
	at     *view
	segs   []*segment // of the shelf
	memory []*segment // that could not be written
	ignore bool       // what is on the shelf was found to be damaged
	loose  map[protocol.RunID]noted
	failed map[protocol.RunID]failure
	purges *purge // that waits for its turn
}

// noted are facts of a run at a head that is not indexed.
type noted struct {
	head  protocol.Link
	facts *query.Facts
}

// failure is why a run cannot be indexed at a head.
type failure struct {
	head protocol.Link
	err  error
}

// New is the index of a store. Nothing is read before it is used; key seals what is written.
func New(s store.Store, e *engine.Engine, key func() []byte) *Index {
	shelf, key := shelfOf(s, key)
	return &Index{store: s, engine: e, key: key, shelf: shelf, turn: make(chan struct{}, 1),
		at: &view{}, loose: map[protocol.RunID]noted{}, failed: map[protocol.RunID]failure{}}
}

// Shared reports whether the index is that of all machines of the store.
func (x *Index) Shared() bool {
	_, is := x.shelf.(rows)
	return is
}

// current reports whether a unit is indexed up to a head.
func current(u *unit, h cas.Head) bool {
	return u != nil && u.seq == h.Seq && u.head == bytesOf(h.Link)
}

// bytesOf are the bytes of a CID.
func bytesOf(l protocol.Link) string { return l.CID().KeyString() }

// Facts are those of a run at its head; nil where they are not known.
func (x *Index) Facts(h cas.Head) *query.Facts {
	run := protocol.RunOf(h.Name)
	x.mu.Lock()
	defer x.mu.Unlock()
	if u := x.at.unit(string(run)); current(u, h) {
		return &u.facts
	}
	if n := x.loose[run]; n.head == h.Link {
		return n.facts
	}
	return nil
}

// Note keeps facts of a run at a head.
func (x *Index) Note(h cas.Head, f *query.Facts) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.loose[protocol.RunOf(h.Name)] = noted{h.Link, f}
}

// take waits for the turn of the caller; give ends it.
func (x *Index) take(ctx context.Context) error {
	select {
	case x.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (x *Index) give() { <-x.turn }

// pass gives its turn to those that wait for it, as deletions do, and takes it again. meanwhile is called without the turn.
func (c *catching) pass(meanwhile func()) error {
	if !c.passes {
		return nil
	}
	c.x.give()
	meanwhile()
	c.x.turn <- struct{}{}
	return c.look()
}

// CatchUpOptions say how CatchUp goes on.
type CatchUpOptions struct {
	Within   time.Duration               // it ends after about so long, with the runs that it has read; 0 is when all are
	Progress func(done, of int)          // is called where Within is 0, after each commit but the last, with numbers of the runs that were behind
	Tell     func(protocol.RunID, error) // is called with runs that cannot be read, once for each head
}

// commitBytes of texts and units are committed at once.
const commitBytes = 8 << 20

// CatchUp indexes what runs have said since they were indexed, the one that moved least lately first, and drops those that are gone. heads are
// those of all runs. A run that cannot be read is passed over until it moves.
func (x *Index) CatchUp(ctx context.Context, heads []cas.Head, o CatchUpOptions) error {
	first := &catching{x: x, ctx: ctx}
	if err := first.look(); err != nil {
		return err
	}
	if behind, known := x.behind(first.v, heads); len(behind) == 0 && known == first.v.runs {
		return nil
	}
	began := time.Now()
	late := func() bool { return o.Within > 0 && time.Since(began) > o.Within }
	turn := ctx
	if o.Within > 0 {
		var stop context.CancelFunc
		turn, stop = context.WithTimeout(ctx, o.Within)
		defer stop()
	}
	if err := x.take(turn); err != nil {
		return context.Cause(ctx) // another goes on with it, and nothing is wrong
	}
	defer x.give()
	there := sync.OnceValue(func() map[string]cas.Head {
		out := make(map[string]cas.Head, len(heads))
		for _, h := range heads {
			out[string(protocol.RunOf(h.Name))] = h
		}
		return out
	})
	for range rounds {
		c := &catching{x: x, ctx: ctx, wait: turn, there: there, tell: o.Tell, passes: o.Within == 0}
		if err := c.look(); err != nil {
			return err
		}
		behind, known := x.behind(c.v, heads)
		if known < c.v.runs {
			if err := cmp.Or(c.dropGone(), c.look()); err != nil {
				return err
			}
			behind, _ = x.behind(c.v, heads) // also what was built on those that are gone
		}
		c.forget()
		if len(behind) == 0 {
			break
		}
		for i, h := range behind {
			if late() {
				return c.commit()
			}
			if err := c.run(protocol.RunOf(h.Name), h); err != nil {
				return err
			}
			if c.b.full() {
				if err := c.commit(); err != nil {
					return err
				}
				if err := c.pass(func() {
					if o.Progress != nil {
						o.Progress(i+1, len(behind))
					}
				}); err != nil {
					return err
				}
			}
		}
		if err := c.commit(); err != nil {
			return err
		}
		if left, _ := x.behind(c.v, behind); len(left) == 0 && c.v.runs == len(heads) {
			break
		}
	}
	return nil
}

// rounds are how often CatchUp looks for runs that are behind: again after damage, and where another process has written.
const rounds = 3

// behind are the heads that are not indexed, the oldest first; known is of how many runs something is indexed.
func (x *Index) behind(v *view, heads []cas.Head) (out []cas.Head, known int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, h := range heads {
		run := protocol.RunOf(h.Name)
		u := v.unit(string(run))
		if u != nil {
			known++
		}
		if f := x.failed[run]; !current(u, h) && f.head != h.Link {
			out = append(out, h)
		}
	}
	protocol.Sort(out, func(a, b cas.Head) int { return cmp.Compare(a.TS, b.TS) })
	return out, known
}

// dropGone drops what is indexed of runs that were deleted, by another process or on another machine.
func (c *catching) dropGone() error {
	var gone []string
	there := c.there()
	for u := range c.v.all() {
		if _, ok := there[u.id]; ok || u.run() == "" {
			continue
		}
		h, err := c.x.store.Head(c.ctx, protocol.RunHead(u.run())) // it may be newer than the list
		if err != nil {
			return err
		}
		if !h.Link.Defined() {
			gone = append(gone, u.id)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	if err := c.x.commit(c.ctx, c.wait, nil, gone); !errors.Is(err, errKept) && !errors.Is(err, errWaits) { // they are not found all the same
		return err
	}
	return nil
}

// forget drops what is known of runs that are gone or indexed.
func (c *catching) forget() {
	x := c.x
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.loose)+len(x.failed) == 0 {
		return
	}
	there := c.there()
	for run, n := range x.loose {
		u := c.v.unit(string(run))
		if _, ok := there[string(run)]; !ok || u != nil && u.head == bytesOf(n.head) {
			delete(x.loose, run)
		}
	}
	for run := range x.failed {
		if _, ok := there[string(run)]; !ok {
			delete(x.failed, run)
		}
	}
}

// catching reads runs for one commit after another.
type catching struct {
	x     *Index
	ctx   context.Context
	wait  context.Context // how long for another process that writes
	v     *view
	b     builder
	there func() map[string]cas.Head // the heads of all runs
	tell  func(protocol.RunID, error)

	passes bool // it takes long, and lets others have their turn between two commits
}

func (c *catching) commit() error {
	b := c.b
	c.b = builder{}
	if len(b.units) == 0 {
		return nil
	}
	return cmp.Or(c.x.commit(c.ctx, c.wait, &b, nil), c.look())
}

// look takes the index as it is now.
func (c *catching) look() (err error) {
	c.v, err = c.x.refresh(c.ctx)
	return err
}

// at is how far a unit is indexed, or will be by the next commit.
func (c *catching) at(id string) *unit {
	if u := c.b.unit(id); u != nil {
		return u
	}
	return c.v.unit(id)
}

// run reads a run. An error is one of the store, or of ctx: what is wrong with a run alone is noted.
func (c *catching) run(run protocol.RunID, h cas.Head) error {
	err := c.read(run, h)
	switch {
	case err == nil:
		return nil
	case c.ctx.Err() != nil:
		return context.Cause(c.ctx)
	case protocol.OfStore(err), ofMachine(err):
		return err
	case errors.Is(err, protocol.ErrUnknownRun), errors.Is(err, protocol.ErrRunDeleted), errors.Is(err, protocol.ErrHeadMoved):
		return nil // meanwhile
	}
	c.x.mu.Lock()
	c.x.failed[run] = failure{h.Link, err}
	c.x.mu.Unlock()
	if c.tell != nil {
		c.tell(run, err)
	}
	return nil
}

// ofMachine reports whether an error is one of the system, such as that too many files are open: it says nothing about a run.
func ofMachine(err error) bool {
	_, is := errors.AsType[syscall.Errno](err)
	return is
}

func (c *catching) read(run protocol.RunID, h cas.Head) error {
	id := string(run)
	st, err := c.x.engine.State(c.ctx, run)
	if err != nil {
		return err
	}
	u := unit{id: id, from: 0}
	if old := c.at(id); old != nil {
		if u = *old; u.seq >= st.Seq {
			now, err := c.x.store.Head(c.ctx, protocol.RunHead(run)) // the list may be older than what is indexed
			if err != nil || current(&u, now) || now.Seq > u.seq || !now.Link.Defined() {
				return err
			}
			return c.again(run, now)
		}
		u.from = u.seq
	} else if u.base, u.shared, err = c.base(run); err != nil {
		return err
	} else if u.base != "" {
		u.from = u.shared
	}
	r := reading{read: func(l protocol.Link) ([]byte, error) { return c.x.store.Block(c.ctx, l) }}
	if u.from >= st.Seq { // a fork without an event of its own
		u.base, u.from, u.shared = "", 0, 0
	}
	u.seq = u.from
	bytes := 0
	for e, err := range c.x.store.After(c.ctx, run, u.from) {
		if err != nil {
			return err
		}
		if e.Seq == u.from+1 && u.head != "" && u.head != bytesOf(e.Prev) {
			return c.again(run, h)
		}
		had := len(r.pieces)
		if err := r.event(&e); err != nil {
			return fmt.Errorf("run %s, event %d: %w", run, e.Seq, err)
		}
		for _, p := range r.pieces[had:] {
			bytes += len(p.text)
		}
		u.seq, u.head = e.Seq, bytesOf(e.CID)
		if e.Seq == st.Seq {
			break
		}
		if bytes >= commitBytes { // of a long run a part is committed
			if err := c.add(&u, &r); err != nil {
				return err
			}
			if err := c.commit(); err != nil {
				return err
			}
			if err := c.pass(func() {}); err != nil {
				return err
			}
			bytes = 0
		}
	}
	if u.seq < st.Seq {
		return fmt.Errorf("run %s ends at event %d of %d: %w", run, u.seq, st.Seq, protocol.ErrHeadMoved)
	}
	u.facts = *query.FactsOf(st)
	return c.add(&u, &r)
}

// add adds what was read of a run, with the definitions that it pins, and has the unit go on behind that.
func (c *catching) add(u *unit, r *reading) error {
	for _, l := range r.defs {
		id := defPrefix + l.String()
		u.defs = append(u.defs, id)
		if c.at(id) != nil {
			continue
		}
		texts, err := prompts(r.read, l)
		if err != nil {
			return fmt.Errorf("definition of run %s: %w", u.id, err)
		}
		c.b.begin(unit{id: id, seq: 1})
		for _, p := range texts {
			c.b.text(p.seq, p.kind, p.text)
		}
	}
	c.b.begin(*u)
	for _, p := range r.pieces {
		c.b.text(p.seq, p.kind, p.text)
	}
	r.defs, r.pieces = nil, nil
	u.from = u.seq
	return nil
}

// base is the run whose beginning a run shares, which is indexed as far as it does; "" where the run is to be indexed by itself.
func (c *catching) base(run protocol.RunID) (string, protocol.Seq, error) {
	base, shared, err := c.x.store.Base(c.ctx, run)
	if err != nil || base == "" {
		return "", 0, err
	}
	h, there := c.there()[string(base)]
	if !there || h.Seq < shared || base == run {
		return "", 0, nil
	}
	if u := c.at(string(base)); u == nil || u.seq < shared {
		if err := c.run(base, h); err != nil {
			return "", 0, err
		}
		if c.b.full() { // as a chain of forks makes it
			if err := c.commit(); err != nil {
				return "", 0, err
			}
		}
		if u = c.at(string(base)); u == nil || u.seq < shared {
			return "", 0, nil
		}
	}
	return string(base), shared, nil
}

// again drops what is indexed of a run whose head was put elsewhere; it is read anew.
func (c *catching) again(run protocol.RunID, h cas.Head) error {
	if err := c.commit(); err != nil {
		return err
	}
	err := c.x.commit(c.ctx, c.wait, nil, []string{string(run)})
	if errors.Is(err, errWaits) {
		return nil // it stays behind
	}
	if err != nil && !errors.Is(err, errKept) { // what is kept does not count all the same
		return err
	}
	if err := c.look(); err != nil {
		return err
	}
	return c.read(run, h)
}
