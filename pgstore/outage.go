package pgstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"wf/cas"
	"wf/protocol"
)

// outage tells once that the database is lost, and once that it is back.
type outage struct {
	tell func(error) // nil where nobody listens

	mu             sync.Mutex
	commits, beats bool          // which of them do not get through
	begun          chan struct{} // closed while one of them does not
}

func newOutage(tell func(error)) *outage { return &outage{tell: tell, begun: make(chan struct{})} }

// note notes how a commit or a beat went; of is the field of that.
func (o *outage) note(of *bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	was := o.commits || o.beats
	*of = errors.Is(err, protocol.ErrUnreachable)
	is := o.commits || o.beats
	if is == was {
		return
	}
	if is {
		close(o.begun)
	} else {
		err, o.begun = nil, make(chan struct{})
	}
	if o.tell != nil {
		o.tell(err)
	}
}

// lost is closed while the database is lost.
func (o *outage) lost() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.begun
}

// patiently asks again for as long as the database cannot be reached and the caller is patient.
func patiently[T any](ctx context.Context, s *Store, ask func() (T, error)) (T, error) {
	until := cas.Patience(ctx)
	for pause := pauseFirst; ; pause = min(2*pause, pauseMost) {
		got, err := ask()
		if until == nil || !errors.Is(err, protocol.ErrUnreachable) {
			return got, err
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-until.Done():
			return got, err
		case <-ctx.Done():
			return got, context.Cause(ctx)
		case <-s.life.Done():
			return got, context.Cause(s.life)
		}
	}
}
