package appear

import (
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"wf/protocol"
	"wf/roles/workspace/control"
	"wf/roles/workspace/internal/at"
)

// A target lies in the workspace outside of the git directory, and its repository runs it or reads it as settings: a config names it, or
// a link leads there.
type target struct {
	name, path string // by which git acts on it, and to which that leads, absolute
	linked     bool
	stamp      uint64 // of the files there; while it is the same the content is
	content    uint64 // 0 is nothing
}

// found is a target as it is told.
func (t target) found(w *Watch) protocol.Found {
	f := protocol.Found{Kind: protocol.FoundHooks, Path: w.rel(t.path)}
	if t.linked {
		f.Link = w.rel(t.name)
	}
	return f
}

// at is what was known by a name.
func (s *state) at(name string) target {
	if s != nil {
		for _, t := range s.targets {
			if t.name == name {
				return t
			}
		}
	}
	return target{}
}

// renewTargets finds what a repository names. Its settings are read where they, or anything that they named, have changed.
func (w *Watch) renewTargets(eye *control.Eye, r Repository, before, now *state) error {
	if before != nil && before.settings == now.settings && w.asBefore(eye, before.targets) {
		now.targets, now.cut = before.targets, before.cut
		return nil
	}
	parts, err := r.Parts(eye)
	targets, cut, err := w.targets(parts, err)
	if err == nil && r.Kind != protocol.FoundStore {
		var called []control.Place
		called, err = eye.Called(r.Top(), parts)
		for _, p := range called {
			if !slices.ContainsFunc(targets, func(t target) bool { return t.path == p.Path }) {
				targets = append(targets, target{name: p.Name, path: p.Path})
			}
		}
	}
	now.targets, now.cut = targets, cut
	for i := range now.targets {
		t := &now.targets[i]
		var failed error
		if t.stamp, failed = w.stamp(eye, t.name); failed != nil {
			err = failed
		}
		if was := before.at(t.name); !t.linked && was.stamp == t.stamp && was.path == t.path {
			t.content = was.content
		} else {
			t.content = contentOf(t.path)
		}
	}
	return err
}

// tellTargets tells which are others than before.
func (w *Watch) tellTargets(before, now *state) {
	for _, t := range now.targets {
		if was := before.at(t.name); t.content != was.content && (t.content != 0 || t.linked) {
			f := t.found(w)
			f.Changed = was.content != 0
			w.found(f)
		}
	}
}

func (w *Watch) asBefore(eye *control.Eye, targets []target) bool {
	return !slices.ContainsFunc(targets, func(t target) bool {
		stamp, err := w.stamp(eye, t.name)
		// What is written by a mapping may leave all times as they are.
		return err != nil || stamp != t.stamp || t.linked && contentOf(t.path) != t.content
	})
}

// targets lists what a repository names in the workspace, without what is there. cut reports that there is more than is looked at: each look
// goes to all of it. What the whole repository lies in is reported by other means than a list of its files.
func (w *Watch) targets(parts control.Parts, err error) (out []target, cut bool, _ error) {
	for _, p := range parts.Places {
		if p.Inner || p.Whole || !w.holds(p) {
			continue
		}
		if len(out) == targetsMax {
			return out, true, err
		}
		out = append(out, target{name: p.Name, path: p.Path, linked: p.Linked()})
	}
	return out, parts.Cut, err
}

// holds reports whether a place, or a link that decides where it is, can be changed in the workspace.
func (w *Watch) holds(p control.Place) bool {
	in := func(path string) bool { return strings.HasPrefix(path, w.root+"/") }
	return in(p.Path) || slices.ContainsFunc(p.Links, func(l control.Link) bool { return !l.Own && in(l.Path) })
}

// openOurs opens a directory by its path without links, and gives its modes back where they are in the way.
func openOurs(eye *control.Eye, path string) (int, error) {
	fd, err := openBelow(unix.AT_FDCWD, path)
	if errors.Is(err, unix.EACCES) && eye.GiveBack(path) {
		fd, err = openBelow(unix.AT_FDCWD, path)
	}
	return fd, err
}

// stamp sums up the way to which a path leads, and the stamps of what is there; 0 is nothing.
func (w *Watch) stamp(eye *control.Eye, name string) (uint64, error) {
	place, err := eye.Follow(name)
	if err != nil || !place.There {
		return 0, err
	}
	sum := newSum()
	for _, l := range place.Links {
		sum.Write([]byte(l.Path + "\x00" + l.To + "\x00"))
	}
	dir, base := split(place.Path)
	fd, err := openOurs(eye, dir)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	sum.add(fd, base, targetDeep)
	return sum.Sum64(), nil
}

// contentOf sums up what is at an absolute path without links: what files hold, whether they are programs, where links lead. So what
// git writes anew, and leaves as it was, is the same. 0 is nothing.
func contentOf(path string) uint64 {
	dir, name := split(path)
	fd, err := openBelow(unix.AT_FDCWD, dir)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	if _, err := at.Stat(fd, name); err != nil {
		return 0
	}
	sum := newSum()
	sum.content(fd, name, targetDeep)
	return max(sum.Sum64(), 1)
}

// content takes in what a name of an open directory holds, down to some depth. Of a file that is longer than is read, and of anything
// else than files, directories and links, the stamp stands for it.
func (h hashed) content(dir int, name string, deep int) {
	s, err := at.Stat(dir, name)
	if err != nil {
		return
	}
	h.Write([]byte(name + "\x00"))
	h.Write(binary.LittleEndian.AppendUint32(nil, kindOf(&s)|uint32(s.Mode)&0o111))
	switch kindOf(&s) {
	case unix.S_IFREG:
		if h.bytes(dir, name, s.Size) {
			return
		}
	case unix.S_IFLNK:
		if to, err := at.Link(dir, name); err == nil {
			h.Write([]byte(to))
			return
		}
	case unix.S_IFDIR:
		fd, err := at.Open(dir, name, unix.O_DIRECTORY)
		if err != nil || deep == 0 {
			break
		}
		f := listing(fd)
		defer f.Close()
		for _, name := range someNames(f) {
			h.content(fd, name, deep-1)
		}
		return
	}
	h.add(dir, name, 0)
}

// bytes takes in a regular file, and reports whether that is all of it.
func (h hashed) bytes(dir int, name string, size int64) bool {
	f, err := at.Regular(dir, name)
	if err != nil {
		return false
	}
	defer f.Close()
	n, err := io.Copy(h, io.LimitReader(f, todoMax))
	return err == nil && n == size
}
