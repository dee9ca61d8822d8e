package workspace

import (
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Linked is the repository, a .git directory elsewhere, that has the directory top as a worktree; ""
// for any other directory, and where the repository does not name this worktree: a command
// could have written any path into .git. top is absolute, without links.
func Linked(top string) string {
	line, err := small(unix.AT_FDCWD, filepath.Join(top, ".git"))
	if err != nil {
		return ""
	}
	own, ok := strings.CutPrefix(strings.TrimSpace(line), "gitdir: ")
	if !ok || !filepath.IsAbs(own) || filepath.Base(filepath.Dir(own)) != "worktrees" {
		return ""
	}
	back, err := small(unix.AT_FDCWD, filepath.Join(own, "gitdir"))
	if err != nil || strings.TrimSpace(back) != filepath.Join(top, ".git") {
		return ""
	}
	return filepath.Dir(filepath.Dir(own))
}
