package filestest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// inotify is a watch of the kernel.
type inotify struct {
	ctx  context.Context
	fd   int
	f    *os.File // reads it
	stop func() bool
}

func newWatch(ctx context.Context) (watch, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	w := &inotify{ctx: ctx, fd: fd, f: os.NewFile(uintptr(fd), "inotify")}
	w.stop = context.AfterFunc(ctx, func() { _ = w.f.SetReadDeadline(time.Unix(1, 0)) }) // it may be closed
	return w, nil
}

// add watches a directory too; one that was removed meanwhile is left out.
func (w *inotify) add(dir string) error {
	const changes = unix.IN_CREATE | unix.IN_MODIFY | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_DELETE | unix.IN_ATTRIB
	if _, err := unix.InotifyAddWatch(w.fd, dir, changes); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &os.PathError{Op: "inotify_add_watch", Path: dir, Err: err}
	}
	return nil
}

// next waits for a change since it was called last.
func (w *inotify) next() error {
	var events [4096]byte
	if _, err := w.f.Read(events[:]); err != nil {
		if w.ctx.Err() != nil {
			return context.Cause(w.ctx)
		}
		return err
	}
	return nil
}

func (w *inotify) close() {
	w.stop()
	_ = w.f.Close()
}
