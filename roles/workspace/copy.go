package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"wf/protocol/tree"
	"wf/roles/workspace/internal/at"
)

// Copying says what Copy copies.
type Copying struct {
	Choose tree.Chooser
	Max    int64 // bytes, of the files whose blocks the file system cannot share
	// Without is a directory that is left out, wherever it lies: the one in which copies are made. "" leaves out none.
	Without string
	// MaxFiles is how many files and links there may be; 0 is any number.
	MaxFiles int
	// Inward has links that lead by their absolute path into the directory lead to the same place of the copy.
	Inward bool
}

// Copied is what Copy has made.
type Copied struct {
	Files  int   // and links
	Bytes  int64 // of files, written
	Shared int64 // of files, of which the file system shares the blocks with the original
}

// A CopyError is a directory that is too large to be copied.
type CopyError struct {
	Files      int
	Bytes, Max int64
	MaxFiles   int // if there are too many
}

func (e *CopyError) Error() string {
	if e.MaxFiles > 0 {
		return fmt.Sprintf("a copy of the workspace may have %d files, and there are more", e.MaxFiles)
	}
	return fmt.Sprintf("a copy of the workspace has %d files with %.1f MB, and may have %.1f MB", e.Files, float64(e.Bytes)/1e6, float64(e.Max)/1e6)
}

// Copy makes an empty directory like another, as far as the files of that are chosen: regular files with their permissions
// and times, links with their text, and the directories that they lie in. Where the file system can share the blocks of a file it
// does; else they are copied, up to c.Max bytes, beyond which there is a *CopyError, and before anything was written if the
// files are that large from the start.
//
// The directory may be written meanwhile, and by anyone: no link is followed, and nothing but a regular file is read. What may not
// be read, and what git and wf act on (.git, .wf), is left out.
func Copy(ctx context.Context, from, to string, c Copying) (out Copied, err error) {
	source, err := unix.Open(from, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return out, fmt.Errorf("workspace: %w", err)
	}
	defer unix.Close(source)
	target, err := unix.Open(to, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return out, fmt.Errorf("workspace: %w", err)
	}
	defer unix.Close(target)
	x := &copier{Copying: c, taker: taker{ctx: ctx}, from: from, shares: true}
	if c.Without != "" {
		if err := unix.Stat(c.Without, &x.without); err != nil {
			return out, fmt.Errorf("workspace: %w", err)
		}
	}
	if err := x.dir(source, -1, "", c.Choose, 1); err != nil {
		return out, err
	}
	x.all, x.done = x.done, Copied{}
	x.looks.Store(0)
	err = x.dir(source, target, "", c.Choose, 1)
	return x.done, err
}

type copier struct {
	Copying
	taker
	from      string
	all, done Copied
	shares    bool // the file system shares blocks, as far as is known
	without   unix.Stat_t
}

// dir copies a directory into another; to is −1 to count alone.
func (x *copier) dir(from, to int, path string, spot tree.Chooser, depth int) error {
	if depth > tree.DepthMax {
		return &LimitError{path, fmt.Sprintf("more than %d directories within each other", tree.DepthMax), "max_files"}
	}
	// A descriptor of its own reads the names from the first one on.
	fd, err := at.Open(from, ".", unix.O_DIRECTORY)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	names, err := x.names(fd, path)
	unix.Close(fd)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := x.ctx.Err(); err != nil {
			return err
		}
		if tree.Reserved(name) != "" {
			continue
		}
		if err := x.entry(from, to, name, join(path, name), spot, depth); err != nil {
			return err
		}
	}
	return nil
}

// entry copies what lies under a name. What went away, or may not be read, is left out.
func (x *copier) entry(from, to int, name, path string, spot tree.Chooser, depth int) error {
	s, err := at.Stat(from, name)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	}
	kind := s.Mode & unix.S_IFMT
	switch {
	case kind == unix.S_IFDIR:
		if err = x.below(from, to, name, path, spot, depth); gone(err) {
			err = nil
		}
		return err
	case kind != unix.S_IFREG && kind != unix.S_IFLNK, !spot.Takes(name):
		return nil
	case to < 0:
		if x.done.Files++; x.MaxFiles > 0 && x.done.Files > x.MaxFiles {
			return &CopyError{Files: x.done.Files, Bytes: x.done.Bytes, MaxFiles: x.MaxFiles}
		}
		if kind == unix.S_IFREG {
			x.done.Bytes += s.Size
		}
		return nil
	case kind == unix.S_IFLNK:
		err = x.link(from, to, name, path)
	default:
		err = x.file(from, to, name)
	}
	if gone(err) {
		return nil
	}
	if _, known := errors.AsType[*CopyError](err); err != nil && !known {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return err
}

