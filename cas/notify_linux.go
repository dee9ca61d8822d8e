package cas

import (
	"os"

	"golang.org/x/sys/unix"
)

// watchFile calls wrote after writes to a file by any process, until stop is called; several
// writes may be one call. It fails where there are no more inotify instances for this user.
func watchFile(path string, wrote func()) (stop func(), err error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	f := os.NewFile(uintptr(fd), "inotify")
	if _, err := unix.InotifyAddWatch(fd, path, unix.IN_MODIFY); err != nil {
		_ = f.Close()
		return nil, &os.PathError{Op: "inotify_add_watch", Path: path, Err: err}
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		events := make([]byte, 4096) // equal events that wait are one
		for {
			if _, err := f.Read(events); err != nil {
				return // closed
			}
			wrote()
		}
	}()
	return func() {
		_ = f.Close()
		<-over
	}, nil
}
