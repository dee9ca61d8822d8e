package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"wf/files"
	"wf/protocol"
)

// umask belongs to the whole process: one socket is made at a time.
var umask sync.Mutex

// listenUnix listens on a socket of mode 0600 in a directory of mode 0700, and takes
// connections of the own user only (OwnPeers). A lock beside the socket says whether its server lives: the
// socket of a dead one is replaced, that of a live one is an error wrapping protocol.ErrInUse
// that names the process.
func listenUnix(ctx context.Context, path string, log *slog.Logger) (net.Listener, error) {
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	if err := PrivateDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	lock, err := lockSocket(path)
	if err != nil {
		return nil, err
	}
	l, err := bind(ctx, path)
	if err != nil {
		return nil, errors.Join(err, files.FreeLock(lock))
	}
	return peers{OwnPeers(l, log), sync.OnceValue(func() error { return errors.Join(l.Close(), files.FreeLock(lock)) })}, nil
}

// PrivateDir makes a directory that only the own user can enter. One that is there and belongs to another
// user, or is a link, is an error wrapping protocol.ErrInsecure.
func PrivateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("directory of the socket: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("directory of the socket: %w", err)
	}
	if uid, ok := ownerOf(info); !info.IsDir() || ok && uid != os.Geteuid() {
		return protocol.ErrInsecure.With("choose another with --listen unix:PATH", "the directory %s of the socket is not one of your own", dir)
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("directory of the socket: %w", err)
	}
	return nil
}

// lockSocket takes the lock that a live server holds.
func lockSocket(path string) (*os.File, error) {
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock of the socket: %w", err)
	}
	free, err := files.TryLock(f, false)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock of the socket %s: %w", path, err), f.Close())
	}
	if !free {
		return nil, errors.Join(fmt.Errorf("%s listens on %s: %w", holderOf(f), path, protocol.ErrInUse), f.Close())
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock of the socket: %w", err), files.FreeLock(f))
	}
	return f, nil
}

func holderOf(f *os.File) string {
	var b [20]byte
	n, _ := f.ReadAt(b[:], 0) // short at the end of the file
	if pid, err := strconv.Atoi(strings.TrimSpace(string(b[:n]))); err == nil {
		return "process " + strconv.Itoa(pid)
	}
	return "another process"
}

// bind replaces what a dead server left behind, and nothing else.
func bind(ctx context.Context, path string) (*net.UnixListener, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("socket: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("%s is there and is no socket; remove it, or choose another with --listen unix:PATH: %w", path, protocol.ErrInUse)
	default:
		if c, err := net.Dial("unix", path); err == nil { // of a program that knows no lock
			return nil, errors.Join(fmt.Errorf("another program listens on %s: %w", path, protocol.ErrInUse), c.Close())
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("socket of a server that has ended: %w", err)
		}
	}
	umask.Lock()
	old := syscall.Umask(0o177)
	var c net.ListenConfig
	l, err := c.Listen(ctx, "unix", path)
	syscall.Umask(old)
	umask.Unlock()
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return l.(*net.UnixListener), nil
}

// peers takes connections of the own user only.
type peers struct {
	net.Listener
	close func() error // removes the socket and lets the lock go, once
}

func (p peers) Close() error { return p.close() }

// ownerOf is the user a file belongs to.
func ownerOf(info fs.FileInfo) (int, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}
