package cas

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"

	"wf/files"
)

// gate lets one Store at store.db while other processes want it too.
//
//	turn EX ─► store.lock SH│EX ─► pid ─► turn free ─► bolt.Open ─► work … ─► close ─► lock free
//
// bbolt locks its file for as long as it is open and polls for the lock, which starves all but
// one writer. So each process queues for turn first, and the holder, after every commit and every
// batch of reads, looks whether turn is taken: if so it closes the database and queues again.
type gate struct {
	dir     string
	opts    *Options
	bare    bool                 // only the locks are taken, and no database is opened
	check   func(*bolt.DB) error // run on every fresh database, before its first use
	mu      sync.Mutex
	probe   *os.File // turn, to see whether another process queues; nil in a directory without locks
	hold    *holding // the open database, or nil
	opening *attempt // under way, or nil
	writers int      // callers of enter that want to write
	paused  chan struct{}
	closed  bool
	idle    *time.Timer // nil until first needed
	resting bool        // idle runs
	used    time.Time   // when the last user left
	told    time.Time   // when a wait was shown
	poison  error       // a write transaction that panicked keeps bbolt's lock for ever
	acyclic atomic.Bool // the branch pages were looked at once
}

// holding is an open database and the lock that goes with it.
type holding struct {
	db       *bolt.DB // nil of a bare gate
	lock     *os.File // nil in a directory without locks
	writable bool
	users    int
	since    time.Time     // when it was opened
	leaving  bool          // takes no new users
	gone     chan struct{} // closed when the database is

	counting sync.Mutex
	commits  uint64 // the commit counter, once counted; of a writer
	counted  bool
}

// attempt is one way through the locks. done is closed with err set, or g.hold filled, or
// neither when it was given up for a pause.
type attempt struct {
	writable bool
	done     chan struct{}
	over     chan struct{} // closed when it has ended, and left what it held
	err      error

	mu   sync.Mutex
	turn *os.File
	left bool // given up
}

// How long a database stays open. Each opening costs several reads and maps the file, so that what a process asks for in a row is done in one hold,
// also where others queue: for each of 200 processes that is one turn of all others instead of ten.
const (
	idleClose = 20 * time.Millisecond // where no other process queues
	idleLook  = time.Millisecond      // where one does; how often that is looked at
	holdMost  = 10 * time.Millisecond // from its opening, where others queue
)

var errClosed = errors.New("the store is closed")

// bareGate is the gate of a store for those that read its file by themselves.
func bareGate(dir string, o Options) (*gate, error) {
	g := &gate{dir: dir, opts: &Options{ReadOnly: true, Wait: o.Wait, Warn: o.Warn}, bare: true}
	return g, g.open()
}

// open finds the turnstile of a store. A copy without lock files that cannot be written has none: no other
// process writes it either.
func (g *gate) open() error {
	probe, err := openLock(filepath.Join(g.dir, fileTurn), g.opts.ReadOnly)
	switch {
	case err == nil:
		g.probe = probe
	case !g.opts.ReadOnly || !errors.Is(err, fs.ErrNotExist):
		return classify(err)
	}
	return nil
}

// enter waits for the database. Each enter needs a leave.
func (g *gate) enter(ctx context.Context, write bool) (*holding, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if write {
		g.writers++
		defer func() { g.writers-- }()
	}
	for {
		var wait <-chan struct{}
		var a *attempt
		switch h := g.hold; {
		case g.closed:
			return nil, fmt.Errorf("%s: %w", g.dir, errClosed)
		case g.poison != nil:
			return nil, g.poison
		case h != nil && !h.leaving && (h.writable || !write):
			h.users++
			return h, nil
		case h != nil:
			gone := h.gone
			g.part(h)
			wait = gone
		case g.paused != nil:
			wait = g.paused
		default:
			if g.opening == nil {
				g.opening = &attempt{writable: g.writers > 0, done: make(chan struct{}), over: make(chan struct{})}
				go g.pass(g.opening)
			}
			a = g.opening
			wait = a.done
		}
		g.mu.Unlock()
		select {
		case <-wait:
			g.mu.Lock()
			if a != nil && a.err != nil {
				return nil, a.err
			}
		case <-ctx.Done():
			g.mu.Lock()
			return nil, context.Cause(ctx)
		}
	}
}

