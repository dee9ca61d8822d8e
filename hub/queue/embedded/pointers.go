package embedded

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"wf/hub/queue"
	"wf/protocol"
)

// Pointers is a queue.Pointers. What a lease decided, and a run that changed hands, is in the
// file when Swap returns; what workers say of their own runs within flushAfter, together.
type Pointers struct {
	db *bbolt.DB

	mu     sync.Mutex
	byRun  map[protocol.RunID]queue.Pointer
	behind map[protocol.RunID]bool // newer in memory than in the file
	timer  *time.Timer             // of the next flush; nil where nothing is behind
	closed bool
}

// flushAfter is for how long the file may be behind. What is lost by a crash meanwhile workers
// say again.
const flushAfter = time.Second

func newPointers(db *bbolt.DB) *Pointers {
	return &Pointers{db: db, byRun: map[protocol.RunID]queue.Pointer{}, behind: map[protocol.RunID]bool{}}
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
	if old.Epoch == x.Epoch && (old.Worker == x.Worker || old.Revision == 0) {
		p.fallBehind(x.Run)
	} else if err := p.write(x); err != nil {
		return old, fmt.Errorf("pointer of run %s: %w", x.Run, err)
	}
	p.byRun[x.Run] = x
	return x, nil
}

// fallBehind leaves a pointer to the next flush.
func (p *Pointers) fallBehind(run protocol.RunID) {
	p.behind[run] = true
	if p.timer == nil {
		p.timer = time.AfterFunc(flushAfter, p.flush)
	}
}

// flush writes what is behind. Where that fails the next flush tries again, and Close says so.
func (p *Pointers) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = nil
	if !p.closed && p.write() != nil {
		p.timer = time.AfterFunc(flushAfter, p.flush)
	}
}

// write puts the pointers that are behind into the file, and those of also.
func (p *Pointers) write(also ...queue.Pointer) error {
	err := p.db.Update(func(tx *bbolt.Tx) error {
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
	if p.timer != nil {
		p.timer.Stop()
	}
	if len(p.behind) == 0 {
		return nil
	}
	return p.write()
}
