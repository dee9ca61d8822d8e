package ratelimit

import (
	"errors"
	"io/fs"
	"time"

	"wf/files"
)

// Status is how full the window of an account is.
type Status struct {
	Requests int           // sent in the window
	Tokens   int64         // of these
	Unknown  bool          // what was sent is not known, so the window counts as full
	InFlight int           // calls under way
	Closed   time.Duration // for so long the provider asked all to wait
	Flying   []Process     // with calls in flight
	Waiting  []Process     // in their order
}

// Process is a process that shares an account.
type Process struct {
	PID int
	N   int // of its calls in flight
}

// Look reads how full the window is. Nothing is made; what was never used is empty.
func (a *Account) Look() (Status, error) {
	l := a.ledger
	f, err := files.Open(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return Status{}, nil
	}
	if err != nil {
		return Status{}, err
	}
	defer func() { _ = files.FreeLock(f) }() // nothing was written
	if err := flockFor(f, true, lockedFor); err != nil {
		return Status{}, err
	}
	boot, err := l.boot()
	if err != nil {
		return Status{}, err
	}
	now, s := l.now(), newState(boot, l.window)
	if _, err := readState(f, s); err != nil {
		return Status{}, err
	}
	if s.Boot != boot {
		return Status{}, nil // the next call begins it anew
	}
	s.tidy(now)
	out := Status{Closed: max(0, time.Duration(s.Until-now)*time.Microsecond)}
	s.bury(0, func(member int) bool { return aliveAt(l.path, member) })
	for _, x := range s.Sends {
		out.Requests, out.Tokens = out.Requests+x.N, out.Tokens+x.Tokens
	}
	out.Unknown = out.Requests >= unknown
	for _, p := range s.Places {
		out.Flying = append(out.Flying, Process{p.PID, p.N})
	}
	for _, t := range s.Queue {
		out.Waiting = append(out.Waiting, Process{PID: t.PID})
	}
	out.InFlight = s.inFlight()
	return out, nil
}

// Path is where the ledger lies.
func (a *Account) Path() string { return a.ledger.path }
