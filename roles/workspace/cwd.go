package workspace

import (
	"fmt"
	"os"
	"path/filepath"
)

// A Cwd is an open directory in which a program is started.
type Cwd struct {
	// Path is what to give as the directory of the program, valid until Close. Where there is
	// a /proc it names the open directory itself, and so no link that appears in its place.
	// Elsewhere it is a path that led to the directory a moment ago: a process that puts a link
	// there just then has the program start where the link leads.
	Path string

	dir *os.File
}

// Enter opens the directory dir of the workspace root, "" for the workspace itself. dir is
// relative to root, or absolute within it. As for Open, links may not lead out of the workspace.
func Enter(root, dir string) (*Cwd, error) {
	if filepath.IsAbs(dir) {
		rel, err := filepath.Rel(root, dir)
		if err != nil {
			return nil, err
		}
		dir = rel
	}
	r, err := Open(root, dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	f, err := r.Open(".")
	if err != nil {
		return nil, err
	}
	c := &Cwd{fmt.Sprintf("/proc/self/fd/%d", f.Fd()), f}
	if !c.here() {
		if c.Path = filepath.Join(root, dir); !c.here() {
			c.Close()
			return nil, errMoved(c.Path)
		}
	}
	return c, nil
}

// here reports whether the path leads to the directory.
func (c *Cwd) here() bool {
	is, err := c.dir.Stat()
	if err != nil {
		return false
	}
	leads, err := os.Stat(c.Path)
	return err == nil && os.SameFile(is, leads)
}

// Close lets go of the directory; a program that has started in it stays there.
func (c *Cwd) Close() { c.dir.Close() }