// join is enter for a writer that does not wait; nil when the database is not open for writing.
func (g *gate) join() *holding {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := g.hold
	if g.closed || g.poison != nil || h == nil || h.leaving || !h.writable {
		return nil
	}
	h.users++
	return h
}

// leave ends the use of h; discard closes it in any case: after a failed commit the
// state of the database in memory is not to be trusted.
func (g *gate) leave(h *holding, discard bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	h.users--
	switch {
	case discard || h.leaving || time.Since(h.since) > holdMost && g.queued():
		g.part(h)
	case h.users == 0:
		g.rest()
	}
}

// yield closes the database at once where it is open for reading and not in use: its user comes back only later.
func (g *gate) yield() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if h := g.hold; h != nil && h.users == 0 && !h.writable {
		g.part(h)
	}
}

// rest closes the database unless it is used again soon. One timer serves all: it looks when it fires.
func (g *gate) rest() {
	g.used = time.Now()
	switch {
	case g.resting:
	case g.idle == nil:
		g.idle = time.AfterFunc(idleLook, g.rested)
	default:
		g.idle.Reset(idleLook)
	}
	g.resting = true
}

// rested is called when the timer fires.
func (g *gate) rested() {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := g.hold
	switch idle := time.Since(g.used); {
	case h == nil || h.users > 0:
		g.resting = false // the last user to leave starts it again
	case idle < idleLook || idle < idleClose && !g.queued():
		g.idle.Reset(idleLook)
	default:
		g.resting = false
		g.part(h)
	}
}

// part makes h leave: now, or when its last user does.
func (g *gate) part(h *holding) {
	h.leaving = true
	if h.users > 0 || g.hold != h {
		return
	}
	g.hold = nil
	if g.poison != nil {
		h.db = nil // bbolt's own lock never comes free, and Close would hang
	}
	h.free()
	close(h.gone)
}

// queued reports whether another process, or another Store, waits for its turn.
func (g *gate) queued() bool {
	if g.probe == nil {
		return false
	}
	ok, err := files.TryLock(g.probe, false)
	if ok {
		_ = files.Unlock(g.probe) // fails only for a bad descriptor
	}
	return err == nil && !ok
}

// pass goes through the locks and opens the database.
func (g *gate) pass(a *attempt) {
	defer close(a.over)
	defer g.watch(a)()
	h, err := g.admit(a)
	if errors.Is(err, errNoIndex) {
		a.writable = true
		h, err = g.admit(a)
	}
	g.finish(a, h, err)
}

// admit is one way through the locks. It returns nil, nil when the attempt was given up.
func (g *gate) admit(a *attempt) (*holding, error) {
	h, err := g.queue(a)
	if err != nil || h == nil || g.bare {
		return h, err
	}
	if !g.acyclic.Load() {
		if err = checkCycles(filepath.Join(g.dir, fileDB)); err != nil {
			h.free()
			return nil, fmt.Errorf("%s: %w", g.dir, classify(err))
		}
		g.acyclic.Store(true)
	}
	if h.db, err = openDB(filepath.Join(g.dir, fileDB), g.opts, a.writable); err != nil {
		h.free()
		return nil, err
	}
	if err = g.check(h.db); err != nil {
		h.free()
		return nil, err
	}
	return h, nil
}

