package workspace

import (
	"os"
	"path/filepath"
	"strings"
)

// Through reports whether the way to a path, absolute, leads through the workspace root when links are
// followed, so that an agent decides what lies at its end: rel is the rest of the way from the workspace,
// "." for the workspace itself. What is not there has a way, too.
func Through(root, path string) (rel string, ok bool) {
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	is, _ := os.Stat(root) // nil, the same as nothing, where it is not there
	at, rest := "/", path
	for hops := 0; ; {
		rest = strings.TrimLeft(rest, "/")
		if (at == root || same(at, is)) && rest != ".." && !strings.HasPrefix(rest, "../") {
			if rest = strings.TrimRight(rest, "/"); rest == "" {
				rest = "."
			}
			return rest, true
		}
		if rest == "" {
			return "", false
		}
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		next := filepath.Join(at, name)
		to, err := os.Readlink(next)
		if name == "." || name == ".." || err != nil {
			at = next
			continue
		}
		if hops++; hops > linksMax {
			return "", false // nothing is found there
		}
		if filepath.IsAbs(to) {
			at = "/"
		}
		rest = to + "/" + rest
	}
}

// same reports whether a path leads to a directory, which may have more than one: by a mount, or where case says nothing.
func same(path string, dir os.FileInfo) bool {
	info, err := os.Lstat(path)
	return err == nil && os.SameFile(info, dir)
}
