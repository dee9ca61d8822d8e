package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"wf/roles/workspace/internal/at"
)

// A Place is where a file of a workspace is or would be: an open directory and a name in it
// that is no link, all links on the way being resolved.
type Place struct {
	Dir  *os.Root
	Base string   // a name in Dir, or "." for Dir itself
	Top  *os.Root // the directory that Find was given
	Path string   // from Top, without links

	info fs.FileInfo // nil where there is nothing
	open []*os.Root
}

// Close closes the directories on the way.
func (p *Place) Close() {
	for _, r := range p.open {
		r.Close()
	}
}

// linksMax is how many links a path may lead over, as in the kernel.
const linksMax = 40

// Find finds a file, by a path from the directory dir of the workspace root, and refuses with a
// *ReservedError what Access does not allow. To Write it makes missing directories. Links may not
// lead out of dir.
//
// Each directory is opened by its name in the one before, and is the one that was looked at:
// a link that appears in between is not followed. A process in the workspace can still rename
// a directory after it was opened, as it can rename any directory of its own.
func Find(root, dir, name string, access Access) (*Place, error) {
	w := walker{access: access}
	if err := w.begin(root); err != nil {
		return nil, err
	}
	err := w.enter(dir)
	if err == nil {
		w.base = len(w.at) - 1 // from here on no link leads further up
		w.place.Top, w.path = w.top(), nil
		err = w.walk(name)
	}
	if err != nil {
		w.place.Close()
		return nil, err
	}
	return &w.place, nil
}

type walker struct {
	access Access
	git    []fs.FileInfo // directories of the workspace's repository, wherever they are
	at     []*os.Root    // the directories on the way, the innermost last
	path   []string      // their names, from base
	base   int
	links  int
	place  Place
}

func (w *walker) begin(root string) error {
	r, err := openRoot(root)
	if err != nil {
		return err
	}
	w.push(r)
	if w.access == Write {
		w.git = gitDirs(r)
	}
	return nil
}

func (w *walker) push(r *os.Root) {
	w.at = append(w.at, r)
	w.place.open = append(w.place.open, r)
}

func (w *walker) top() *os.Root { return w.at[len(w.at)-1] }

// enter goes into a directory that exists.
func (w *walker) enter(dir string) error {
	if err := w.steps(dir, false); err != nil || w.place.Base == "." {
		return err
	}
	if w.place.info == nil {
		return &fs.PathError{Op: "open", Path: dir, Err: syscall.ENOENT}
	}
	return w.into(w.place.Base, w.place.info)
}

func (w *walker) walk(name string) error {
	if err := w.steps(name, w.access == Write); err != nil {
		return err
	}
	w.place.Dir = w.top()
	w.place.Path = path.Join(append(w.path, w.place.Base)...)
	if w.place.Base != "." {
		return nil
	}
	info, err := w.place.Dir.Stat(".")
	w.place.info = info
	return err
}

// steps follows a path up to its last part, which is left in place.
func (w *walker) steps(name string, mkdir bool) error {
	w.place.Base, w.place.info = ".", nil
	todo := parts(name)
	for len(todo) > 0 {
		part := todo[0]
		todo = todo[1:]
		if part == ".." {
			if len(w.at)-1 <= w.base {
				return errOutside
			}
			w.at, w.path = w.at[:len(w.at)-1], w.path[:len(w.path)-1]
			continue
		}
		if err := w.access.allowed(part); err != nil {
			return err
		}
		info, err := w.top().Lstat(part)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if info != nil && info.Mode()&fs.ModeSymlink != 0 {
			to, err := w.link(part)
			if err != nil {
				return err
			}
			todo = append(to, todo...)
			continue
		}
		if len(todo) == 0 {
			w.place.Base, w.place.info = part, info
			return nil
		}
		if info == nil {
			if info, err = w.mkdir(part, todo, mkdir); err != nil {
				return err
			}
		}
		if err := w.into(part, info); err != nil {
			return err
		}
	}
	return nil
}

// errOutside is compared by its text, as that of os.Root is: see Outside.
var errOutside = errors.New(escapes)

func parts(name string) []string {
	var out []string
	for _, part := range strings.Split(filepath.ToSlash(name), "/") {
		if part != "" && part != "." {
			out = append(out, part)
		}
	}
	return out
}