// queue takes turn, then store.lock. It returns nil, nil when the attempt was given up.
func (g *gate) queue(a *attempt) (*holding, error) {
	h := &holding{writable: a.writable, gone: make(chan struct{})}
	if g.probe == nil {
		return h, nil
	}
	turn, err := openLock(filepath.Join(g.dir, fileTurn), g.opts.ReadOnly)
	if err != nil {
		return nil, g.fail("open", err)
	}
	a.mu.Lock()
	a.turn = turn
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.turn = nil
		_ = files.FreeLock(turn) // nothing was written
	}()
	if err := files.WaitLock(turn, false); err != nil {
		return nil, g.fail("lock turn of", err)
	}
	if a.abandoned() {
		return nil, nil
	}
	h.lock, err = openLock(filepath.Join(g.dir, fileLock), g.opts.ReadOnly)
	if g.opts.ReadOnly && errors.Is(err, fs.ErrNotExist) {
		return h, nil // it was removed: a reader makes no files, and bbolt's own lock keeps writers out
	}
	if err != nil {
		return nil, g.fail("open", err)
	}
	if err := files.WaitLock(h.lock, !a.writable); err != nil {
		return nil, errors.Join(g.fail("lock", err), files.FreeLock(h.lock))
	}
	if a.abandoned() {
		return nil, files.FreeLock(h.lock)
	}
	if !g.opts.ReadOnly {
		if err := writePID(h.lock); err != nil {
			return nil, errors.Join(g.fail("lock", err), files.FreeLock(h.lock))
		}
	}
	return h, nil
}

// finish ends an attempt once; what comes too late is closed again.
func (g *gate) finish(a *attempt, h *holding, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a.abandoned() {
		if h != nil {
			h.free()
		}
		return
	}
	a.leave()
	a.err = err
	g.opening = nil
	if h != nil && err == nil {
		g.hold, h.since = h, time.Now()
		g.rest() // the waiting callers may have left
	}
	close(a.done)
}

// free closes the database, of which nothing is left to be written, and gives store.lock to the next one.
func (h *holding) free() {
	if h.db != nil {
		_ = h.db.Close()
	}
	if h.lock != nil {
		_ = files.FreeLock(h.lock) // fails only for a bad descriptor, which holds nothing
	}
}

// leave gives an attempt up. Its goroutine may block on store.lock for long: the turn must
// not wait for that.
func (a *attempt) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.left = true
	if a.turn != nil {
		_ = files.Unlock(a.turn) // fails only for a bad descriptor
	}
}

func (a *attempt) abandoned() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.left
}

// shut closes the database and refuses all use from now on.
func (g *gate) shut() {
	g.mu.Lock()
	g.closed = true
	if g.idle != nil {
		g.idle.Stop()
	}
	a, h := g.opening, g.hold
	if h != nil {
		g.part(h)
	}
	g.mu.Unlock()
	if a != nil {
		g.finish(a, nil, fmt.Errorf("%s: %w", g.dir, errClosed))
	}
	if h != nil {
		<-h.gone
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.probe != nil {
		_ = g.probe.Close() // it stays set: an attempt that was given up may look at it
	}
}

// givenUp is how long pause waits for an attempt that it gave up. One that has the lock, or is
// next to have it, ends in a moment; one behind a process that keeps the store has nothing that
// others want.
const givenUp = time.Second

// pause closes the database and keeps it closed until resume is called.
func (g *gate) pause() (resume func()) {
	g.mu.Lock()
	paused := make(chan struct{})
	g.paused = paused
	a, h := g.opening, g.hold
	if h != nil {
		g.part(h)
	}
	g.mu.Unlock()
	if a != nil {
		g.finish(a, nil, nil)
		select {
		case <-a.over:
		case <-time.After(givenUp):
		}
	}
	if h != nil {
		<-h.gone
	}
	return sync.OnceFunc(func() {
		g.mu.Lock()
		g.paused = nil
		g.mu.Unlock()
		close(paused)
	})
}

func (g *gate) fail(what string, err error) error {
	return fmt.Errorf("%s %s: %w", what, g.dir, classify(err))
}

// spoil refuses all use from now on: a transaction broke off inside bbolt.
func (g *gate) spoil(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.poison = err
}