// gone reports whether an error says that something is not there any more, is another thing now, or may not be read.
func gone(err error) bool {
	s, ok := errors.AsType[errSource](err)
	return ok && noFile(s.error)
}

// errSource is an error of the directory that is copied, not of the copy.
type errSource struct{ error }

func (e errSource) Unwrap() error { return e.error }

func ofSource(err error) error {
	if err == nil {
		return nil
	}
	return errSource{err}
}

func (x *copier) below(from, to int, name, path string, spot tree.Chooser, depth int) error {
	inner, err := spot.Enter(name)
	if inner == nil || err != nil {
		return err
	}
	fd, err := at.Open(from, name, unix.O_DIRECTORY)
	if err != nil {
		return ofSource(err)
	}
	defer unix.Close(fd)
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if x.Without != "" && inodeOf(&s) == inodeOf(&x.without) {
		return nil
	}
	made := -1
	if to >= 0 {
		if err := unix.Mkdirat(to, name, 0o700); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if made, err = at.Open(to, name, unix.O_DIRECTORY); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		defer unix.Close(made)
	}
	if err := x.dir(fd, made, path, inner, depth+1); err != nil || to < 0 {
		return err
	}
	return unix.Fchmod(made, uint32(s.Mode)&0o777|0o700)
}

func (x *copier) link(from, to int, name, path string) error {
	text, err := at.Link(from, name)
	if err != nil {
		return ofSource(err)
	}
	x.done.Files++
	if into, err := filepath.Rel(x.from, text); x.Inward && err == nil && filepath.IsAbs(text) && filepath.IsLocal(into) {
		if text, err = filepath.Rel("/"+filepath.Dir(path), "/"+into); err != nil {
			return err
		}
	}
	return unix.Symlinkat(text, to, name)
}

// file copies a file. One that changes meanwhile is copied again, a few times.
func (x *copier) file(from, to int, name string) error {
	for i := 1; ; i++ {
		same, err := x.once(from, to, name)
		if err != nil || same || i == readings {
			return err
		}
		if err := unix.Unlinkat(to, name, 0); err != nil {
			return err
		}
		x.done.Files--
	}
}

// once copies a file as it is now; same reports whether it stayed so meanwhile.
func (x *copier) once(from, to int, name string) (same bool, err error) {
	f, err := at.Regular(from, name)
	if err != nil {
		return false, ofSource(err)
	}
	defer f.Close()
	var s unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &s); err != nil {
		return false, err
	}
	fd, err := unix.Openat(to, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return false, err
	}
	g := os.NewFile(uintptr(fd), name)
	defer g.Close()
	if err := x.content(g, f, s.Size); err != nil {
		return false, err
	}
	x.done.Files++
	if err := unix.Fchmod(fd, uint32(s.Mode)&0o777); err != nil {
		return false, err
	}
	if err := unix.UtimesNanoAt(to, name, []unix.Timespec{s.Atim, s.Mtim}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return false, err
	}
	now, err := statFile(int(f.Fd()))
	return now == statOf(&s), err
}

// content gives a file the content of another.
func (x *copier) content(to, from *os.File, size int64) error {
	if x.shares && size > 0 {
		err := at.Clone(int(to.Fd()), int(from.Fd()))
		if err == nil {
			x.done.Shared += size
			return nil
		}
		if !errors.Is(err, at.ErrCannot) {
			return err
		}
		if x.shares = false; x.all.Bytes-x.done.Shared > x.Max {
			return x.tooMuch()
		}
	}
	if x.done.Bytes+size > x.Max {
		return x.tooMuch()
	}
	n, err := io.Copy(to, io.LimitReader(from, size))
	x.done.Bytes += n
	return err
}

func (x *copier) tooMuch() error {
	return &CopyError{Files: max(x.all.Files, x.done.Files), Bytes: max(x.all.Bytes, x.done.Bytes+1), Max: x.Max}
}

// Flush has the file system of a directory write what it has.
func Flush(dir string) error {
	fd, err := unix.Open(Opened(dir), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("workspace: %w", err)
	}
	defer unix.Close(fd)
	return at.Flush(fd)
}
