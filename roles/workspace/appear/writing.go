package appear

import (
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"wf/protocol"
	"wf/roles/workspace"
	"wf/roles/workspace/control"
	"wf/roles/workspace/internal/at"
)

// A Writing is one file that a tool writes, where it is known which: nothing else is looked at.
type Writing struct {
	w     *Watch
	path  string          // from the workspace
	stamp stamp           // zero where there was nothing
	bare  map[string]bool // the directories on the way that were repositories
}

// Writing begins to write a file, at an absolute path, before directories are made for it.
func (w *Watch) Writing(path string) *Writing {
	x := &Writing{w: w, path: w.rel(real(path)), bare: map[string]bool{}}
	for _, dir := range x.way() {
		x.bare[dir] = w.isBare(dir)
	}
	return x
}

// Found says where the file is, as an absolute path without links: it is written next.
func (x *Writing) Found(path string) {
	x.path = x.w.rel(path)
	x.stamp = x.now()
}

// real is a path with its links resolved, as far as it exists.
func real(path string) string {
	if found, err := workspace.Real(path); err == nil || path == filepath.Dir(path) {
		return found
	}
	return filepath.Join(real(filepath.Dir(path)), filepath.Base(path))
}

func (x *Writing) now() stamp {
	s, err := statBelow(unix.AT_FDCWD, filepath.Join(x.w.root, x.path))
	if err != nil || !filepath.IsLocal(x.path) {
		return stamp{}
	}
	return stampOf(&s)
}

// way are the directories from the file up to the workspace; none for a file outside.
func (x *Writing) way() []string {
	var out []string
	for at := x.path; filepath.IsLocal(x.path) && at != "."; {
		at, _ = split(at)
		out = append(out, at)
	}
	return out
}

// End gives what appeared by the file; nil is nothing.
func (x *Writing) End() *protocol.Appeared {
	if now := x.now(); now == x.stamp || now == (stamp{}) {
		return nil
	}
	a := &protocol.Appeared{}
	was := x.stamp != (stamp{})
	add := func(f protocol.Found, changed bool) {
		f.Path, f.Changed = told(f.Kind, f.Path), changed
		if !slices.Contains(a.Found, f) {
			a.Found = append(a.Found, f)
		}
	}
	dir, name := split(x.path)
	kind, _ := classify(dir, name, 0)
	if kind == protocol.FoundWorkflow && !x.w.isWorkflow(x.path) {
		kind = ""
	}
	if kind != "" {
		add(protocol.Found{Kind: kind, Path: x.path}, was)
	}
	for _, dir := range x.way() {
		if !x.bare[dir] && x.w.isBare(dir) {
			add(protocol.Found{Kind: protocol.FoundBare, Path: dir}, false)
		}
	}
	for _, t := range x.targets() {
		if path := filepath.Join(x.w.root, x.path); path == t.path || strings.HasPrefix(path, t.path+"/") {
			add(t.found(x.w), was)
		}
	}
	if len(a.Found) == 0 {
		return nil
	}
	return a
}

// targets are what the repositories name on the way to the file. That one could not be looked at a look tells, as it does that there are more.
func (x *Writing) targets() (out []target) {
	eye := control.At(x.w.root)
	add := func(r Repository) {
		of, _, _ := x.w.targets(eye, r)
		out = append(out, of...)
	}
	for _, dir := range x.way() {
		top := filepath.Join(x.w.root, dir)
		add(repositoryOf(top))
		if x.bare[dir] {
			add(Repository{Kind: protocol.FoundBare, Path: top})
		}
	}
	if top, err := eye.Above(); err == nil && top != "" {
		add(repositoryOf(top))
	}
	return out
}

// isWorkflow is the function of that name for a path from the workspace.
func (w *Watch) isWorkflow(path string) bool {
	root, err := openBelow(unix.AT_FDCWD, w.root)
	if err != nil {
		return true
	}
	defer unix.Close(root)
	return isWorkflow(root, path)
}

// isBare reports whether git takes a directory for a repository without a worktree.
func (w *Watch) isBare(path string) bool {
	fd, err := openBelow(unix.AT_FDCWD, filepath.Join(w.root, path))
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var parts bareParts
	for _, name := range []string{"HEAD", "objects", "refs", "commondir"} {
		if _, err := at.Stat(fd, name); err == nil {
			parts.add(name)
		}
	}
	return parts.bare()
}
