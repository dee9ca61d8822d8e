package control

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"wf/protocol"
	"wf/roles/workspace"
	"wf/roles/workspace/internal/at"
)

// linksMax is how many links the kernel follows on the way of one path.
const linksMax = 40

// An Eye looks at one workspace, for one goroutine.
type Eye struct {
	root    string // absolute, without links
	indexes map[string]*index
	configs map[string][]setting
}

// At looks at the workspace with a root, absolute and without links.
func At(root string) *Eye { return &Eye{root: root} }

// Unseen is the error of what cannot be looked at.
func (e *Eye) Unseen(path string, why error) error {
	return protocol.ErrUnseen.With("give its owner back the mode (chmod u+rwx) or take it out of the workspace",
		"%s cannot be looked at, so that nothing would keep a command from changing it: %v", e.rel(path), why)
}

func (e *Eye) rel(path string) string {
	if path == e.root {
		return "the workspace"
	}
	return strings.TrimPrefix(path, e.root+"/")
}

// within reports whether a path lies in the workspace, or is its root.
func (e *Eye) within(path string) bool { return path == e.root || strings.HasPrefix(path, e.root+"/") }

// try looks, and once more where modes were in the way that could be given back.
func (e *Eye) try(path string, look func() error) (there bool, err error) {
	err = look()
	if errors.Is(err, unix.EACCES) && e.GiveBack(path) {
		err = look()
	}
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ENAMETOOLONG):
		return false, nil
	case !e.within(path):
		return false, nil // what the user cannot look at outside git, which runs as the user, does not read either
	}
	return false, e.Unseen(path, err)
}

// GiveBack gives the user rwx on the directories on the way to a path, and what is at its end to read, as far as they
// lie in the workspace and belong to the user. It reports whether any mode was another before.
func (e *Eye) GiveBack(path string) (gave bool) {
	if !e.within(path) {
		return false
	}
	dir, err := at.Ours(unix.AT_FDCWD, e.root)
	for _, name := range append(strings.Split(strings.TrimPrefix(path, e.root), "/"), "") {
		if err != nil {
			return gave
		}
		var s unix.Stat_t
		if err := unix.Fstat(dir, &s); err == nil && int(s.Uid) == os.Geteuid() {
			mode := uint32(s.Mode) & 0o7777 // 16 bits on some systems
			want := mode
			switch uint32(s.Mode) & unix.S_IFMT {
			case unix.S_IFDIR:
				want |= 0o700
			case unix.S_IFREG:
				want |= 0o400
			}
			if want != mode && at.Chmod(dir, want) == nil {
				gave = true
			}
		}
		if name == "" {
			continue // the root, or the end
		}
		var next int
		next, err = at.Ours(dir, name)
		unix.Close(dir)
		dir = next
	}
	if err == nil {
		unix.Close(dir)
	}
	return gave
}

// Lstat is lstat of an absolute path.
func (e *Eye) Lstat(path string) (s unix.Stat_t, there bool, err error) {
	there, err = e.try(path, func() (err error) { s, err = at.Stat(unix.AT_FDCWD, path); return err })
	return s, there, err
}

// kind is what lies at an absolute path, of unix.S_IFMT; 0 is nothing.
func (e *Eye) kind(path string) (uint32, error) {
	s, there, err := e.Lstat(path)
	if !there {
		return 0, err
	}
	return uint32(s.Mode) & unix.S_IFMT, nil
}

// link is the text of the link at an absolute path, "" for what is none.
func (e *Eye) link(path string) (to string, there bool, err error) {
	there, err = e.try(path, func() (err error) {
		if to, err = at.Link(unix.AT_FDCWD, path); errors.Is(err, at.ErrNoLink) {
			to, err = "", nil
		}
		return err
	})
	return to, there, err
}

