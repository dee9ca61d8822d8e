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
	"wf/roles/workspace/internal/at"
)

// linksMax is how many links the kernel follows on the way of one path.
const linksMax = 40

// An Eye looks at one workspace, for one goroutine.
type Eye struct {
	root    string               // absolute, without links
	indexes map[string][]string  // what git tracks, by the file that says so
	configs map[string][]setting // by file
	users   []Place              // the configs of the user; nil before they are asked for
}

// At looks at the workspace with a root, absolute and without links.
func At(root string) *Eye { return &Eye{root: root} }

// Unseen is the error of what cannot be looked at.
func (e *Eye) Unseen(path string, why error) error {
	return protocol.ErrUnseen.With("chmod u+rwx "+protocol.ShellWord(path)+" as its owner, or take it out of the workspace",
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

// Again does something with a path, and once more where modes were in the way that could be given back.
func (e *Eye) Again(path string, do func() error) error {
	err := do()
	if errors.Is(err, unix.EACCES) && e.GiveBack(path) {
		err = do()
	}
	return err
}

// try is Again for a look.
func (e *Eye) try(path string, look func() error) (there bool, err error) {
	err = e.Again(path, look)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ENAMETOOLONG):
		return false, nil
	case !e.within(path):
		return false, nil // what the user cannot look at outside git, which runs as the user, does not read either
	case errors.Is(err, unix.EACCES) && e.Closed(path):
		return false, nil // nor what another user keeps from this one, and so from commands
	}
	return false, e.Unseen(path, err)
}

