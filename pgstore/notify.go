package pgstore

import (
	"encoding/hex"
	"sync"
	"time"
)

// A batch that makes a run due, an answer above all, rings: by NOTIFY, over a connection that is not the committer's, once it is stored.
// Other processes then look at once. It is a hint beside the poll, which finds the run within Options.Poll all the same: one
// that is lost, or never comes since a pooler lies in between, does no harm, and no error of it is told.
const (
	channel = "wf_due"
	ringAll = `select set_config('synchronous_commit', 'off', true), pg_notify('` + channel + `', $1)`
)

// bell is what a store needs to ring, and to hear others.
type bell struct {
	listens sync.Once
	loop    sync.WaitGroup
}

// ring tells other processes that a run is due. The caller is the committer, which Close waits for.
func (s *Store) ring() {
	s.queue.idle.Go(func() {
		_, _ = s.queryNow(s.life, ringAll, text(hex.EncodeToString(s.by))) // a hint
	})
}

// listenAgain is how long a store does without hints where it cannot listen.
const listenAgain = 30 * time.Second

// listen hears others until the store is closed.
func (s *Store) listen() {
	for s.life.Err() == nil {
		s.hear()
		select {
		case <-time.After(listenAgain):
		case <-s.life.Done():
		}
	}
}

// hear passes hints of others on for as long as a connection lasts.
func (s *Store) hear() {
	c, err := s.connect(s.life, false)
	if err != nil {
		return
	}
	defer c.close()
	own := hex.EncodeToString(s.by)
	c.Heard = func(on, by string) {
		if on == channel && by != own {
			s.hint()
		}
	}
	if err := c.Listen(s.life, channel); err != nil {
		return
	}
	s.hint() // what was told before is not told again
	for err == nil {
		err = c.Await(s.life)
	}
}
