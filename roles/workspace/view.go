package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"wf/roles/workspace/internal/at"
)

// A View is where the files of a directory are found that lie in layers: in a mount that no path of this process leads to. What
// this package opens by the path of the directory it finds in there; others open what Opened says, and resolve links by Real.
type View = at.View

// Show has this process find the files of a directory, an absolute path, in a view until hide is called.
func Show(dir string, v *View) (hide func(), err error) { return at.Show(dir, v) }

// ViewOf is the view in which a path lies, nil for none.
func ViewOf(path string) *View {
	v, _ := at.ViewOf(path)
	return v
}

// Opened is the path by which this process opens what an absolute path means. It holds for one call, is for no other process, and is
// never shown.
func Opened(path string) string { return at.Opened(path) }

// Real is filepath.EvalSymlinks of an absolute path, which may lie in a view.
func Real(path string) (string, error) {
	if v, _ := at.ViewOf(path); v == nil {
		return filepath.EvalSymlinks(path)
	}
	real, _, err := follow(path, func(string, string) bool { return false })
	if err == nil {
		_, err = os.Lstat(Opened(real))
		err = Named(err, real)
	}
	return real, err
}

// Named is an error of opening what Opened says, as one of the path itself.
func Named(err error, path string) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return &os.PathError{Op: e.Op, Path: path, Err: e.Err}
	}
	return err
}

// openRoot is os.OpenRoot of a path that may lie in a view.
func openRoot(path string) (*os.Root, error) {
	r, err := os.OpenRoot(Opened(path))
	return r, Named(err, path)
}

// follow goes the way of an absolute path when links are followed. end is asked at each place, which is without links, about the
// rest of the way, and can be where it ends.
func follow(path string, end func(at, rest string) bool) (at, rest string, err error) {
	at, rest = "/", path
	for hops := 0; ; {
		rest = strings.TrimLeft(rest, "/")
		if end(at, rest) || rest == "" {
			return at, rest, nil
		}
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		next := filepath.Join(at, name)
		to, err := os.Readlink(Opened(next))
		if name == "." || name == ".." || err != nil {
			at = next
			continue
		}
		if hops++; hops > linksMax {
			return "", "", &os.PathError{Op: "follow", Path: path, Err: syscall.ELOOP}
		}
		if filepath.IsAbs(to) {
			at = "/"
		}
		rest = to + "/" + rest
	}
}

// Bound reports whether a process has a socket open that lies at an absolute path. No process hears of the question.
func Bound(path string) (bool, error) { return at.Bound(unix.AT_FDCWD, path) }