// link is where a link leads, as parts of a path.
func (w *walker) link(part string) ([]string, error) {
	if w.links++; w.links > linksMax {
		return nil, &fs.PathError{Op: "open", Path: part, Err: syscall.ELOOP}
	}
	to, err := w.top().Readlink(part)
	if err != nil {
		return nil, err
	}
	if filepath.IsAbs(to) {
		return nil, errOutside
	}
	return parts(to), nil
}

// mkdir makes a missing directory, unless what is to follow in it will be refused.
func (w *walker) mkdir(part string, todo []string, allowed bool) (fs.FileInfo, error) {
	if !allowed {
		return nil, &fs.PathError{Op: "open", Path: part, Err: syscall.ENOENT}
	}
	for _, next := range todo {
		if err := w.access.allowed(next); err != nil {
			return nil, err
		}
	}
	if err := w.top().Mkdir(part, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return w.top().Lstat(part)
}

// into opens the directory that was looked at.
func (w *walker) into(part string, info fs.FileInfo) error {
	if !info.IsDir() {
		return &fs.PathError{Op: "open", Path: part, Err: syscall.ENOTDIR}
	}
	for _, git := range w.git {
		if os.SameFile(git, info) {
			return &ReservedError{".git"}
		}
	}
	r, err := w.top().OpenRoot(part)
	if err != nil {
		return err
	}
	w.push(r)
	w.path = append(w.path, part)
	now, err := r.Stat(".")
	if err == nil && !os.SameFile(now, info) {
		err = errMoved(part)
	}
	return err
}

// Open opens the file for reading, if it is a regular one, without waiting for the other end of
// a pipe; OpenDir opens a directory.
func (p *Place) Open() (*os.File, error) { return p.opened(false) }

// OpenDir opens the place where it is a directory.
func (p *Place) OpenDir() (*os.File, error) { return p.opened(true) }

func (p *Place) opened(dir bool) (*os.File, error) {
	switch {
	case p.info == nil:
		return nil, &fs.PathError{Op: "open", Path: p.Path, Err: syscall.ENOENT}
	case dir && !p.info.IsDir():
		return nil, syscall.ENOTDIR
	case !dir && !p.info.Mode().IsRegular():
		return nil, at.ErrNoFile
	}
	f, err := p.Dir.OpenFile(p.Base, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	now, err := f.Stat()
	if err == nil && !os.SameFile(now, p.info) {
		err = errMoved(p.Path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// OpenRegular opens a regular file for reading, by a path; its links are followed as long as they stay in
// root. It does not wait for the other end of a pipe.
func OpenRegular(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = at.ErrNoFile
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Replace writes the file whole: readers see the old content or the new one. The mode of an
// existing file is kept. While it is written it has no name, where the file system can do so: then a process that is killed leaves
// nothing that git, or an agent, comes upon.
func (p *Place) Replace(content string) error {
	mode := fs.FileMode(0o666)
	if p.info != nil {
		if !p.info.Mode().IsRegular() {
			return at.ErrNoFile
		}
		mode = p.info.Mode().Perm()
	}
	temp := "." + p.Base + ".wf-tmp"
	// What an interrupted call left there, or a link in its place, is not written through.
	if err := p.Dir.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	write := func(f *os.File) error {
		_, err := f.WriteString(content)
		if err == nil && p.info != nil {
			err = f.Chmod(mode) // what the umask took
		}
		return err
	}
	err := p.nameless(temp, mode, write)
	if errors.Is(err, at.ErrCannot) {
		var f *os.File
		if f, err = p.Dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode); err != nil {
			return err
		}
		err = errors.Join(write(f), f.Close())
	}
	if err == nil {
		err = p.Dir.Rename(temp, p.Base)
	}
	if err != nil {
		if gone := p.Dir.Remove(temp); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// nameless writes a file that gets its name when it is whole. at.ErrCannot says that none can be made here, or none can be given a
// name later, as where there is no /proc.
func (p *Place) nameless(temp string, mode fs.FileMode, write func(*os.File) error) error {
	dir, err := p.Dir.Open(".")
	if err != nil {
		return at.ErrCannot // it may be one that cannot be read
	}
	defer dir.Close()
	fd, err := at.Nameless(int(dir.Fd()), uint32(mode))
	if err != nil {
		return at.ErrCannot
	}
	f := os.NewFile(uintptr(fd), temp)
	if err = write(f); err == nil && at.Name(fd, int(dir.Fd()), temp) != nil {
		err = at.ErrCannot
	}
	return errors.Join(err, f.Close())
}
