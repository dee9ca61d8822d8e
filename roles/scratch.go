package roles

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"wf/files"
	"wf/roles/workspace"
)

// A Spot is a directory for what has a name, one at a time: the same name has the same path.
//
//	NAME.lock       flock EX while it is used
//	NAME/work       where a command works, or NAME/work-*
//	NAME/private    what it keeps for itself
type Spot struct {
	// Waited is set where something else used the name first.
	Waited bool

	dir  string
	lock *os.File
}

// Work is where a command works.
func (s *Spot) Work() string { return filepath.Join(s.dir, "work") }

// Fresh is an empty directory that lies where no other one did: nothing that an earlier command left behind can know it.
func (s *Spot) Fresh() (string, error) { return os.MkdirTemp(s.dir, "work-") }

// Private is what it keeps for itself.
func (s *Spot) Private() string { return filepath.Join(s.dir, "private") }

// Claim waits until nothing else on this machine uses a name below root, and gives it an empty directory, until Leave is called.
func Claim(ctx context.Context, root, name string) (*Spot, error) {
	err := files.MakeDir(root)
	if err != nil {
		return nil, err
	}
	s := &Spot{dir: filepath.Join(root, name)}
	for {
		if s.lock, err = files.LockNamed(s.dir+".lock", os.O_CREATE); err == nil {
			break
		}
		if !errors.Is(err, files.ErrLocked) {
			return nil, err
		}
		s.Waited = true
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if err := errors.Join(workspace.RemoveAll(s.dir), os.MkdirAll(s.Work(), 0o700), os.MkdirAll(s.Private(), 0o700)); err != nil {
		s.Leave()
		return nil, err
	}
	return s, nil
}

// Leave removes the directory.
func (s *Spot) Leave() {
	_ = workspace.RemoveAll(s.dir) // what is left goes when the name comes next, or by SweepScratch
	_ = os.Remove(s.dir + ".lock")
	_ = files.FreeLock(s.lock)
}

// scratchOld is how old a directory is that a process left behind.
const scratchOld = 24 * time.Hour

// Scratch is an empty directory below root, until drop is called.
func Scratch(root string) (dir string, drop func(), err error) {
	if err := files.MakeDir(root); err != nil {
		return "", nil, err
	}
	dir, err = os.MkdirTemp(root, "tools-")
	return dir, func() { _ = workspace.RemoveAll(dir) }, err // what is left goes by SweepScratch
}

// SweepScratch removes what processes that were killed left behind.
func SweepScratch(root string) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return
	}
	for _, e := range entries {
		path := filepath.Join(root, e.Name())
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < scratchOld {
			continue
		}
		if strings.HasPrefix(e.Name(), "tools-") {
			_ = workspace.RemoveAll(path)
		}
		if strings.HasSuffix(e.Name(), ".lock") {
			if lock, err := files.LockNamed(path, 0); err == nil {
				(&Spot{dir: strings.TrimSuffix(path, ".lock"), lock: lock}).Leave()
			}
		}
	}
}
