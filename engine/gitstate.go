package engine

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"wf/protocol"
)

// gitState says what commit a workspace stands at, and whether files differ from it; nil
// outside of git, or where git does not answer: it is a note for people, nothing depends on it.
func gitState(ctx context.Context, dir string) *protocol.GitState {
	if dir == "" || !inGit(dir) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", "-C", dir, "status", "--porcelain=v2", "--branch", "--untracked-files=normal")
	cmd.Env = append(os.Environ(), "GIT_OPTIONAL_LOCKS=0")
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	g := &protocol.GitState{}
	for line := range bytes.Lines(out) {
		if head, ok := strings.CutPrefix(string(line), "# branch.oid "); ok {
			g.Head = strings.TrimSpace(head)
		} else if line[0] != '#' {
			g.Dirty = true
		}
	}
	return g
}

// inGit reports whether dir or a directory above it is a git work tree.
func inGit(dir string) bool {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
}
