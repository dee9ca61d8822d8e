package replay

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"wf/protocol"
)

// notifier signals subscribers when the head of their run moved. One goroutine waits for changes of
// the store for all of them, while there are any.
type notifier struct {
	feed protocol.Feed

	mu     sync.Mutex
	topics map[protocol.RunID]*topic
	stop   context.CancelFunc // of the goroutine; nil when there is none
	gone   sync.WaitGroup
}

// topic is a run with subscribers.
type topic struct {
	tip  protocol.Link
	subs map[*subscriber]bool
}

// subscriber is one cursor that waits. Its channel holds one signal, so that many changes are
// one: nil, or why waiting failed, which ends the subscription.
type subscriber struct {
	run protocol.RunID
	ch  chan error
}

// signal leaves a signal in the place of the one before; the caller holds mu of the notifier.
func (s *subscriber) signal(err error) {
	select {
	case <-s.ch:
	default:
	}
	s.ch <- err
}

// subscribe begins before the journal is read: what is committed later is signalled.
func (n *notifier) subscribe(ctx context.Context, run protocol.RunID) (*subscriber, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := &subscriber{run: run, ch: make(chan error, 1)}
	if n.stop == nil {
		seen, err := n.feed.Changes(ctx)
		if err != nil {
			return nil, err
		}
		waiting, stop := context.WithCancel(context.WithoutCancel(ctx))
		n.stop = stop
		n.gone.Go(func() { n.wait(waiting, seen) })
	}
	t := n.topics[run]
	if t == nil {
		if n.topics == nil {
			n.topics = map[protocol.RunID]*topic{}
		}
		t = &topic{subs: map[*subscriber]bool{}}
		n.topics[run] = t
	}
	t.subs[l] = true
	return l, nil
}

func (n *notifier) unsubscribe(s *subscriber) {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := n.topics[s.run]
	if t == nil || !t.subs[s] {
		return
	}
	if delete(t.subs, s); len(t.subs) > 0 {
		return
	}
	if delete(n.topics, s.run); len(n.topics) == 0 && n.stop != nil {
		n.stop()
		n.stop = nil
	}
}

func (n *notifier) wait(ctx context.Context, seen uint64) {
	for {
		now, err := n.feed.AwaitChange(ctx, seen)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			n.fail(ctx, err)
			return
		}
		seen = now
		for _, run := range n.runs() {
			tip, _, err := n.feed.Tip(ctx, run)
			if ctx.Err() != nil {
				return
			}
			n.moved(run, tip, err)
		}
	}
}

func (n *notifier) runs() []protocol.RunID {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Collect(maps.Keys(n.topics))
}

// moved signals the cursors of a run if it has another tip. Where that could not be read they
// look themselves, and meet the error if it lasts.
func (n *notifier) moved(run protocol.RunID, tip protocol.Link, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := n.topics[run]
	if t == nil || err == nil && t.tip == tip {
		return
	}
	t.tip = tip
	for l := range t.subs {
		l.signal(nil)
	}
}

// fail ends all subscriptions: without a notifier they would be silent for ever.
func (n *notifier) fail(ctx context.Context, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if ctx.Err() != nil {
		return // another goroutine took over
	}
	for _, t := range n.topics {
		for l := range t.subs {
			l.signal(errors.Join(errors.New("the store could not be watched"), err))
		}
	}
	n.topics = nil
	n.stop()
	n.stop = nil
}
