package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"wf/roles/workspace"
)

// gitControl are the parts of a git directory that say what git runs and where it reads and
// writes. The rest, such as objects, refs, index, logs and HEAD, changes with each commit.
var gitControl = []string{"config", "config.worktree", "hooks", "info", "commondir", "gitdir", "objects/info/alternates", "objects/info/http-alternates"}

// innerMax is how many git directories of submodules and worktrees are protected one by one;
// where there are more, all of them are read-only as a whole.
const innerMax = 32

// protected are the parts of a workspace that others read as orders, as far as they exist: what
// wf keeps, and what controls the git repositories of the workspace and of the directory of a
// command. Where there are namespaces they are read-only. Links are not protected, only what
// they lead to where it is in the list itself.
func protected(work, dir string) []string {
	var p protection
	for at := dir; within(at, work); at = filepath.Dir(at) {
		if at == work || p.isThere(filepath.Join(at, ".git")) {
			p.repository(at)
			p.add(filepath.Join(at, ".wf"))
		}
		if at == work {
			break
		}
	}
	kept := p.paths[:0]
	for _, path := range p.paths {
		if within(path, work) {
			kept = append(kept, path)
		}
	}
	return kept
}

// unwanted are the parts of a repository that no command of git puts where they were not, and that have
// git run what they say: the settings of another directory, and hooks.
var unwanted = []string{"commondir", "hooks"}

// absent are the unwanted parts that are not there now, in the repositories of the workspace and of the
// directory of a command. A mount cannot keep them from being made: see unmake.
func absent(work, dir string) []string {
	var out []string
	for at := dir; within(at, work); at = filepath.Dir(at) {
		git := filepath.Join(at, ".git")
		if info, err := os.Lstat(git); err == nil && info.IsDir() {
			for _, name := range unwanted {
				path := filepath.Join(git, name)
				if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
					out = append(out, path)
				}
			}
		}
		if at == work {
			break
		}
	}
	return out
}

// unmake removes what a command has made of the absent, and tells which.
func unmake(work string, absent []string) (made []string, err error) {
	root, err := os.OpenRoot(work)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var errs []error
	for _, path := range absent {
		name, err := filepath.Rel(work, path)
		if err != nil {
			return made, err
		}
		if _, err := root.Lstat(name); err != nil {
			continue // not made, or no longer in the workspace
		}
		made = append(made, name)
		errs = append(errs, root.RemoveAll(name))
	}
	return made, errors.Join(errs...)
}

type protection struct{ paths []string }

func (p *protection) isThere(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && (info.IsDir() || info.Mode().IsRegular())
}

// add protects a path that is there. The directories on the way to it are no links.
func (p *protection) add(path string) {
	if p.isThere(path) {
		p.paths = append(p.paths, path)
	}
}

// repository protects what controls the repository whose .git lies in a directory.
func (p *protection) repository(top string) {
	git := filepath.Join(top, ".git")
	info, err := os.Lstat(git)
	switch {
	case err != nil:
		return
	case info.Mode().IsRegular():
		p.add(git)
		for _, dir := range workspace.GitDirs(top) {
			p.control(dir)
		}
	case info.IsDir():
		p.control(git)
	}
}

// control protects a git directory and those within it.
func (p *protection) control(git string) {
	if real, err := filepath.EvalSymlinks(git); err != nil || real != git {
		return
	}
	for _, name := range gitControl {
		p.direct(git, name)
	}
	for _, of := range []string{"modules", "worktrees"} {
		outer := filepath.Join(git, of)
		if info, err := os.Lstat(outer); err != nil || !info.IsDir() {
			continue
		}
		inner, all := gitDirsIn(outer, innerMax, 4)
		if !all {
			p.add(outer)
			continue
		}
		for _, dir := range inner {
			for _, name := range gitControl {
				p.direct(dir, name)
			}
		}
	}
}

// direct protects a path below a directory unless a part of it is a link.
func (p *protection) direct(dir, name string) {
	at := dir
	for _, part := range strings.Split(filepath.Dir(name), "/") {
		at = filepath.Join(at, part)
		if info, err := os.Lstat(at); err != nil || !info.IsDir() {
			return
		}
	}
	p.add(filepath.Join(dir, name))
}

// gitDirsIn lists the git directories below a directory, which may have names of several parts;
// all is false where there are more than most, or deeper ones.
func gitDirsIn(dir string, most, depth int) (found []string, all bool) {
	entries, err := os.ReadDir(dir)
	if err != nil || depth == 0 || len(entries) > 8*most {
		return nil, false
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		at := filepath.Join(dir, e.Name())
		below := at
		if isGitDir(at) {
			found = append(found, at)
			if below = filepath.Join(at, "modules"); !isDir(below) {
				continue
			}
		}
		more, all := gitDirsIn(below, most-len(found), depth-1)
		if found = append(found, more...); !all || len(found) > most {
			return nil, false
		}
	}
	return found, true
}

// isGitDir goes by what is protected: a command could remove HEAD, and put it back later.
func isGitDir(dir string) bool {
	return slices.ContainsFunc([]string{"HEAD", "config", "commondir", "gitdir"}, func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err == nil
	})
}

func isDir(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}
