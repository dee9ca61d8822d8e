// Package lists tells clients which lists of the HTTP API have changed, so that they read them again then and not by time.
//
//	source ── Moved(runs, 7K3Q) ──► Board ──┬──► subscription {runs: 7K3Q, 8M2A} ──► frame
//	                                        └──► subscription {runs: all} ─────────► frame, 100 ms after the one before
//
// # Words
//
//	source   what finds out about changes, once for all subscriptions, and only while there are some
//	watched  a list whose changes the source reports from now on. The first frame about a list says so
//
// # Nothing is missed
//
// A source first notes the state of a list and then calls All; a client reads the list when that frame arrives. A change in
// between is reported once more. Each frame says what changed since the one before it, about the same list.
//
// # Slow clients
//
// For each list a subscription keeps at most protocol.MaxListed runs that it has not sent yet; with more it keeps only that any run
// may have changed.
package lists

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"wf/protocol"
)

// Every is the least time between two frames about one list to one client.
const Every = 100 * time.Millisecond

// A Board hands changes of lists out to subscriptions. Of and Source are set before use; its methods are safe for concurrent
// use. Close it after use.
type Board struct {
	Of []protocol.List // that can be subscribed to
	// Source tells the board what changes, until ctx ends. It is called when the first subscription begins, and its context
	// ends with the last one. For each list that is wanted it notes the state of the list, calls All, and from then on Moved
	// or All whenever something has changed. Wanted says when there are other lists.
	Source func(ctx context.Context, b *Board)

	mu      sync.Mutex
	subs    map[*subscription]bool
	watched map[protocol.List]bool
	other   chan struct{} // closed when other lists are wanted; nil before the first subscription
	stop    context.CancelFunc
	ended   chan struct{} // closed when the source that began last has ended
	gone    sync.WaitGroup
}

// subscription is what is still to be sent to one client.
type subscription struct {
	lists map[protocol.List]*pending
	wake  chan struct{} // has one when there may be something to tell
}

// pending is what is to be sent about a list.
type pending struct {
	runs map[protocol.RunID]bool
	all  bool
	last time.Time // of the frame before
}

func (p *pending) empty() bool { return !p.all && len(p.runs) == 0 }

// everything has all of the list sent; what was noted of it takes no more room.
func (p *pending) everything() { p.all, p.runs = true, nil }

func (p *pending) moved(runs []protocol.RunID) {
	if p.all {
		return
	}
	if p.runs == nil {
		p.runs = map[protocol.RunID]bool{}
	}
	for _, run := range runs {
		if p.runs[run] = true; len(p.runs) > protocol.MaxListed {
			p.everything()
			return
		}
	}
}

