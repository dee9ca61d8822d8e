package embedded

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"sync"

	"go.etcd.io/bbolt"

	"wf/hub/queue"
	"wf/protocol"
)

// Pointers is a queue.Pointers. Which agent has a run is in the file when Swap returns; how
// far the run is goes there with the next such swap.
type Pointers struct {
	db *bbolt.DB

	mu     sync.Mutex
	byRun  map[protocol.RunID]queue.Pointer
	behind map[protocol.RunID]bool // newer in memory than in the file
	news   map[protocol.RunID]chan struct{}
	closed bool
}

func newPointers(db *bbolt.DB) *Pointers {
	return &Pointers{db: db, byRun: map[protocol.RunID]queue.Pointer{}, behind: map[protocol.RunID]bool{},
		news: map[protocol.RunID]chan struct{}{}}
}

func (p *Pointers) load(tx *bbolt.Tx) error {
	return tx.Bucket(pointersBucket).ForEach(func(k, v []byte) error {
		var x queue.Pointer
		if err := json.Unmarshal(v, &x); err != nil {
			return fmt.Errorf("pointer %s: %w", k, err)
		}
		p.byRun[x.Run] = x
		return nil
	})
}

// Get reads a pointer.
func (p *Pointers) Get(ctx context.Context, run protocol.RunID) (queue.Pointer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.ready(ctx); err != nil {
		return queue.Pointer{}, err
	}
	x, ok := p.byRun[run]
	if !ok {
		return x, fmt.Errorf("run %s: %w", run, protocol.ErrUnknownRun)
	}
	return x, nil
}

// Swap writes a pointer that still has its revision.
func (p *Pointers) Swap(ctx context.Context, x queue.Pointer) (queue.Pointer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.ready(ctx); err != nil {
		return x, err
	}
	old := p.byRun[x.Run]
	if old.Revision != x.Revision {
		return old, fmt.Errorf("run %s: revision %d, have %d: %w", x.Run, old.Revision, x.Revision, queue.ErrSwapped)
	}
	x.Revision++
	if old.Revision > 0 && old.Agent == x.Agent && old.Epoch == x.Epoch {
		p.behind[x.Run] = true
	} else if err := p.write(x); err != nil {
		return old, fmt.Errorf("pointer of run %s: %w", x.Run, err)
	}
	p.byRun[x.Run] = x
	if c := p.news[x.Run]; c != nil {
		close(c)
		delete(p.news, x.Run)
	}
	return x, nil
}

// write puts the pointers that are behind into the file, and those of also.
func (p *Pointers) write(also ...queue.Pointer) error {
	err := update(p.db, func(tx *bbolt.Tx) error {
		b := tx.Bucket(pointersBucket)
		for run := range p.behind {
			if err := put(b, []byte(run), p.byRun[run]); err != nil {
				return err
			}
		}
		for _, x := range also {
			if err := put(b, []byte(x.Run), x); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		clear(p.behind)
	}
	return err
}

// Watch yields a pointer, and each newer one.
func (p *Pointers) Watch(ctx context.Context, run protocol.RunID) iter.Seq2[queue.Pointer, error] {
	return func(yield func(queue.Pointer, error) bool) {
		var seen uint64
		for {
			p.mu.Lock()
			err := p.ready(ctx)
			x := p.byRun[run]
			if p.news[run] == nil {
				p.news[run] = make(chan struct{})
			}
			news := p.news[run]
			p.mu.Unlock()
			switch {
			case err != nil:
				yield(queue.Pointer{}, err)
				return
			case x.Revision > seen:
				if !yield(x, nil) {
					return
				}
				seen = x.Revision
			}
			if !wait(ctx, news, -1) {
				yield(queue.Pointer{}, ctx.Err())
				return
			}
		}
	}
}

func (p *Pointers) ready(ctx context.Context) error {
	if p.closed {
		return queue.ErrClosed
	}
	return ctx.Err()
}

func (p *Pointers) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	for _, c := range p.news {
		close(c)
	}
	clear(p.news)
	if len(p.behind) == 0 {
		return nil
	}
	return p.write()
}
