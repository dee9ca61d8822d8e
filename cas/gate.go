package cas

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"

	"wf/files"
	"wf/protocol"
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
	poison  error       // a write transaction that panicked keeps bbolt's lock for ever
	acyclic atomic.Bool // the branch pages were looked at once
}

// holding is an open database and the lock that goes with it.
type holding struct {
	db       *bolt.DB // nil of a bare gate
	lock     *os.File // nil in a directory without locks
	writable bool
	users    int
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

const (
	defaultWait = 5 * time.Second
	idleClose   = 20 * time.Millisecond
)

var errClosed = errors.New("the store is closed")

// bareGate is the gate of a store for those that read its file by themselves.
func bareGate(dir string, patience time.Duration) (*gate, error) {
	g := &gate{dir: dir, opts: &Options{ReadOnly: true, Wait: patience}, bare: true}
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
	case discard || h.leaving || g.queued():
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
		g.idle = time.AfterFunc(idleClose, g.rested)
	default:
		g.idle.Reset(idleClose)
	}
	g.resting = true
}

// rested is called when the timer fires.
func (g *gate) rested() {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := g.hold
	switch left := idleClose - time.Since(g.used); {
	case h == nil || h.users > 0:
		g.resting = false // the last user to leave starts it again
	case left > 0:
		g.idle.Reset(left)
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
	wait := g.opts.wait()
	timer := time.AfterFunc(wait, func() { g.finish(a, nil, g.busy(wait)) })
	defer timer.Stop()
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
		g.hold = h
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

// busy is the error that names the process with the store.
func (g *gate) busy(waited time.Duration) error {
	holder := "another process"
	hint := "wait for it, or end it"
	lock := filepath.Join(g.dir, fileLock)
	pid, ok := flockedBy(lock) // of several readers the note names only the last
	if !ok {
		pid, ok = readPID(lock)
	}
	if ok {
		holder = "process " + strconv.Itoa(pid)
		if stoppedProcess(pid) {
			holder += " (stopped)"
			hint = fmt.Sprintf("let it go on with kill -CONT %d, or end it", pid)
		}
	}
	return protocol.ErrBusy.With(hint, "%s is held by %s; waited %s", g.dir, holder, waited)
}

func (g *gate) fail(what string, err error) error {
	return fmt.Errorf("%s %s: %w", what, g.dir, classify(err))
}

// pidSize is the length of the note of a process in a lock file, behind the commit counter.
const pidSize = 21

// writePID notes in a lock file which process has it, for those that wait.
func writePID(lock *os.File) error {
	_, err := lock.WriteAt(fmt.Appendf(nil, "%-*d\n", pidSize-1, os.Getpid()), counterSize)
	return err
}

func readPID(path string) (int, bool) {
	lock, err := openLock(path, true)
	if err != nil {
		return 0, false
	}
	defer lock.Close()
	var note [pidSize]byte
	if _, err := lock.ReadAt(note[:], counterSize); err != nil {
		return 0, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(note[:])))
	return pid, err == nil
}

// spoil refuses all use from now on: a transaction broke off inside bbolt.
func (g *gate) spoil(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.poison = err
}