// names lists up to most names of a directory, sorted; all is false where there are more. What is no directory has none.
func (e *Eye) names(dir string, most int) (names []string, all bool, err error) {
	all = true
	_, err = e.try(dir, func() error {
		fd, err := at.Walk(unix.AT_FDCWD, dir, unix.O_DIRECTORY)
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(fd), dir)
		defer f.Close()
		names, err = f.Readdirnames(most + 1)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		if len(names) > most {
			names, all = names[:most], false
		}
		return err
	})
	slices.Sort(names)
	return names, all, err
}

// read is the content of a regular file, up to a bound; nil for anything else.
func (e *Eye) read(path string, most int64) (b []byte, err error) {
	_, err = e.try(path, func() error {
		f, err := at.Regular(unix.AT_FDCWD, path)
		if errors.Is(err, at.ErrNoFile) || errors.Is(err, unix.ENXIO) { // the second: a socket
			return nil
		}
		if err != nil {
			return err
		}
		defer f.Close()
		b, err = io.ReadAll(io.LimitReader(f, most))
		return err
	})
	return b, err
}

// Made is where something lies at a path of the workspace, also behind a link that a command has put in the way; "" is
// nothing, and what git would find outside.
func (e *Eye) Made(path string) (string, error) {
	p, err := e.follow("/", filepath.Dir(path))
	if err != nil || !p.There || !e.within(p.Path) {
		return "", err
	}
	path = filepath.Join(p.Path, filepath.Base(path))
	if _, there, err := e.Lstat(path); err != nil || !there {
		return "", err
	}
	return path, nil
}

// Remove removes what is at a path of the workspace, with all below it, also where modes are in the way.
func (e *Eye) Remove(path string) error {
	root, err := e.open()
	if err != nil {
		return err
	}
	defer root.Close()
	name, err := filepath.Rel(e.root, path)
	if err != nil {
		return err
	}
	if err = root.RemoveAll(name); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	e.GiveBack(path)
	_ = fs.WalkDir(root.FS(), name, func(name string, d fs.DirEntry, _ error) error { // what stays closed is told when it is removed
		if d != nil && d.IsDir() {
			e.GiveBack(filepath.Join(e.root, name))
		}
		return nil
	})
	return root.RemoveAll(name)
}

// PutBack makes a link once more that a command has removed, or put something else in place of, and reports whether it did. What was
// there instead lies beside it then, under a name that git does not know: a person may have put it there.
func (e *Eye) PutBack(l Link) (bool, error) {
	if p, err := e.follow("/", filepath.Dir(l.Path)); err != nil || !p.There || p.Linked() {
		return false, err // it was moved away, with what it led to
	}
	to, there, err := e.link(l.Path)
	if err != nil || to == l.To {
		return false, err
	}
	root, err := e.open()
	if err != nil {
		return true, err
	}
	defer root.Close()
	name, err := filepath.Rel(e.root, l.Path)
	if err != nil {
		return true, err
	}
	put := func() error {
		if there {
			if err := aside(root, name, to != ""); err != nil {
				return err
			}
			there = false
		}
		return root.Symlink(l.To, name)
	}
	if err = put(); errors.Is(err, fs.ErrPermission) {
		e.GiveBack(filepath.Dir(l.Path))
		err = put()
	}
	return true, err
}

// asideMax is how many names are tried for what is moved out of the way.
const asideMax = 1_000

// aside moves what has a name out of the way; of a link nothing is kept.
func aside(root *os.Root, name string, link bool) error {
	if link {
		return root.Remove(name)
	}
	for n := range asideMax {
		to := fmt.Sprintf("%s.replaced-%d", name, n+1)
		if _, err := root.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			return root.Rename(name, to)
		}
	}
	return fmt.Errorf("%s.replaced-%d is there already: %w", name, asideMax, fs.ErrExist)
}

func (e *Eye) open() (*os.Root, error) {
	e.GiveBack(e.root)
	root, err := os.OpenRoot(workspace.Opened(e.root))
	return root, workspace.Named(err, e.root)
}
