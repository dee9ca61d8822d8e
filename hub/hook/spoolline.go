package hook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"wf/protocol"
)

// A line is the events of a hook, in the order in which they were kept.
type line struct {
	items   []*item
	running bool
}

// How events that cannot begin are tried again.
const (
	firstPause = 100 * time.Millisecond // then twice as long each time
	lastPause  = 30 * time.Second
	asideTime  = time.Hour          // between two looks at those that were put aside
	asideMost  = 7 * 24 * time.Hour // after which such an event is dropped
	lookTime   = time.Minute        // between two looks for spools of processes that were killed
)

// A Begin begins the runs of events of one hook in their order, and returns when they are on disk; that one was so before is no error.
// Those before the n-th have begun then, and err is that of the n-th, nil where all have; those behind it were not tried. An error wrapping ErrUnfit
// is a reason of the event itself, which is put aside; for any other one the event stays the first of its line. definition
// reads what Define kept.
type Begin func(ctx context.Context, all []Kept, definition func(name string) ([]byte, error)) (n int, err error)

// What is begun at once.
const (
	atOnce      = 64
	atOnceBytes = 4 << 20
)

// Serve begins what waits, and what comes, from now on. The work that it gives has to be done: it ends with ctx, or once the spool is closed.
func (s *Spool) Serve(ctx context.Context, begin Begin) (work func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin = begin
	if s.closed {
		return func() {}
	}
	s.work.Add(1)
	for _, l := range s.lines {
		s.run(l)
	}
	return func() {
		defer s.work.Done()
		defer context.AfterFunc(ctx, s.stop)()
		s.look()
	}
}

// look looks for what others left, and for what was put aside.
func (s *Spool) look() {
	look, again := time.NewTicker(lookTime), time.NewTicker(asideTime)
	defer look.Stop()
	defer again.Stop()
	for {
		s.takeOver()
		select {
		case <-look.C:
		case <-again.C:
			s.tryAside()
		case <-s.ctx.Done():
			return
		}
	}
}

// queue puts what is on disk into its line; the caller holds mu.
func (s *Spool) queue(it *item) {
	l := s.lines[it.hook]
	if l == nil {
		l = &line{}
		s.lines[it.hook] = l
	}
	l.items = append(l.items, it)
	s.run(l)
}

// run has a line begin what it has; the caller holds mu.
func (s *Spool) run(l *line) {
	if s.begin != nil && !l.running && len(l.items) > 0 && s.ctx.Err() == nil {
		l.running = true
		s.work.Go(func() { s.beginAll(l) })
	}
}

// beginAll begins the events of a line, as long as there are any.
func (s *Spool) beginAll(l *line) {
	pause, told := firstPause, ""
	for {
		some := s.front(l)
		if len(some) == 0 {
			return
		}
		n, err := s.start(some)
		for _, it := range some[:n] {
			s.over(l, it, CountBegun)
		}
		if n > 0 {
			pause, told = firstPause, ""
		}
		switch {
		case err == nil, s.ctx.Err() != nil:
		case errors.Is(err, ErrUnfit):
			s.putAside(l, some[n], err)
		default:
			it := some[n]
			it.once.Do(func() { close(it.tried) })
			if why := err.Error(); why != told {
				s.o.Log.Warn("events wait: their runs cannot begin yet", "webhook", it.hook, "run", it.run, "why", why, "fix", protocol.HintOf(err))
				told = why
			}
			select {
			case <-time.After(pause):
			case <-s.ctx.Done():
			}
			pause = min(2*pause, lastPause)
		}
	}
}

// front are the first events of a line; none ends the line's work.
func (s *Spool) front(l *line) []*item {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		l.running = false
		return nil
	}
	n, size := 0, int64(0)
	for n < len(l.items) && n < atOnce && (n == 0 || size+l.items[n].size <= atOnceBytes) {
		size += l.items[n].size
		n++
	}
	l.running = n > 0
	return slices.Clone(l.items[:n])
}

// start begins the runs of events: those before the n-th have begun, and err is that of the n-th.
func (s *Spool) start(some []*item) (n int, err error) {
	all := make([]Kept, 0, len(some))
	var unread error // of the event behind all
	for _, it := range some {
		var frame []byte
		if frame, unread = s.file.read(it); unread != nil {
			break
		}
		r, bad := s.file.open(frame)
		if bad != nil || r.Kept == nil {
			unread = fmt.Errorf("%w: %w", ErrUnfit, errDamaged)
			break
		}
		all = append(all, *r.Kept)
	}
	if len(all) > 0 {
		if n, err = s.begin(s.ctx, all, s.definition); err != nil {
			return n, err
		}
	}
	return n, unread
}

