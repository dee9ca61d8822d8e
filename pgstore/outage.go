package pgstore

import (
	"errors"
	"sync"

	"wf/protocol"
)

// outage tells once that the database is lost, and once that it is back.
type outage struct {
	tell func(error) // nil where nobody listens

	mu             sync.Mutex
	commits, beats bool // which of them do not get through
}

// note notes how a commit or a beat went; of is the field of that.
func (o *outage) note(of *bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	was := o.commits || o.beats
	*of = errors.Is(err, protocol.ErrUnreachable)
	is := o.commits || o.beats
	switch {
	case o.tell == nil, is == was:
	case is:
		o.tell(err)
	default:
		o.tell(nil)
	}
}
