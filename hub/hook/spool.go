package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"wf/files"
	"wf/protocol"
)

// A Spool keeps events that were taken until their runs have begun.
//
//	Take ─► file, synced ─► 202 ─► line of its hook ─► begin ─► begun: out of the file
//	          (one sync for all that come at once)        └─► cannot begin: waits, or is put aside
//
// Events of one hook begin in the order in which they were kept, many in one commit where many wait; hooks do not wait for each other. An
// event is the request id of its run: the same one is kept once, and begins one run, since a run of a request that is there
// already is begun by nothing. So what a crash leaves in the file may be begun again.
//
// OpenSpool, Serve and Close frame its life. It is safe for concurrent use.
type Spool struct {
	o    SpoolOptions
	dir  string   // its own, of those in o.Dir
	lock *os.File // of dir
	ctx  context.Context
	stop context.CancelFunc
	work sync.WaitGroup // of lines and of the writer

	file spoolFile

	mu      sync.Mutex
	closed  bool
	begin   Begin            // nil before Serve
	known   map[string]*item // by request; also those that are not kept yet
	lines   map[string]*line // by hook
	aside   []*item          // that could not begin for a reason of their own
	uses    map[string]use   // by hook
	all     use
	batch   []*item  // that wait for the writer
	begun   []string // requests that the file still has as waiting
	writing bool
	texts   map[string]bool // definitions that are on disk
}

// SpoolOptions say where a spool lies, and what it holds.
type SpoolOptions struct {
	Dir string // of all spools of a store on this machine
	Key []byte // seals what is written: a file of another user, or of a clone, is none of ours
	// Events and Bytes bound what waits; 0 is MaxEvents and MaxBytes. One hook has at most as much of it as is left free: alone
	// one half, and several leave room for another one.
	Events int
	Bytes  int64
	Log    *slog.Logger // not nil
	// Count is told what became of an event; nil is nobody.
	Count func(what string)
	Now   func() time.Time // default time.Now
}

// What waits at most.
const (
	MaxEvents = 10_000
	MaxBytes  = 256 << 20
)

// What becomes of events, as Count is told.
const (
	CountKept     = "kept"
	CountRepeated = "repeated"
	CountBegun    = "begun"
	CountFull     = "full"    // refused by the bounds
	CountFailed   = "failed"  // could not be written
	CountDropped  = "dropped" // could not begin for a week
)

// Kept is an event that waits for its run to begin.
type Kept struct {
	Hook       string          `json:"hook"`
	Request    string          `json:"request"`    // id of the request that begins the run
	Run        protocol.RunID  `json:"run"`        // that its sender was told of
	Definition string          `json:"definition"` // what Define gave
	Since      time.Time       `json:"since"`
	What       json.RawMessage `json:"what"` // the rest, of the caller
}

// ErrFull says that no more events of a hook are taken now.
var ErrFull = errors.New("as many events wait as may")

// An item is an event in memory: what it says stays in the file.
type item struct {
	hook, request string
	run           protocol.RunID
	since         time.Time
	frame         []byte // until it is written
	at, size      int64  // in the file
	definition    string // of one that was read

	settled chan struct{} // closed once it is kept, or not
	kept    bool
	taken   Taken // where it is not kept
	err     error

	tried chan struct{} // closed once it has begun, or could not
	once  sync.Once     // closes tried
}

// use is what waits of a hook, or of all.
type use struct {
	events int
	bytes  int64
}

func (u use) with(events int, bytes int64) use { return use{u.events + events, u.bytes + bytes} }

// beginSoon is how long an event that no other one is before waits for its run: its sender mostly finds it in the store.
const beginSoon = time.Second

// Take keeps what decide makes of an event, and returns when it is on disk. For one that is kept already, or about to be,
// decide is not called. Where decide gives nil, what it says is the answer.
//
// An error wraps ErrFull where the bounds are reached, ErrUnfit for an event that they would never let in; after any
// error nothing is kept.
func (s *Spool) Take(ctx context.Context, hook, request string, decide func() (*Kept, Taken, error)) (Taken, error) {
	for {
		it, mine, err := s.reserve(hook, request)
		if err != nil {
			return Taken{}, err
		}
		if mine {
			return s.take(ctx, it, decide)
		}
		select {
		case <-it.settled:
		case <-ctx.Done():
			return Taken{}, context.Cause(ctx)
		}
		switch {
		case it.kept:
			s.count(CountRepeated)
			if s.isFirst(it) {
				s.awaitFirst(ctx, it)
			}
			return Taken{Run: it.run}, nil
		case it.err == nil:
			return Taken{Run: it.taken.Run}, nil
		} // else what kept the other one out need not keep this one
	}
}

