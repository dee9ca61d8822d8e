package chat

import (
	"context"
	"sync"

	tea "charm.land/bubbletea/v2"

	"wf/api"
	"wf/protocol"
)

// feed gathers updates while a frame is drawn, and hands them over together.
type feed struct {
	mu      sync.Mutex
	waiting []api.Update
	wake    chan struct{} // capacity 1
}

func newFeed() *feed { return &feed{wake: make(chan struct{}, 1)} }

func (f *feed) put(u api.Update) {
	f.mu.Lock()
	f.waiting = append(f.waiting, u)
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// updates are what came since the last ones; epoch tells of which connection.
type updates struct {
	epoch int
	list  []api.Update
}

func (f *feed) next(ctx context.Context, epoch int) tea.Cmd {
	return func() tea.Msg {
		select {
		case <-f.wake:
		case <-ctx.Done():
			return nil
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		list := f.waiting
		f.waiting = nil
		return updates{epoch, list}
	}
}

// ended says that following the run is over, with the reason.
type ended struct {
	epoch int
	err   error
}

// firstPage is how many events are read before the first frame, and page how many more for
// each scroll beyond the oldest.
const (
	firstPage = 200
	page      = 200
)

// opened is the first page.
type opened struct {
	epoch  int
	events []api.Update
	tip    protocol.Seq
	err    error
}

func open(ctx context.Context, s Session, epoch int) tea.Cmd {
	return func() tea.Msg {
		tip, err := s.Tip(ctx)
		if err != nil {
			return opened{epoch: epoch, err: err}
		}
		events, err := s.Page(ctx, tip+1, firstPage)
		return opened{epoch, events, tip, err}
	}
}

// earlier is an older page.
type earlier struct {
	epoch  int
	events []api.Update
	err    error
}
