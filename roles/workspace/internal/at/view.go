package at

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// A View is where the files of a directory are found that lie in layers: in a mount that no path of this process leads to. The
// directory itself is empty, and the mount lies over it for the commands that work there.
type View struct {
	Dir   *os.File                 // the mount, opened for its name alone
	Upper string                   // the directory of what is written, absolute
	Held  *os.File                 // a process that has it open keeps others from mounting these layers
	Clone func() (*os.File, error) // the mount once more, for a process to attach
	Close func() error             // once nothing uses it
}

// views are those of this process by the paths of their directories.
var views struct {
	sync.RWMutex
	at map[string]*View
}

// Show has this process find the files of a directory in a view until hide is called. The path is absolute; a second one of the
// same directory, without links, leads there too.
func Show(path string, v *View) (hide func(), err error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	set := func(v *View) {
		views.Lock()
		defer views.Unlock()
		if views.at == nil {
			views.at = map[string]*View{}
		}
		for _, path := range []string{filepath.Clean(path), real} {
			if views.at[path] = v; v == nil {
				delete(views.at, path)
			}
		}
	}
	set(v)
	return func() { set(nil) }, nil
}

// ViewOf is the view in which an absolute path lies, and the rest of the path from it, "." for its directory; nil is none.
func ViewOf(path string) (v *View, rest string) {
	views.RLock()
	defer views.RUnlock()
	if len(views.at) == 0 || !filepath.IsAbs(path) {
		return nil, ""
	}
	path = filepath.Clean(path)
	for dir := path; dir != "/"; dir = filepath.Dir(dir) {
		if v := views.at[dir]; v != nil {
			return v, "." + strings.TrimPrefix(path, dir)
		}
	}
	return nil, ""
}

// Opened is the path by which this process opens what an absolute path means.
func Opened(path string) string {
	v, rest := ViewOf(path)
	if v == nil {
		return path
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", v.Dir.Fd(), rest) // with the dot: the descriptor itself would be read as a link
}

// from is a path from a directory as the system is asked for it.
func from(dir int, path string) (int, string) {
	if dir != unix.AT_FDCWD {
		return dir, path
	}
	if v, rest := ViewOf(path); v != nil {
		return int(v.Dir.Fd()), rest
	}
	return dir, path
}