func (s *subscription) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Serve sends what changes of the lists that a list_request names, until ctx ends or send fails. The error is that of either, or
// one wrapping protocol.ErrBadRequest where none of the lists is here.
func (b *Board) Serve(ctx context.Context, r protocol.Request, send func(*protocol.Frame) error) error {
	s, err := b.subscribe(r.Lists)
	if err != nil {
		return err
	}
	defer b.unsubscribe(s)
	due := time.NewTimer(0)
	defer due.Stop()
	for {
		f, wait := b.next(s, time.Now())
		if f != nil {
			f.ID = r.ID
			if err := send(f); err != nil {
				return err
			}
			if ctx.Err() != nil { // before another frame is due, since sending one took that long; a client that takes none is waited for
				return context.Cause(ctx)
			}
			continue
		}
		var later <-chan time.Time
		if wait > 0 {
			due.Reset(wait)
			later = due.C
		}
		select {
		case <-s.wake:
		case <-later:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// next is the frame that is due, or else how long the first one is not; 0 where there is nothing to tell.
func (b *Board) next(s *subscription, now time.Time) (f *protocol.Frame, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var due protocol.List // of which the last frame is the oldest: so no list keeps another from being sent, however slow the client is
	for _, list := range b.Of {
		p := s.lists[list]
		if p == nil || p.empty() {
			continue
		}
		if left := Every - now.Sub(p.last); left > 0 {
			if wait == 0 || left < wait {
				wait = left
			}
			continue
		}
		if due == "" || p.last.Before(s.lists[due].last) {
			due = list
		}
	}
	if due == "" {
		return nil, wait
	}
	p := s.lists[due]
	f = &protocol.Frame{Type: protocol.FrameListChanged, List: due, All: p.all, Runs: slices.Sorted(maps.Keys(p.runs))}
	*p = pending{last: now}
	return f, 0
}

func (b *Board) subscribe(wanted []protocol.List) (*subscription, error) {
	s := &subscription{lists: map[protocol.List]*pending{}, wake: make(chan struct{}, 1)}
	for _, list := range wanted {
		if slices.Contains(b.Of, list) {
			s.lists[list] = &pending{}
		}
	}
	if len(s.lists) == 0 {
		return nil, fmt.Errorf("lists %.200q: there are %q: %w", wanted[:min(len(wanted), 8)], b.Of, protocol.ErrBadRequest)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.subs == nil {
		b.subs, b.watched, b.other = map[*subscription]bool{}, map[protocol.List]bool{}, make(chan struct{})
	}
	known := len(b.wanted())
	b.subs[s] = true
	for list, p := range s.lists {
		p.all = b.watched[list] // else the source says it
	}
	if len(b.wanted()) != known {
		b.others()
	}
	if b.stop == nil {
		b.begin()
	}
	return s, nil
}

// begin has a source run, behind the one that may still be ending; the caller holds mu.
func (b *Board) begin() {
	ctx, stop := context.WithCancel(context.Background())
	before, ended := b.ended, make(chan struct{})
	b.stop, b.ended = stop, ended
	b.gone.Go(func() {
		defer close(ended)
		if before != nil {
			<-before
		}
		b.mu.Lock()
		clear(b.watched) // what the one before said last is not this one's to go on with
		b.mu.Unlock()
		b.Source(ctx, b)
	})
}

func (b *Board) unsubscribe(s *subscription) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.subs, s)
	left := b.wanted()
	for list := range s.lists {
		if !left[list] {
			delete(b.watched, list)
		}
	}
	if len(b.subs) == 0 {
		b.stop()
		b.stop = nil
		clear(b.watched)
	}
	b.others()
}

// wanted are the lists of all subscriptions; the caller holds mu.
func (b *Board) wanted() map[protocol.List]bool {
	out := map[protocol.List]bool{}
	for s := range b.subs {
		for list := range s.lists {
			out[list] = true
		}
	}
	return out
}

// others tells the source that other lists may be wanted; the caller holds mu.
func (b *Board) others() {
	close(b.other)
	b.other = make(chan struct{})
}

// Wanted are the lists that are subscribed to, each with whether it is watched. The channel is closed when they are others.
func (b *Board) Wanted() (lists map[protocol.List]bool, other <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	lists = b.wanted()
	for list := range lists {
		lists[list] = b.watched[list]
	}
	return lists, b.other
}

// Moved says that runs of a list that is watched moved, came or went.
func (b *Board) Moved(list protocol.List, runs ...protocol.RunID) {
	if len(runs) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.watched[list] { // else All is still to come
		b.tell(list, func(p *pending) { p.moved(runs) })
	}
}

// All says that anything of the lists may be another, and that they are watched from now on if they are wanted.
func (b *Board) All(lists ...protocol.List) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, list := range lists {
		b.tell(list, func(p *pending) {
			b.watched[list] = true
			p.everything()
		})
	}
}

// tell changes what subscriptions are still to be sent about a list; the caller holds mu.
func (b *Board) tell(list protocol.List, change func(*pending)) {
	for s := range b.subs {
		if p := s.lists[list]; p != nil {
			change(p)
			s.signal()
		}
	}
}

// Close returns when the source has ended. The subscriptions have ended before.
func (b *Board) Close() { b.gone.Wait() }
