// Package files opens what others may have put there: files of a store, a project or a daemon, which an
// agent, an archive or a clone can have written.
//
//	wf's own place     Open, Read, MakeDir    no link in place of the file is followed
//	                   Replace, ReplaceSoon   the file is written whole, and durable at once or soon
//	what a text names  OpenNamed, ReadNamed   links are followed, to a regular file
//
// A pipe or a device is refused and never waited for, and nothing is read without a bound. Directories
// above the last one are taken as they are. What a person names on a command line needs none of this: it
// may be a pipe.
package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrOdd is what is no regular file, or no directory, or longer than it may be. Its text names the path.
var ErrOdd = errors.New("not what wf makes")

// Open opens a regular file for reading. A link in its place is an error wrapping ErrOdd.
func Open(path string) (*os.File, error) { return OpenFile(path, os.O_RDONLY, 0) }

// OpenFile is Open with flags and a mode as those of os.OpenFile.
func OpenFile(path string, flags int, mode fs.FileMode) (*os.File, error) {
	return open(path, flags|unix.O_NOFOLLOW, mode)
}

// OpenNamed is Open for a path that may be a link.
func OpenNamed(path string) (*os.File, error) { return open(path, os.O_RDONLY, 0) }

func open(path string, flags int, mode fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flags|noWait, mode)
	if err != nil {
		if info, look := os.Lstat(path); look == nil && !info.Mode().IsRegular() && flags&unix.O_NOFOLLOW != 0 {
			return nil, odd("%s is not a regular file", path)
		}
		return nil, err
	}
	if err := regular(f); err != nil {
		return nil, err
	}
	return f, nil
}

// noWait is for the other end of a pipe.
const noWait = unix.O_NONBLOCK

// regular closes what is not a regular file.
func regular(f *os.File) error {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = odd("%s is not a regular file", f.Name())
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	return nil
}

// Read reads a regular file of at most so many bytes. A link in its place, or a longer one, is an error
// wrapping ErrOdd.
func Read(path string, most int64) ([]byte, error) {
	f, err := Open(path)
	return whole(f, err, most)
}

// ReadNamed is Read for a path that may be a link.
func ReadNamed(path string, most int64) ([]byte, error) {
	f, err := OpenNamed(path)
	return whole(f, err, most)
}

// ReadIn is Read for a file of a directory, where a link may lead to another file within it.
func ReadIn(dir, name string, most int64) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_RDONLY|noWait, 0)
	if err == nil {
		err = regular(f)
	}
	return whole(f, err, most)
}

// whole reads a file that could be opened, and closes it.
func whole(f *os.File, err error, most int64) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	var b []byte
	info, err := f.Stat()
	if err == nil && info.Size() > most {
		err = odd("has %d bytes, more than %d", info.Size(), most) // before memory is taken for them
	} else if err == nil {
		b, err = Bounded(f, most)
	}
	if errors.Is(err, ErrOdd) {
		err = fmt.Errorf("%s %w", f.Name(), err)
	}
	return b, errors.Join(err, f.Close())
}

// Bounded reads at most so many bytes; more are an error wrapping ErrOdd.
func Bounded(r io.Reader, most int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(b)) > most {
		return nil, odd("has more than %d bytes", most)
	}
	return b, err
}

// MakeDir makes a directory, mode 0700, with those above it. A link in its place is an error wrapping ErrOdd:
// what is written into it would lie elsewhere.
func MakeDir(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(path)
	if err == nil && !info.IsDir() {
		err = odd("%s is not a directory", path)
	}
	return err
}

// Replace writes a file whole or not at all: a temporary file beside it is synced and takes its name.
func Replace(path string, data []byte) error {
	if err := replace(path, data, (*os.File).Sync); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// ReplaceSoon is Replace for what can be made again: it waits for no disk, and a loss of power may leave the
// file empty.
func ReplaceSoon(path string, data []byte) error {
	return replace(path, data, func(*os.File) error { return nil })
}

func replace(path string, data []byte, sync func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, sync(f), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// SyncDir makes what was created, renamed or removed in a directory durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// odd is an error that wraps ErrOdd and says something of its own.
func odd(format string, args ...any) error { return oddity(fmt.Sprintf(format, args...)) }

type oddity string

func (o oddity) Error() string   { return string(o) }
func (o oddity) Is(e error) bool { return e == ErrOdd }