// reserve finds what is known of a request, or makes it known; then it is the caller's to settle.
func (s *Spool) reserve(hook, request string) (it *item, mine bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false, protocol.ErrShuttingDown
	}
	if it := s.known[request]; it != nil {
		return it, false, nil
	}
	it = &item{hook: hook, request: request, settled: make(chan struct{}), tried: make(chan struct{})}
	s.known[request] = it
	return it, true, nil
}

// take is Take for what was reserved.
func (s *Spool) take(ctx context.Context, it *item, decide func() (*Kept, Taken, error)) (Taken, error) {
	asked := false
	defer func() {
		if !asked { // decide panics
			s.leave(it, errors.New("it was not looked at"))
		}
	}()
	k, taken, err := decide()
	asked = true
	if err != nil || k == nil {
		it.taken = taken
		s.leave(it, err)
		return taken, err
	}
	k.Hook, k.Request, k.Since = it.hook, it.request, s.o.Now().UTC()
	it.run, it.since = k.Run, k.Since
	if it.frame, err = s.file.frame(record{Kept: k}); err == nil {
		err = s.keep(it)
	}
	if err != nil {
		s.leave(it, err)
		return Taken{}, err
	}
	<-it.settled
	if it.err != nil {
		s.count(CountFailed)
		return Taken{}, it.err
	}
	s.count(CountKept)
	if s.isFirst(it) {
		s.awaitFirst(ctx, it)
	}
	return Taken{Run: it.run, Fresh: true}, nil
}

// awaitFirst gives an event that is the first of its line the time to begin.
func (s *Spool) awaitFirst(ctx context.Context, it *item) {
	soon := time.NewTimer(beginSoon)
	defer soon.Stop()
	select {
	case <-it.tried:
	case <-soon.C:
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
}

// isFirst reports whether an event that was kept is about to begin.
func (s *Spool) isFirst(it *item) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lines[it.hook]
	return s.begin != nil && l != nil && len(l.items) > 0 && l.items[0] == it
}

// leave settles what is not kept.
func (s *Spool) leave(it *item, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it.err = err
	delete(s.known, it.request)
	close(it.settled)
}

// keep gives an item to the writer, within the bounds.
func (s *Spool) keep(it *item) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	it.size = int64(len(it.frame))
	switch most := min(s.o.Bytes/2, mostFrame); {
	case s.closed:
		return protocol.ErrShuttingDown
	case it.size > most:
		return fmt.Errorf("%w: it has %d bytes as it is kept, and %d are the most", ErrUnfit, it.size, most)
	}
	own, all := s.uses[it.hook].with(1, it.size), s.all.with(1, it.size)
	if own.events > s.o.Events-all.events || own.bytes > s.o.Bytes-all.bytes {
		s.count(CountFull)
		return fmt.Errorf("%w: %s of this webhook with %d bytes, and %d of all webhooks with %d bytes; of %d and %d one has at most as many as are left free",
			ErrFull, protocol.Plural(own.events-1, "event"), own.bytes-it.size, all.events-1, all.bytes-it.size, s.o.Events, s.o.Bytes)
	}
	s.add(it, 1)
	s.batch = append(s.batch, it)
	s.kick()
	return nil
}

// add counts an item into what waits, or out of it; the caller holds mu.
func (s *Spool) add(it *item, n int) {
	bytes := int64(n) * it.size
	s.all = s.all.with(n, bytes)
	if u := s.uses[it.hook].with(n, bytes); u.events > 0 {
		s.uses[it.hook] = u
	} else {
		delete(s.uses, it.hook)
	}
}

func (s *Spool) count(what string) {
	if s.o.Count != nil {
		s.o.Count(what)
	}
}

// Depth is how many events wait, their bytes, and since when the oldest one does; the zero time is for none.
func (s *Spool) Depth() (events int, bytes int64, oldest time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	older := func(it *item) {
		if oldest.IsZero() || it.since.Before(oldest) {
			oldest = it.since
		}
	}
	for _, l := range s.lines {
		if len(l.items) > 0 {
			older(l.items[0])
		}
	}
	for _, it := range s.aside {
		older(it)
	}
	for _, it := range s.batch {
		older(it)
	}
	return s.all.events, s.all.bytes, oldest
}

// Close takes no more events, and returns when none is written or begun any more. left are those that the next spool in
// this place goes on with.
func (s *Spool) Close() (left int, err error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return 0, nil
	}
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.work.Wait()
	s.mu.Lock()
	left = s.all.events
	s.mu.Unlock()
	return left, errors.Join(s.file.close(), files.FreeLock(s.lock))
}
