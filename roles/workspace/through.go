package workspace

import (
	"os"
	"path/filepath"
	"strings"
)

// hopsMax is how many links the kernel follows on one path.
const hopsMax = 40

// Through reports whether the way to a path, absolute, leads through the workspace root when links are
// followed, so that an agent decides what lies at its end: rel is the rest of the way from the workspace,
// "." for the workspace itself. What is not there has a way, too.
func Through(root, path string) (rel string, ok bool) {
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	at, rest := "/", path
	for hops := 0; ; {
		rest = strings.TrimLeft(rest, "/")
		if at == root && rest != ".." && !strings.HasPrefix(rest, "../") {
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
		if hops++; hops > hopsMax {
			return "", false // nothing is found there
		}
		if filepath.IsAbs(to) {
			at = "/"
		}
		rest = to + "/" + rest
	}
}
