package cas

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"syscall"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"wf/protocol"
)

// classify puts the sentinel for what the system or bbolt said before err.
func classify(err error) error {
	var known *protocol.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	for _, c := range [...]struct{ cause, sentinel error }{
		{syscall.ENOSPC, protocol.ErrDiskFull},
		{syscall.EDQUOT, protocol.ErrDiskFull},
		{syscall.EFBIG, protocol.ErrDiskFull},
		{syscall.EROFS, protocol.ErrReadOnly},
		{fs.ErrPermission, protocol.ErrReadOnly},
		{berrors.ErrDatabaseReadOnly, protocol.ErrReadOnly},
		{berrors.ErrTimeout, protocol.ErrBusy},
	} {
		if errors.Is(err, c.cause) {
			return fmt.Errorf("%w: %w", c.sentinel, err)
		}
	}
	return fmt.Errorf("%w: %w", protocol.ErrStore, err)
}

// lost makes damage of a block that is not there though another one names it.
func lost(err error) error {
	if errors.Is(err, protocol.ErrNotFound) {
		return fmt.Errorf("%w: %w", protocol.ErrCorrupt, err)
	}
	return err
}

// panicked is damage that showed as a panic or a memory fault.
type panicked struct{ value any }

func (p *panicked) Error() string { return fmt.Sprintf("damaged page: %v", p.value) }

// Unwrap gives protocol.ErrCorrupt.
func (p *panicked) Unwrap() error { return protocol.ErrCorrupt }

// guard runs f on a database that may be damaged: bbolt checks only its meta pages, and
// flipped bits elsewhere can make it panic or read beyond the file.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			err = &panicked{v}
		}
	}()
	return f()
}

// view runs f in a read transaction, and lets other processes in afterwards where they queue. f must be short and
// copy out what it keeps.
func (s *Store) view(ctx context.Context, f func(*bolt.Tx) error) error {
	renewals := s.renewals.Load()
	err := s.viewOnce(ctx, f)
	if s.healed(ctx, err, renewals) {
		err = s.viewOnce(ctx, f)
	}
	return err
}

func (s *Store) viewOnce(ctx context.Context, f func(*bolt.Tx) error) error {
	h, err := s.gate.enter(ctx, false)
	if err != nil {
		return err
	}
	defer s.gate.leave(h, false)
	return guard(func() error { return h.db.View(f) })
}

// update runs f in a write transaction of its own, outside of the group commits, with all
// blocks in their index; for housekeeping.
func (s *Store) update(ctx context.Context, f func(*bolt.Tx) error) error {
	if s.opts.ReadOnly {
		return fmt.Errorf("%s was opened for reading: %w", s.gate.dir, protocol.ErrReadOnly)
	}
	renewals := s.renewals.Load()
	once := func() error {
		h, err := s.gate.enter(ctx, true)
		if err != nil {
			return err
		}
		return s.write(h, func(tx *bolt.Tx) error {
			lk := s.newLookup(tx)
			if err := lk.keepLate(len(lk.late), 0); err != nil {
				return classify(err)
			}
			return f(tx)
		})
	}
	err := once()
	if s.healed(ctx, err, renewals) {
		err = once()
	}
	return err
}

// write runs f in a write transaction, leaves h, and counts the commit.
func (s *Store) write(h *holding, f func(*bolt.Tx) error) error {
	var refused error // by f, and rolled back
	synced := func(error) {}
	err := guard(func() error {
		return h.db.Update(func(tx *bolt.Tx) error {
			// Guarded within the transaction: it is rolled back as any other.
			if refused = guard(func() error { return f(tx) }); refused != nil {
				return refused
			}
			if err := s.opts.before(OpCommit); err != nil {
				return err
			}
			// Before and after: a process killed between its commit and the count must not
			// hide the commit from followers, and a commit that is not there must not be announced.
			err := h.bump()
			synced = s.Measure(OpCommit)
			return err
		})
	})
	if refused != nil && errors.Is(err, refused) {
		s.gate.leave(h, false)
		return refused
	}
	synced(err)
	if err == nil {
		err = errors.Join(s.opts.before(OpCount), h.bump())
	}
	if _, ok := errors.AsType[*panicked](err); ok {
		s.gate.spoil(fmt.Errorf("%s: %w", s.gate.dir, err))
	}
	s.gate.leave(h, err != nil)
	if err != nil {
		return fmt.Errorf("commit to %s: %w", s.gate.dir, classify(err))
	}
	return nil
}
