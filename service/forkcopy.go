package service

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"wf/agentkit/sandbox"
	"wf/api"
	"wf/protocol"
	"wf/roles/workspace"
	"wf/service/compose"
)

// forkPlace is the workspace of the fork, "" for that of the original.
func (l *Local) forkPlace(ctx context.Context, v *api.Run, left *protocol.GitState, f api.Fork) (string, error) {
	switch {
	case f.Dir != "" && f.Worktree, f.Files && (f.Dir != "" || f.Worktree):
		return "", protocol.ErrUsage.With("--help shows how", "--dir, --worktree and --files name different workspaces: give one of them")
	case f.Dir != "" || !f.Worktree:
		return f.Dir, nil
	case left == nil:
		return "", protocol.ErrUsage.With("--dir names another workspace", "--worktree: no step of the run tells of a git commit; it did not run in a git repository")
	}
	dir, err := l.forkCopy(ctx, v, left)
	if err == nil {
		l.Tellf("  %s has what was committed at %.8s, and no more", dir, left.Head)
	}
	return dir, err
}

// cloneAt makes a clone, in the current directory, of the repository that is the first argument, at
// the commit that is the second. git-upload-pack, which serves it, heeds no program
// that a repository names.
const cloneAt = `git clone -q --no-local --no-checkout "$1" . && git fetch -q origin "$2" && git checkout -q --detach "$2"`

// forkCopy makes a workspace at the commit that a step found: a clone of the repository beside
// the workspace. git runs in a sandbox that can write the clone alone, since agents may have written
// what the repository tells git to run.
func (l *Local) forkCopy(ctx context.Context, v *api.Run, left *protocol.GitState) (string, error) {
	from, err := repositoryOf(v.Info.Workspace)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(filepath.Dir(from), filepath.Base(from)+"-"+left.Head[:min(len(left.Head), 8)])
	byHand := fmt.Sprintf("(mkdir %[2]s && cd %[2]s && set -- %[1]s %[3]s && %[4]s), then wf fork with --dir %[2]s", quoted(from), quoted(dir), quoted(left.Head), cloneAt)
	if tier := sandbox.Probe(); !tier.Holds {
		return "", protocol.ErrUsage.With("make the workspace yourself: "+byHand,
			"--worktree: wf starts git only in a sandbox, since agents may have written what the repository tells git to run, and there is none here: %s", tier)
	}
	if err := os.Mkdir(dir, 0o777); err != nil {
		return "", protocol.ErrUsage.With("remove or rename it, or name it with --dir where it is what you want", "--worktree: %v", err)
	}
	var said bytes.Buffer
	code, err := sandbox.Run(ctx, sandbox.Policy{Workspace: dir, Grants: sandbox.Grants{Read: []string{workspace.Linked(from), from}}},
		[]string{"sh", "-c", cloneAt, "sh", from, left.Head}, io.Discard, &said)
	if err == nil && code == 0 {
		return inClone(dir, from, v.Info.Workspace)
	}
	if gone := os.RemoveAll(dir); gone != nil {
		l.Warn(gone)
	}
	if err != nil {
		return "", fmt.Errorf("clone %s: %w", from, err)
	}
	return "", protocol.ErrUsage.With("make the workspace yourself: "+byHand, "--worktree: git cannot clone %s in the sandbox: %s", from, strings.TrimSpace(said.String()))
}

// inClone is the directory of a clone that corresponds to a workspace in the repository.
func inClone(dir, from, in string) (string, error) {
	in, err := filepath.EvalSymlinks(in)
	if err != nil {
		return "", err
	}
	below, err := filepath.Rel(from, in)
	if err != nil {
		return "", err
	}
	root, err := workspace.Open(dir, below)
	if err != nil {
		return "", protocol.ErrUsage.With("name a directory of "+dir+" with --dir", "--worktree: the commit has no directory %s", below)
	}
	return filepath.Join(dir, below), root.Close()
}

// repositoryOf is the top of the work tree in which a workspace lies.
func repositoryOf(dir string) (string, error) {
	top := compose.ProjectOf(dir)
	info, err := os.Lstat(filepath.Join(top, ".git"))
	if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return "", protocol.ErrUsage.With("--dir names another workspace", "--worktree: %s is no git repository", dir)
	}
	return top, nil
}

// quoted is a word of a shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// differs tells that a workspace is not as the step found it.
func differs(ctx context.Context, dir string, left *protocol.GitState) []string {
	if left == nil {
		return nil
	}
	root, err := workspace.Open(dir, "")
	if err != nil {
		return []string{err.Error()}
	}
	defer root.Close()
	head := workspace.ReadHead(ctx, root)
	switch {
	case head == nil:
		return nil // nothing can be compared
	case head.Commit != left.Head:
		return []string{fmt.Sprintf("%s is at commit %.8s, the step found %.8s; --worktree makes a workspace of that", dir, head.Commit, left.Head)}
	case left.Dirty != nil && *left.Dirty:
		return []string{fmt.Sprintf("the step found changes that were not committed; %s may differ", dir)}
	}
	return nil
}
