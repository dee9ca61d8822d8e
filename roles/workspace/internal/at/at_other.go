//go:build !linux

package at

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

func walkAtOnce(int, string, int) (fd int, known bool, err error) { return -1, false, nil }

// PathOnly is nothing where the system has none.
const PathOnly = 0

func Nameless(int, uint32) (fd int, err error) { return -1, ErrCannot }

func Name(int, int, string) error { return ErrCannot }

func Exchange(int, string, string) error { return ErrCannot }

func Move(int, string, string) error { return ErrCannot }

func Written(int) bool { return false }

func Flush(int) error { unix.Sync(); return nil }

func Clone(int, int) error { return ErrCannot }

// Chmod sets the mode of an open file.
func Chmod(fd int, mode uint32) error {
	return again(func() error { return unix.Fchmod(fd, mode) })
}

// Ours opens a name in a directory, so that its mode can be set: where it may be read.
func Ours(dir int, name string) (fd int, err error) { return Open(dir, name, 0) }

// May takes everything for open to this user.
func May(int, uint32) bool { return true }

// Root is an open directory, as it is named elsewhere.
func Root(fd int) (*os.Root, error) { return os.OpenRoot(fmt.Sprintf("/dev/fd/%d", fd)) }

// Bound takes each socket for open: nothing masks them here.
func Bound(int, string) (bool, error) { return true, nil }