// over takes the first event out of its line, and out of the file.
func (s *Spool) over(l *line, it *item, what string) {
	s.mu.Lock()
	s.shift(l, it)
	s.gone(it)
	s.mu.Unlock()
	it.once.Do(func() { close(it.tried) })
	s.count(what)
}

// shift takes the first item out of a line; the caller holds mu.
func (s *Spool) shift(l *line, it *item) {
	l.items[0] = nil
	if l.items = l.items[1:]; len(l.items) == 0 {
		l.items = nil
	}
}

// gone takes an item out of what waits; the caller holds mu.
func (s *Spool) gone(it *item) {
	s.add(it, -1)
	delete(s.known, it.request)
	s.begun = append(s.begun, it.request)
	s.kick()
}

// putAside takes an event out of the way of those behind it.
func (s *Spool) putAside(l *line, it *item, why error) {
	s.mu.Lock()
	s.shift(l, it)
	late := s.o.Now().Sub(it.since) > asideMost
	if late {
		s.gone(it)
	} else {
		s.aside = append(s.aside, it)
	}
	s.mu.Unlock()
	it.once.Do(func() { close(it.tried) })
	if late {
		s.o.Log.Error("the event is dropped: its run could not begin for a week", "webhook", it.hook, "run", it.run, "since", it.since, "why", why.Error())
		s.count(CountDropped)
		return
	}
	s.o.Log.Error("the event is put aside: its run cannot begin; it is tried again each hour, and when wf serve starts, for a week",
		"webhook", it.hook, "run", it.run, "since", it.since, "why", why.Error())
}

// tryAside has what was put aside tried again.
func (s *Spool) tryAside() {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.aside
	s.aside = nil
	for _, it := range all {
		s.queue(it)
	}
}

// kick has the writer write what waits for it; the caller holds mu.
func (s *Spool) kick() {
	if !s.writing {
		s.writing = true
		s.work.Go(s.write)
	}
}

// write writes what waits, all of it at once, until nothing does.
func (s *Spool) write() {
	for {
		s.mu.Lock()
		batch, begun := s.batch, s.begun
		s.batch, s.begun = nil, nil
		if len(batch)+len(begun) == 0 {
			s.writing = false
			s.mu.Unlock()
			return
		}
		live := s.all.events - len(batch) - len(s.batch) // of the file
		s.mu.Unlock()
		var err error
		if live == 0 {
			begun = nil
			if err = s.file.empty(); err != nil {
				s.o.Log.Warn("the file of events cannot be emptied; they begin once more at the next start, which starts nothing", "why", err.Error())
			}
		}
		if len(batch)+len(begun) > 0 {
			err = s.append(batch, begun)
		}
		s.publish(batch, err)
		s.tidy()
	}
}

// append writes events, and which of those before have begun.
func (s *Spool) append(batch []*item, begun []string) error {
	var b []byte
	if len(begun) > 0 {
		frame, err := s.file.frame(record{Begun: begun})
		if err != nil {
			return err
		}
		b = frame
	}
	at := s.file.end + int64(len(b))
	for _, it := range batch {
		it.at = at
		at += it.size
		b = append(b, it.frame...)
	}
	err := s.file.append(b, len(batch) > 0)
	if err != nil && len(batch) == 0 {
		s.o.Log.Warn("it cannot be noted that events have begun; they begin once more at the next start, which starts nothing", "why", err.Error())
	}
	return err
}

// publish tells those who wait what became of their events.
func (s *Spool) publish(batch []*item, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range batch {
		it.frame = nil
		if it.err = err; err != nil {
			s.add(it, -1)
			delete(s.known, it.request)
		} else {
			it.kept = true
			s.queue(it)
		}
		close(it.settled)
	}
}

// tidy writes the file anew where most of it has begun. It is the writer's, so that nothing is appended meanwhile.
func (s *Spool) tidy() {
	s.mu.Lock()
	live := s.all.bytes
	for _, it := range s.batch {
		live -= it.size
	}
	most := max(live, slack, s.file.anew)
	if s.file.end-live <= most {
		s.mu.Unlock()
		return
	}
	var all []*item
	for _, l := range s.lines {
		all = append(all, l.items...)
	}
	all = append(all, s.aside...)
	s.mu.Unlock()
	if err := s.file.rewrite(all); err != nil {
		s.file.anew = 2 * most
		s.o.Log.Warn("the file of events cannot be written anew, and stays as it is", "why", err.Error())
		return
	}
	s.file.anew = 0
}
