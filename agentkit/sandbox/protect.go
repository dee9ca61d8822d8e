package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"wf/protocol"
	"wf/roles/workspace"
	"wf/roles/workspace/appear"
)

// gitControl are the parts of a git directory that say what git runs and where it reads and
// writes. The rest, such as objects, refs, index, logs and HEAD, changes with each commit.
var gitControl = []string{"config", "config.worktree", "hooks", "info", "commondir", "gitdir", "objects/info/alternates", "objects/info/http-alternates"}

// innerMax is how many git directories of submodules and worktrees are protected one by one;
// where there are more, all of them are read-only as a whole.
const innerMax = 32

// Bounds of what is protected beside the repository of the workspace: each path is a few mounts.
const (
	nestedMax = 64
	pathsMax  = 1_000
)

// unwanted are the parts of a repository that no command of git puts where they were not, but for settings
// of one worktree, and that have git run what they say. A mount cannot keep them from being made: see unmake.
var unwanted = []string{"commondir", "hooks", "config.worktree"}

// A protection is what of a workspace others read as orders, as far as it exists: what wf keeps, and what
// controls its git repositories. Where there are namespaces paths are read-only. Links are not protected, only
// what they lead to where it is in the list itself.
type protection struct {
	work        string
	paths       []string
	absent      []string // unwanted parts that are not there now
	unprotected int      // repositories for which there are too many
}

// protected are the repositories on the way to the directory of a command, whatever made them, and those that
// were found in the workspace, up to nestedMax.
func protected(work, dir string, found []appear.Repository) *protection {
	p := &protection{work: work}
	way := map[string]bool{}
	for at := dir; within(at, work); at = filepath.Dir(at) {
		if at == work || p.isThere(filepath.Join(at, ".git")) {
			p.repository(at)
			p.add(filepath.Join(at, ".wf"))
			way[at] = true
		}
		if at == work {
			break
		}
	}
	nested := 0
	for _, r := range found {
		if way[filepath.Dir(r.Path)] && r.Kind != protocol.FoundBare {
			p.named(r)
			continue
		}
		if nested >= nestedMax || len(p.paths) > pathsMax {
			p.unprotected++
			continue
		}
		before := len(p.paths)
		switch r.Kind {
		case protocol.FoundStore:
			p.add(r.Path)
		case protocol.FoundBare:
			p.control(r.Path)
		default:
			p.repository(filepath.Dir(r.Path))
		}
		p.named(r)
		if len(p.paths) > before {
			nested++
		}
	}
	slices.Sort(p.paths)
	p.paths = slices.Compact(p.paths)
	return p
}

// named protects what a repository names beside itself, unless a link leads there.
func (p *protection) named(r appear.Repository) {
	for _, path := range slices.Concat(r.Names, r.Rebases) {
		if real, err := workspace.Real(path); err == nil && real == path {
			p.add(path)
		}
	}
}

// unmake removes what a command has made of the absent, and tells which.
func unmake(work string, absent []string) (made []string, err error) {
	root, err := os.OpenRoot(workspace.Opened(work))
	if err != nil {
		return nil, workspace.Named(err, work)
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

func (p *protection) isThere(path string) bool {
	info, err := os.Lstat(workspace.Opened(path))
	return err == nil && (info.IsDir() || info.Mode().IsRegular())
}

// add protects a path that is there. The directories on the way to it are no links.
func (p *protection) add(path string) {
	if within(path, p.work) && path != p.work && p.isThere(path) {
		p.paths = append(p.paths, path)
	}
}

// repository protects what controls the repository that has its .git in a directory.
func (p *protection) repository(top string) {
	git := filepath.Join(top, ".git")
	info, err := os.Lstat(workspace.Opened(git))
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
	if real, err := workspace.Real(git); err != nil || real != git {
		return
	}
	p.directory(git)
	for _, of := range []string{"modules", "worktrees"} {
		outer := filepath.Join(git, of)
		if info, err := os.Lstat(workspace.Opened(outer)); err != nil || !info.IsDir() {
			continue
		}
		inner, all := gitDirsIn(outer, innerMax, 4)
		if !all {
			p.add(outer)
			continue
		}
		for _, dir := range inner {
			p.directory(dir)
		}
	}
}

// directory protects one git directory.
func (p *protection) directory(git string) {
	for _, name := range gitControl {
		p.direct(git, name)
	}
	for _, name := range unwanted {
		path := filepath.Join(git, name)
		if _, err := os.Lstat(workspace.Opened(path)); errors.Is(err, fs.ErrNotExist) && within(path, p.work) {
			p.absent = append(p.absent, path)
		}
	}
}

// direct protects a path below a directory unless a part of it is a link.
func (p *protection) direct(dir, name string) {
	at := dir
	for _, part := range strings.Split(filepath.Dir(name), "/") {
		at = filepath.Join(at, part)
		if info, err := os.Lstat(workspace.Opened(at)); err != nil || !info.IsDir() {
			return
		}
	}
	p.add(filepath.Join(dir, name))
}

// gitDirsIn lists the git directories below a directory, which may have names of several parts;
// all is false where there are more than most, or deeper ones.
func gitDirsIn(dir string, most, depth int) (found []string, all bool) {
	entries, err := os.ReadDir(workspace.Opened(dir))
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
		_, err := os.Lstat(workspace.Opened(filepath.Join(dir, name)))
		return err == nil
	})
}

func isDir(path string) bool {
	info, err := os.Lstat(workspace.Opened(path))
	return err == nil && info.IsDir()
}