// way goes to a path of the workspace by its parts, and opens each for its name alone. step is called with the root and each of them;
// the last one that could be opened is given with the error of the next.
func (e *Eye) way(path string, step func(fd int, s unix.Stat_t)) error {
	if !e.within(path) {
		return fs.ErrInvalid
	}
	fd, err := at.Ours(unix.AT_FDCWD, e.root)
	for _, name := range strings.Split(strings.TrimPrefix(path, e.root), "/") {
		if err != nil {
			return err
		}
		if name != "" {
			var next int
			next, err = at.Ours(fd, name)
			unix.Close(fd)
			if fd = next; err != nil {
				return err
			}
		}
		var s unix.Stat_t
		if err := unix.Fstat(fd, &s); err == nil {
			step(fd, s)
		}
	}
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// Closed reports whether the last thing that is reached on the way to a path belongs to another user, and this one, and so a command, can
// neither enter nor write it.
func (e *Eye) Closed(path string) (is bool) {
	_ = e.way(path, func(fd int, s unix.Stat_t) { // how far it leads is what is asked
		is = int(s.Uid) != os.Geteuid() && !at.May(fd, unix.W_OK) && (s.Mode&unix.S_IFMT != unix.S_IFDIR || !at.May(fd, unix.X_OK))
	})
	return is
}

// GiveBack lets the user read what is at a path, and gives rwx on the directories on the way to it that the user cannot enter or
// read, as far as they lie in the workspace and belong to the user. It reports whether any mode was another before.
func (e *Eye) GiveBack(path string) bool { return e.give(path, false) }

// give is GiveBack, and where something is to be written in the directory at the path lets the user do that.
func (e *Eye) give(path string, write bool) (gave bool) {
	left := strings.Count(strings.TrimPrefix(path, e.root), "/") // parts of the way
	_ = e.way(path, func(fd int, s unix.Stat_t) {                // what is not reached has no mode to give
		last := left == 0
		left--
		mode := uint32(s.Mode) & 0o7777 // 16 bits on some systems
		want := mode
		switch kind := uint32(s.Mode) & unix.S_IFMT; {
		case kind == unix.S_IFDIR && (mode&0o500 != 0o500 || last && write):
			want |= 0o700
		case kind == unix.S_IFREG:
			want |= 0o400
		}
		if int(s.Uid) == os.Geteuid() && want != mode && at.Chmod(fd, want) == nil {
			gave = true
		}
	})
	return gave
}

// Lstat is lstat of an absolute path.
func (e *Eye) Lstat(path string) (s unix.Stat_t, there bool, err error) {
	there, err = e.try(path, func() (err error) { s, err = at.Stat(unix.AT_FDCWD, path); return err })
	return s, there, err
}

// Kind is what lies at an absolute path without links, of unix.S_IFMT; 0 is nothing.
func (e *Eye) Kind(path string) (uint32, error) {
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

// Names lists up to most names of a directory without links on the way, sorted; all is false where there are more. What is no directory
// has none.
func (e *Eye) Names(dir string, most int) (names []string, all bool, err error) {
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

// Read is the content of the regular file to which a path leads, up to a bound; nil for anything else.
func (e *Eye) Read(path string, most int64) ([]byte, error) {
	p, err := e.Follow(path)
	if err != nil || !p.There {
		return nil, err
	}
	return e.read(p.Path, most)
}

// read is Read of a path without links.
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

// A Spot is a name in a directory, as long as that is the same one.
type Spot struct {
	Path     string // absolute, without links
	dev, ino uint64 // of the directory
}

// Spot is where a path of the workspace lies now; its directory is there.
func (e *Eye) Spot(path string) (Spot, error) {
	s, _, err := e.Lstat(filepath.Dir(path))
	return Spot{path, uint64(s.Dev), s.Ino}, err // 32 bits on some systems
}

// asideMax is how many things that had one name are kept aside: the last one of them is replaced.
const asideMax = 100

// PutAside moves what lies at a spot out of the way, to a name beside it that git does not know, and says which; "" is nothing. A person may
// have put it there.
func (e *Eye) PutAside(spot Spot) (to string, err error) {
	if _, there, err := e.Lstat(spot.Path); err != nil || !there {
		return "", err
	}
	err = e.in(spot, func(in *os.Root, name string) (err error) {
		if to, err = freeAside(in, name); err != nil {
			return err
		}
		if err := e.removeIn(in, filepath.Dir(spot.Path), to); err != nil {
			return err
		}
		return in.Rename(name, to)
	})
	return to, err
}

// freeAside is the first name that is free for what has a name in an open directory, and else the last one.
func freeAside(in *os.Root, name string) (string, error) {
	for n := 1; n < asideMax; n++ {
		if _, err := in.Lstat(aside(name, n)); errors.Is(err, fs.ErrNotExist) {
			return aside(name, n), nil
		} else if err != nil {
			return "", err
		}
	}
	return aside(name, asideMax), nil
}

// aside is the nth name to which something is moved.
func aside(name string, n int) string {
	if n == 1 {
		return name + ".removed"
	}
	return fmt.Sprintf("%s.removed-%d", name, n)
}

// IsAside reports whether a name is one to which something was moved.
func IsAside(name string) bool {
	of, n, _ := strings.Cut(name, ".removed")
	return len(of) < len(name) && slices.ContainsFunc(parts, func(p part) bool { return p.unwanted && p.name == of }) && (n == "" || n[0] == '-')
}

// PutBack makes a link once more that a command has removed, or put something else in place of, which is moved aside. It reports whether it did.
func (e *Eye) PutBack(l Link) (did bool, err error) {
	if to, _, err := e.link(l.Path); err != nil || to == l.To {
		return false, err
	}
	err = e.in(l.at, func(in *os.Root, name string) error {
		did = true
		if _, err := in.Readlink(name); err == nil { // of another link nothing is kept
			if err := in.Remove(name); err != nil {
				return err
			}
		} else if _, err := e.PutAside(l.at); err != nil {
			return err
		}
		return in.Symlink(l.To, name)
	})
	return did, err
}

// in does something with the name of a spot in its directory, and once more where modes were in the way. It does nothing where that
// directory is not there any more, or another.
func (e *Eye) in(spot Spot, do func(in *os.Root, name string) error) error {
	once := func() error {
		dir, err := e.enter(spot)
		if dir == nil || err != nil {
			return err
		}
		defer dir.Close()
		return do(dir, filepath.Base(spot.Path))
	}
	err := once()
	if errors.Is(err, fs.ErrPermission) && e.give(filepath.Dir(spot.Path), true) {
		err = once()
	}
	return err
}

// enter opens the directory of a spot, also where a command has moved it and put a link in its place; nil is one that is not there any
// more, or another.
func (e *Eye) enter(spot Spot) (in *os.Root, err error) {
	dir, err := e.Follow(filepath.Dir(spot.Path))
	if err != nil || !dir.There || !e.within(dir.Path) {
		return nil, err
	}
	there, err := e.try(dir.Path, func() error {
		fd, err := at.Walk(unix.AT_FDCWD, dir.Path, unix.O_DIRECTORY)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		var s unix.Stat_t
		if err := unix.Fstat(fd, &s); err != nil {
			return err
		}
		same := uint64(s.Dev) == spot.dev && s.Ino == spot.ino
		if view, _ := at.ViewOf(dir.Path); view != nil { // in layers a directory gets another number once it is written
			same = !dir.Linked()
		}
		if !same {
			return unix.ENOENT
		}
		in, err = at.Root(fd)
		return err
	})
	if !there {
		return nil, err
	}
	return in, nil
}

// removeIn removes a name of an open directory with all below it, also where modes are in the way.
func (e *Eye) removeIn(in *os.Root, dir, name string) error {
	err := in.RemoveAll(name)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	e.give(dir, true)
	_ = fs.WalkDir(in.FS(), name, func(name string, d fs.DirEntry, _ error) error { // what stays closed is told when it is removed
		if d != nil && d.IsDir() {
			e.give(filepath.Join(dir, name), true)
		}
		return nil
	})
	return in.RemoveAll(name)
}
