package guard

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"wf/files"
	"wf/protocol"
)

const (
	socketSuffix = ".sock"
	knockTime    = 200 * time.Millisecond // for one that is there and does not answer
)

// Sweep removes the sockets of servers that were killed from a directory of the user's own: those of the
// own user that refuse a connection. One with a lock that is held is about to be listened on, and stays; so does every
// other file. It returns how many went.
func Sweep(ctx context.Context, dir string) (int, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("sockets that were left behind: %w", err)
	}
	n := 0
	var errs []error
	for _, e := range entries {
		if e.Type() != fs.ModeSocket || !strings.HasSuffix(e.Name(), socketSuffix) || ctx.Err() != nil {
			continue
		}
		gone, err := sweep(ctx, filepath.Join(dir, e.Name()))
		if gone {
			n++
		}
		errs = append(errs, err)
	}
	return n, errors.Join(errs...)
}

// sweep removes a socket if it is dead.
func sweep(ctx context.Context, path string) (gone bool, err error) {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != fs.ModeSocket {
		return false, nil // gone meanwhile
	}
	if uid, ok := ownerOf(info); !ok || uid != os.Geteuid() {
		return false, nil
	}
	if _, err := os.Lstat(path + ".lock"); err == nil { // of a daemon; those of runs have none
		lock, err := lockSocket(path)
		if errors.Is(err, protocol.ErrInUse) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		defer func() { _ = files.FreeLock(lock) }() // fails only for a bad descriptor
	}
	ctx, cancel := context.WithTimeout(ctx, knockTime)
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	if err == nil {
		return false, c.Close()
	}
	if !errors.Is(err, unix.ECONNREFUSED) {
		return false, nil // it is there, and busy
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("socket of a server that was killed: %w", err)
	}
	return true, nil
}
