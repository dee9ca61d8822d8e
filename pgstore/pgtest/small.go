package pgtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrNoMount is that this process may not mount a file system.
var ErrNoMount = errors.New("a file system cannot be mounted here")

// StartSmall is Start on a disk of its own with so many bytes, which Fill fills.
func StartSmall(bytes int64, settings ...string) (*Server, error) {
	return start(func(s *Server) error {
		if err := mount(&s.program, bytes); err != nil {
			return fmt.Errorf("%w: %w", ErrNoMount, err)
		}
		s.unmount = func() error { return unmount(s.dir) }
		return copyCluster(s)
	}, settings...)
}

// Fill leaves so many bytes free on the disk of a server of StartSmall.
func (s *Server) Fill(leave int64) error {
	free, err := free(s.dir)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(s.filler(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, max(free-leave, 0)))
	return errors.Join(err, f.Close())
}

// Free makes the space free again that Fill has taken.
func (s *Server) Free() error { return os.Remove(s.filler()) }

func (s *Server) filler() string { return filepath.Join(s.dir, "filler") }
