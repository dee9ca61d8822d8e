package cas

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"

	"wf/files"
	"wf/protocol"
)

// Claim makes this process the only driver of a run until the claim is released or the process
// ends, however it ends. A run that is driven already is an error wrapping
// protocol.ErrRunLive that names the process. Nothing but another driver hinders it: Driven
// takes no lock. Nor does the end of ctx: a run that is to be suspended is claimed for that.
func (s *Store) Claim(_ context.Context, id protocol.RunID) (Claim, error) {
	if err := CheckRunID(id); err != nil {
		return nil, err
	}
	path := s.driveLock(id)
	if err := files.MakeDir(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("lock run %s: %w", id, classify(err))
	}
	f, err := openLock(path, false)
	if err != nil {
		return nil, fmt.Errorf("lock run %s: %w", id, classify(err))
	}
	ok, err := files.TryLock(f, false)
	if err == nil && ok {
		err = errors.Join(writePID(f), showLock(f))
	}
	switch {
	case err != nil:
		_ = f.Close()
		return nil, fmt.Errorf("lock run %s: %w", id, classify(err))
	case !ok:
		_ = f.Close()
		return nil, s.runLive(id)
	}
	return lockClaim{sync.OnceValue(func() error {
		return errors.Join(hideLock(f), files.FreeLock(f))
	})}, nil
}

// Driven reports whether a process drives a run, be it this one. It asks the kernel about the
// lock of Claim and takes none, so that it hinders no driver; nor does it open the database.
// A run that no process ever drove is not driven.
func (s *Store) Driven(_ context.Context, id protocol.RunID) (bool, error) {
	if err := CheckRunID(id); err != nil {
		return false, err
	}
	f, err := openLock(s.driveLock(id), true)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	held := false
	if err == nil {
		held, err = lockShown(f)
		_ = f.Close() // it was only read
	}
	if err != nil {
		return false, fmt.Errorf("see whether run %s is driven: %w", id, classify(err))
	}
	return held, nil
}

// Undriven is nil where no process drives a run, and where one does the error of Claim.
func (s *Store) Undriven(ctx context.Context, id protocol.RunID) error {
	driven, err := s.Driven(ctx, id)
	if err == nil && driven {
		err = s.runLive(id)
	}
	return err
}

func (s *Store) driveLock(id protocol.RunID) string {
	return filepath.Join(s.gate.dir, dirRuns, string(id)+".lock")
}

// runLive says that a run is driven, and names the process.
func (s *Store) runLive(id protocol.RunID) error {
	if pid, known := readPID(s.driveLock(id)); known {
		return protocol.ErrRunLive.With("", "run %s is driven by process %d", id, pid)
	}
	return protocol.ErrRunLive.With("", "run %s is driven by another process", id)
}
