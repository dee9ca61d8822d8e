package compose

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"wf/protocol"
	"wf/roles/workspace"
)

// A File is a file that a person names to be written. In the project it is reached below the project's
// directory alone: an agent that works there may have left a link, and what it says would be written to
// where that leads.
type File struct {
	path string // as it was named
	name string // in dir
	dir  directory
}

// A directory is an os.Root, or everywhere.
type directory interface {
	OpenFile(name string, flags int, mode fs.FileMode) (*os.File, error)
	Stat(name string) (fs.FileInfo, error)
	Chmod(name string, mode fs.FileMode) error
	Rename(from, to string) error
	Remove(name string) error
	Close() error
}

// OutFile finds where a path leads; close it.
func OutFile(path string) (*File, error) {
	whole, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	project := ProjectOf(here) // links resolved
	_, touched := workspace.Through(project, whole)
	if real, err := filepath.EvalSymlinks(whole); err == nil {
		whole = real
	} else if dir, err := filepath.EvalSymlinks(filepath.Dir(whole)); err == nil {
		whole = filepath.Join(dir, filepath.Base(whole))
	}
	rel, within := workspace.Through(project, whole)
	refused := func(why string) error {
		return protocol.ErrUsage.With("remove it, or name the file itself", "%s is not written: %s, and an agent that worked here may have left it", path, why)
	}
	switch info, err := os.Lstat(whole); {
	case !touched:
		return &File{path, whole, everywhere{}}, nil
	case !within:
		return nil, refused("a link in the project leads to " + whole)
	case err == nil && info.Mode().Type() == fs.ModeSymlink:
		return nil, refused("it is a link to what is not there")
	}
	root, err := os.OpenRoot(project)
	if err != nil {
		return nil, err
	}
	return &File{path, rel, root}, nil
}

func (o *File) Close() { o.dir.Close() }

// Open opens it for writing, and makes it where it is not there.
func (o *File) Open(flags int, mode fs.FileMode) (*os.File, error) {
	f, err := o.dir.OpenFile(o.name, os.O_WRONLY|os.O_CREATE|flags, mode)
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	if err != nil {
		return nil, protocol.ErrUsage.With("", "%s cannot be written: %v", o.path, err)
	}
	return f, nil
}

// Modes of files that are made: what a run holds is its user's alone, as with restic, and what is made to be handed on, such as
// the report of a test, is as the user's umask has it.
const (
	Private fs.FileMode = 0o600
	Shared  fs.FileMode = 0o666
)

// Replace has write fill it. One that is there keeps its mode, and its old content until the new one is complete; one that is not is made with mode. What is no
// file, a pipe or a device, is written to as it is.
func (o *File) Replace(mode fs.FileMode, write func(io.Writer) error) error {
	made := mode
	switch info, err := o.dir.Stat(o.name); {
	case err == nil && info.IsDir():
		return protocol.ErrUsage.With("", "%s is a directory; name a file in it", o.path)
	case err == nil && !info.Mode().IsRegular():
		f, err := o.dir.OpenFile(o.name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	case err == nil:
		made, mode = Private, info.Mode().Perm()
	}
	fresh := filepath.Join(filepath.Dir(o.name), ".wf-export-"+rand.Text())
	f, err := o.dir.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, made)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return protocol.ErrUsage.With("", "there is no directory %s", filepath.Dir(o.path))
	case err != nil:
		return fmt.Errorf("write %s: %w", o.path, err)
	}
	if err = write(f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil && made != mode {
		err = o.dir.Chmod(fresh, mode)
	}
	if err == nil {
		err = o.dir.Rename(fresh, o.name)
	}
	if err != nil {
		return errors.Join(err, o.dir.Remove(fresh))
	}
	return nil
}

// everywhere is the directory of paths that lead through no workspace.
type everywhere struct{}

func (everywhere) OpenFile(name string, flags int, mode fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flags, mode)
}
func (everywhere) Stat(name string) (fs.FileInfo, error)     { return os.Stat(name) }
func (everywhere) Chmod(name string, mode fs.FileMode) error { return os.Chmod(name, mode) }
func (everywhere) Rename(from, to string) error              { return os.Rename(from, to) }
func (everywhere) Remove(name string) error                  { return os.Remove(name) }
func (everywhere) Close() error                              { return nil }
