package ratelimit

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"time"
)

// Account is an account of a provider with its limits. nil has none, and grants at once.
type Account struct {
	ID       string // its Fingerprint
	Provider string // how the config calls it
	Limits   Limits

	ledger *ledger
}

// Open is the account of a Fingerprint, whose ledger lies in dir: the same one for all who open it. Nothing is
// made before the first call asks.
func Open(dir, provider, id string, limits Limits) *Account {
	return &Account{ID: id, Provider: provider, Limits: limits, ledger: ledgerAt(filepath.Join(dir, id))}
}

// Hold tells of a call that waits.
type Hold struct {
	Provider string
	Reason   Reason
	Limit    int64 // of the reason, 0 for ByRetryAfter
}

// A Watcher is told of a call that waits for longer than HoldAfter; released is called when it goes on, or was given
// up. Neither may block.
type Watcher func(Hold) (released func())

type watcherKey struct{}

// WithWatcher has the calls under ctx watched.
func WithWatcher(ctx context.Context, w Watcher) context.Context {
	return context.WithValue(ctx, watcherKey{}, w)
}

// Grant is the right to send one request. Each needs a Done.
type Grant struct {
	ledger *ledger
	at     int64
	tokens int64
	// Where it is in the window; moved is the id that is being written. They belong to the holder of ledger.file.
	epoch, id, moved int64
}

// Result is how a call ended.
type Result struct {
	Sent       bool          // the request was written, if not whole
	Used       int64         // tokens; negative where that is not known, which leaves the reservation as it is
	RetryAfter time.Duration // that the provider asked for, 0 is none
}

// late is how long after its grant a request may be written and still count from the grant: the margin of Window holds
// that.
const late = 100 * time.Millisecond

// Sent is called when the request was written: it counts from then. A nil Grant has nothing to count.
func (g *Grant) Sent() {
	if g != nil && g.ledger.now()-g.at > late.Microseconds() {
		g.ledger.note(fact{grant: g})
	}
}

// Done ends the call, once. It does not wait until that is written down.
func (g *Grant) Done(r Result) {
	if g != nil {
		g.ledger.note(fact{grant: g, over: true, Result: r})
	}
}

// fact is what happened with a grant: its request was written, or it is over.
type fact struct {
	grant *Grant
	over  bool
	Result
}

func (l *ledger) note(f fact) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.facts = append(l.facts, f)
	l.pump()
}

// apply takes facts into the state.
func (s *state) apply(now int64, facts []fact, member, pid int) {
	for _, f := range facts {
		g := f.grant
		if s.Epoch != g.epoch { // the file was begun anew: it knows nothing of the grant
			g.id, g.moved, g.epoch = 0, 0, s.Epoch
		}
		if !f.over {
			g.moved = s.sent(now, g.id, g.tokens)
			continue
		}
		s.settle(now, cmp.Or(g.moved, g.id), g.tokens, f.Result)
		s.take(member, pid, -1)
	}
}

// written has facts that were applied forgotten, or, where they could not be written, applied once more later.
func (l *ledger) written(facts []fact, ok bool) {
	for _, f := range facts {
		if g := f.grant; ok {
			g.id, g.moved = cmp.Or(g.moved, g.id), 0
		} else {
			g.moved = 0
		}
	}
	if !ok {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.facts = append(facts, l.facts...)
	}
}

// waiter is a call that waits for its grant.
type waiter struct {
	*Account
	tokens int64
	answer chan answer // holds one
}

type answer struct {
	grant *Grant
	err   error
}

// Ask waits until a request may be sent that uses about so many tokens. The error is ctx's as it is, or that of the
// ledger.
func (a *Account) Ask(ctx context.Context, tokens int64) (*Grant, error) {
	if a == nil || a.Limits.None() {
		return nil, ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l := a.ledger
	w := &waiter{Account: a, tokens: tokens, answer: make(chan answer, 1)}
	l.enqueue(w)
	hold := time.NewTimer(HoldAfter)
	defer hold.Stop()
	for {
		select {
		case x := <-w.answer:
			return x.grant, x.err
		case <-hold.C:
			watch, ok := ctx.Value(watcherKey{}).(Watcher)
			if !ok {
				continue
			}
			l.mu.Lock()
			h := Hold{Provider: a.Provider, Reason: l.reason, Limit: l.limit}
			l.mu.Unlock()
			defer watch(h)()
		case <-ctx.Done():
			if !l.leave(w) { // it was granted meanwhile
				if x := <-w.answer; x.grant != nil {
					x.grant.Done(Result{})
				}
			}
			return nil, ctx.Err()
		}
	}
}

// enqueue adds a waiter. Where none waits before it is asked for at once.
func (l *ledger) enqueue(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, w)
	l.pump()
}

// leave removes a waiter; false is that it has its answer.
func (l *ledger) leave(w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting, w)
	if i < 0 {
		return false
	}
	l.waiting = slices.Delete(l.waiting, i, i+1)
	l.nudge()
	return true
}

// pump has a goroutine that asks for the first waiter, as long as there is one. l.mu is held.
func (l *ledger) pump() {
	if !l.pumping {
		l.pumping = true
		go l.serve()
	}
	l.nudge()
}

func (l *ledger) nudge() {
	select {
	case l.poke <- struct{}{}:
	default:
	}
}

// serve grants to the waiters in their order, and writes down which calls ended. It ends when there is nothing to do.
func (l *ledger) serve() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		l.mu.Lock()
		var first *waiter
		if len(l.waiting) > 0 {
			first = l.waiting[0]
		}
		if first == nil && len(l.facts) == 0 && !l.ticketed {
			l.pumping = false
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()

		again, ok := l.step(first)
		switch {
		case !ok:
			return
		case again == 0:
			continue
		}
		timer.Reset(again)
		select {
		case <-timer.C:
		case <-l.poke:
		}
	}
}

// step asks for a waiter, nil for none, and says when to try again; 0 is at once. ok is false where the file cannot
// be used: all waiters have the error, and what is to be written down waits for the next call.
func (l *ledger) step(w *waiter) (again time.Duration, ok bool) {
	var v verdict
	var at, epoch int64
	err := l.change(func(s *state, now int64, me int) bool {
		if w == nil {
			if l.isTicketed() {
				s.withdraw(me)
			}
			return true
		}
		before := slices.Clone(s.Queue)
		dead := s.bury(me, func(member int) bool { return aliveAt(l.path, member) })
		v, at = s.ask(now, ticket{Member: me, PID: l.file.pid, Tokens: w.tokens, Limits: w.Limits}), now
		epoch = s.Epoch
		return dead || v.granted || !slices.Equal(before, s.Queue)
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case errors.Is(err, errBusy):
		return soon, true
	case err != nil:
		for _, w := range l.waiting {
			w.answer <- answer{err: err}
		}
		l.waiting, l.ticketed, l.pumping = nil, false, false
		return 0, false
	case w == nil:
		l.ticketed = false
		return 0, true
	}
	l.ticketed, l.reason, l.limit = !v.granted, v.reason, v.limit
	if !v.granted {
		return v.again, true
	}
	g := &Grant{ledger: l, id: v.id, at: at, epoch: epoch, tokens: w.tokens}
	i := slices.Index(l.waiting, w)
	if i < 0 { // it was given up meanwhile
		l.facts = append(l.facts, fact{grant: g, over: true})
		return 0, true
	}
	l.waiting = slices.Delete(l.waiting, i, i+1)
	w.answer <- answer{grant: g}
	return 0, true
}

func (l *ledger) isTicketed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ticketed
}
