package workspace

import (
	"cmp"
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
	is, _ := os.Stat(Opened(root)) // nil, the same as nothing, where it is not there
	within := false
	_, rel, err := follow(path, func(at, rest string) bool {
		within = (at == root || same(at, is)) && rest != ".." && !strings.HasPrefix(rest, "../")
		return within
	})
	if err != nil || !within { // nothing is found beyond too many links
		return "", false
	}
	return cmp.Or(strings.TrimRight(rel, "/"), "."), true
}

// same reports whether a path leads to a directory, which may have more than one: by a mount, or where case says nothing.
func same(path string, dir os.FileInfo) bool {
	info, err := os.Lstat(Opened(path))
	return err == nil && os.SameFile(info, dir)
}
