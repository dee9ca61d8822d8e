package appear

import (
	"errors"
	"io"
	"path/filepath"
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
	targets, cut, err := w.targets(eye, r)
	now.targets, now.cut = targets, cut
	for i := range now.targets {
		t := &now.targets[i]
		was := before.at(t.name)
		stamp, unseen := w.stamp(eye, t.name)
		if t.stamp, t.content = stamp, was.content; t.linked || was.stamp != stamp || was.path != t.path {
			content, unread := w.content(eye, t.path)
			if unread == nil { // else what was known stays, and that is told
				t.content = content
			}
			unseen = errors.Join(unseen, unread)
		}
		err = errors.Join(err, unseen)
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
		if err == nil && stamp == t.stamp && t.linked { // what is written by a mapping may leave all times as they are
			stamp, err = w.content(eye, t.path)
			return err != nil || stamp != t.content
		}
		return err != nil || stamp != t.stamp
	})
}

// targets lists what a repository names in the workspace, without what is there, and what its hooks call. cut reports that there is more than is
// looked at: each look goes to all of it. What the whole repository lies in is reported by other means than a list of its files.
func (w *Watch) targets(eye *control.Eye, r Repository) (out []target, cut bool, err error) {
	parts, err := r.Parts(eye)
	if err != nil {
		return nil, false, err
	}
	called, err := eye.Called(r.Top(), parts)
	for _, p := range slices.Concat(parts.Places, called) {
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

// openOurs opens a directory by its path without links.
func openOurs(eye *control.Eye, path string) (fd int, err error) {
	err = eye.Again(path, func() error { fd, err = openBelow(unix.AT_FDCWD, path); return err })
	return fd, err
}

// stamp sums up the way to which a path leads, and the stamps of what is there; 0 is nothing.
func (w *Watch) stamp(eye *control.Eye, name string) (uint64, error) {
	place, err := eye.Follow(name)
	if err != nil || !place.There {
		return 0, err
	}
	sum, err := w.sumOf(eye, place.Path, hashed.add)
	if err != nil || !place.Linked() {
		return sum, err
	}
	all := newSum()
	all.number(sum)
	for _, l := range place.Links {
		all.Write([]byte(l.Path + "\x00" + l.To + "\x00"))
	}
	return all.Sum64(), nil
}

// content sums up what is at an absolute path without links: what files hold, whether they are programs, where links lead. So what
// git writes anew, and leaves as it was, is the same. 0 is nothing.
func (w *Watch) content(eye *control.Eye, path string) (uint64, error) {
	if kind, err := eye.Kind(path); kind == 0 {
		return 0, err
	}
	return w.sumOf(eye, path, hashed.content)
}

// sumOf sums up what is at an absolute path without links, in one of two ways.
func (w *Watch) sumOf(eye *control.Eye, path string, add func(h hashed, dir int, name string, deep int) error) (uint64, error) {
	sum, dir := newSum(), filepath.Dir(path)
	err := eye.Again(path, func() error {
		fd, err := openBelow(unix.AT_FDCWD, dir)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		sum = newSum()
		sum.left = &w.left
		return add(sum, fd, filepath.Base(path), targetDeep)
	})
	if gone(err) {
		return 0, nil
	}
	return max(sum.Sum64(), 1), err
}

// content takes in what a name of an open directory holds, down to some depth. Of a file that is longer than is read, and of anything
// else than files, directories and links, the stamp stands for it. The error is of what cannot be looked at.
func (h hashed) content(dir int, name string, deep int) error {
	s, err := at.Stat(dir, name)
	if err != nil {
		return unseen(err)
	}
	h.Write([]byte(name + "\x00"))
	h.number(uint64(kindOf(&s) | uint32(s.Mode)&0o111))
	switch kindOf(&s) {
	case unix.S_IFREG:
		f, err := at.Regular(dir, name)
		if err != nil {
			return unseen(err)
		}
		defer f.Close()
		if h.left.bytes <= 0 {
			return errFlood
		}
		n, err := io.Copy(h, io.LimitReader(f, fileMax))
		if h.left.bytes -= n; err == nil && n == s.Size {
			return nil
		}
	case unix.S_IFLNK:
		to, err := at.Link(dir, name)
		h.Write([]byte(to))
		return unseen(err)
	case unix.S_IFDIR:
		if deep > 0 {
			return h.each(dir, name, func(fd int, name string) error { return h.content(fd, name, deep-1) })
		}
	}
	return h.add(dir, name, 0)
}
