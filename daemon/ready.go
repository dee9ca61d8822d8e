package daemon

import (
	"context"
	"errors"
	"sync"
	"time"

	"wf/protocol"
)

// Why a server does not take requests yet.
var errStarting = errors.New("it looks at the runs of its store")

// readyFor is how long an answer of a probe holds: anyone may ask, and each look opens the store.
const readyFor = time.Second

// readyWait is how long a look at the store may take.
const readyWait = 2 * time.Second

// A probe tells whether a server takes requests.
type probe struct {
	started <-chan struct{} // closed once it has started; nil where it has
	look    func(context.Context) error
	now     func() time.Time

	mu    sync.Mutex
	ended bool
	at    time.Time // of the last look
	found error
}

func newProbe(started <-chan struct{}, look func(context.Context) error) *probe {
	return &probe{started: started, look: look, now: time.Now}
}

// end has the probe say no from now on.
func (p *probe) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
}

// ready is nil where the server takes requests.
func (p *probe) ready(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return protocol.ErrShuttingDown
	}
	if p.started != nil {
		select {
		case <-p.started:
		default:
			return errStarting
		}
	}
	if now := p.now(); p.at.IsZero() || now.Sub(p.at) >= readyFor {
		// Not ended by the client: what is found holds for the others too.
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), readyWait)
		defer stop()
		p.found, p.at = p.look(ctx), now
	}
	return p.found
}
