package ratelimit

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
	"wf/files"
)

// ledger is the file of an account, as this process shares it with others.
type ledger struct {
	path   string
	window time.Duration
	now    func() int64
	boot   func() (string, error)

	file struct {
		sync.Mutex // one transaction at a time: a flock is shared by the goroutines of a process
		f, member  *os.File
		id         int // of the member
		pid        int
	}

	mu       sync.Mutex
	waiting  []*waiter // in the order in which they came
	reason   Reason    // for which the first waits
	limit    int64
	pumping  bool
	poke     chan struct{} // holds one
	facts    []fact        // not in the file yet
	ticketed bool          // the process has a place in the queue
}

var ledgers sync.Map // of this process: path → *ledger

func ledgerAt(path string) *ledger {
	l, _ := ledgers.LoadOrStore(path, newLedger(path))
	return l.(*ledger)
}

func newLedger(path string) *ledger {
	return &ledger{path: path, window: Window, now: uptime, boot: boot, poke: make(chan struct{}, 1)}
}

// lockedFor is how long a transaction waits for the file: others keep it for some microseconds, unless they were
// stopped.
const lockedFor = time.Second

// change makes a transaction: f sees the state as it is now, and says whether it is to be written. What is known of
// calls that ended goes in before.
func (l *ledger) change(f func(s *state, now int64, me int) (write bool)) error {
	l.file.Lock()
	defer l.file.Unlock()
	err := l.locked(func() error {
		now := l.now()
		s, number, write, err := l.read(now)
		if err != nil {
			return err
		}
		write = s.tidy(now) || write
		l.mu.Lock()
		facts := l.facts
		l.facts = nil
		l.mu.Unlock()
		s.apply(now, facts, l.file.id, l.file.pid)
		if f(s, now, l.file.id) || write || len(facts) > 0 {
			err = writeState(l.file.f, s, number+1)
		}
		l.written(facts, err == nil)
		return err
	})
	if err != nil && !errors.Is(err, errBusy) {
		err = fmt.Errorf("limits of the provider, %s: %w", l.path, err)
	}
	return err
}

// read reads the state, and joins. What cannot be known of the window counts as sent now. changed is that it differs
// from what the file holds.
func (l *ledger) read(now int64) (s *state, number uint64, changed bool, err error) {
	boot, err := l.boot()
	if err != nil {
		return nil, 0, false, err
	}
	s = newState(boot, l.window)
	number, err = readState(l.file.f, s)
	switch {
	case errors.Is(err, errDamaged):
		s = newState(boot, l.window)
		s.full(now)
		changed = true
	case err != nil:
		return nil, 0, false, err
	case s.Boot != boot: // when that was is not known, and no process of then is left
		for i := range s.Sends {
			s.Sends[i].At = now
		}
		s.Boot, s.Until, s.Queue, s.Places = boot, 0, nil, nil
		changed = true
	}
	if l.file.member == nil {
		if l.file.member, l.file.id, err = join(l.path); err != nil {
			return nil, 0, false, err
		}
		s.drop(l.file.id) // of one that had the place before
		changed = true
	}
	return s, number, changed, nil
}

// locked opens the file where need be, and locks it meanwhile. One that was removed is made anew.
func (l *ledger) locked(do func() error) error {
	for {
		if l.file.f == nil {
			boot, err := l.boot()
			if err != nil {
				return err
			}
			f, err := openLedger(l.path, newState(boot, l.window))
			if err != nil {
				return err
			}
			l.file.f, l.file.pid = f, os.Getpid()
		}
		if err := flockFor(l.file.f, false, lockedFor); err != nil {
			return err
		}
		if l.current() {
			break
		}
		l.forget()
	}
	defer func() { _ = files.Unlock(l.file.f) }() // fails only for a bad descriptor, which holds nothing
	return do()
}

// current reports whether the open file is still the one that others find.
func (l *ledger) current() bool {
	own, err := l.file.f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(l.path)
	return err == nil && os.SameFile(own, there)
}

// forget closes the files, and with that leaves.
func (l *ledger) forget() {
	for _, f := range []*os.File{l.file.f, l.file.member} {
		if f != nil {
			_ = f.Close() // nothing is buffered
		}
	}
	l.file.f, l.file.member, l.file.id = nil, nil, 0
}
