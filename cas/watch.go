package cas

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// counterSize is the length of the commit counter at the start of store.lock.
const counterSize = 8

// How often AwaitChange looks for commits of other processes where the system does not tell of
// them: less and less often where none comes, at intervals of a twentieth of the time since the
// last. Where it tells, a look now and then is for a lock file that was replaced.
const (
	pollEvery = 10 * time.Millisecond
	pollQuiet = 100 * time.Millisecond
	pollTold  = 2 * time.Second
)

// Changes is the commit counter: it grows with every commit of any process. Reading it takes
// no lock and does not open the database.
func (s *Store) Changes(ctx context.Context) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, context.Cause(ctx)
	}
	n, err := readCounter(filepath.Join(s.gate.dir, fileLock))
	if err != nil {
		return 0, fmt.Errorf("commit counter of %s: %w", s.gate.dir, classify(err))
	}
	return n, nil
}

// AwaitChange returns the commit counter as soon as it is not since. A follower reads the
// counter first, then the store, then waits: so it misses nothing.
func (s *Store) AwaitChange(ctx context.Context, since uint64) (uint64, error) {
	tick := time.NewTimer(pollEvery)
	defer tick.Stop()
	for {
		told := s.hearCommits()
		moved := s.moved.next()
		n, err := s.Changes(ctx)
		if err != nil || n != since {
			return n, err
		}
		wait := pollTold
		if quiet := s.moved.quiet(n); !told {
			wait = min(max(pollEvery, quiet/20), pollQuiet)
		}
		tick.Reset(wait)
		select {
		case <-moved:
		case <-tick.C:
		case <-ctx.Done():
			return n, context.Cause(ctx)
		}
	}
}

// hearCommits has the system tell of commits of other processes, once; it reports whether it does.
func (s *Store) hearCommits() bool {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.heard || s.deaf || s.closed {
		return s.heard
	}
	path := filepath.Join(s.gate.dir, fileLock)
	var last uint64 // of which followers were told
	stop, err := watchFile(path, func() {
		// The holder of the lock notes its pid in the same file: that is no commit.
		if n, err := readCounter(path); err != nil || n != last {
			last = n
			s.moved.signal()
		}
	})
	switch {
	case err == nil:
		s.heard = true
		s.atClose = append(s.atClose, stop)
	case !errors.Is(err, fs.ErrNotExist): // else the store is still to be made
		s.deaf = true
	}
	return s.heard
}

func readCounter(path string) (uint64, error) {
	f, err := openLock(path, true)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := counter(f)
	return n, errors.Join(err, f.Close())
}

func counter(f *os.File) (uint64, error) {
	var b [counterSize]byte
	if n, err := f.ReadAt(b[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	} else if n < counterSize {
		return 0, nil
	}
	return binary.LittleEndian.Uint64(b[:]), nil
}

// bump counts a commit; h holds the lock exclusively, so that no other process counts meanwhile.
func (h *holding) bump() error {
	h.counting.Lock()
	defer h.counting.Unlock()
	if !h.counted {
		n, err := counter(h.lock)
		if err != nil {
			return err
		}
		h.commits, h.counted = n, true
	}
	h.commits++
	var b [counterSize]byte
	binary.LittleEndian.PutUint64(b[:], h.commits)
	_, err := h.lock.WriteAt(b[:], 0)
	return err
}

// movedSignal wakes followers in this process at once.
type movedSignal struct {
	mu    sync.Mutex
	ch    chan struct{}
	count uint64    // the commit counter as it was last seen
	since time.Time // when it was seen first
}

// quiet is how long the commit counter is known to be n.
func (m *movedSignal) quiet(n uint64) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n != m.count || m.since.IsZero() {
		m.count, m.since = n, time.Now()
	}
	return time.Since(m.since)
}

func (m *movedSignal) next() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ch
}

func (m *movedSignal) signal() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.ch)
	m.ch = make(chan struct{})
}
