package control

import (
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"wf/protocol/lazy"
)

// Bounds of what is looked at of one repository.
const (
	gitFileMax = 4_096   // bytes of a file that names a git directory
	configMax  = 1 << 20 // bytes of a config
	namesMax   = 100     // paths that its configs name
	entriesMax = 300     // entries of a directory of hooks
	placesMax  = 1_000   // places of a repository
	deepMax    = 10      // configs that include each other, as many as git follows
	innerMax   = 32      // git directories of submodules and worktrees: where there are more, all are one place
)

// A part of a git directory says what git runs, and where it reads and writes. The rest, such as objects, refs, index, logs and
// HEAD, changes with each commit.
type part struct {
	name     string
	config   bool // it names further places
	unwanted bool // no command of git makes one where there was none, but for settings of one worktree
}

// parts is the one list of them.
var parts = []part{
	{name: "config", config: true}, {name: "config.worktree", config: true, unwanted: true}, {name: "hooks", unwanted: true}, {name: "info"},
	{name: "remotes", unwanted: true}, {name: "branches", unwanted: true}, // where to push, in the form before there were configs
	{name: "commondir", unwanted: true}, {name: "gitdir"}, {name: "objects/info/alternates"}, {name: "objects/info/http-alternates"},
}

// Settings are names of parts that commands of git leave as they are: of info that is one file.
func Settings() []string {
	var out []string
	for _, p := range parts {
		if p.name == "info" {
			p.name = "info/attributes"
		}
		out = append(out, p.name)
	}
	return out
}

// Parts is what of a repository git acts on.
type Parts struct {
	Places []Place // that are there, or to which a link or a config leads
	Absent []Spot  // unwanted parts that are not there
	Cut    bool    // its configs name more places than are listed
}

// finder collects the parts of one repository.
type finder struct {
	*Eye
	Parts
	top   string
	dirs  []string // git directories that were looked at, without links
	named int
}

// Repository finds the parts of the repository that has .git in a directory, absolute and without links; none where there is no .git.
func (e *Eye) Repository(top string) (Parts, error) {
	f := finder{Eye: e, top: top}
	git, dir, err := f.gitDir()
	if err == nil && (git.Linked() || git.There && git.Path != dir) {
		f.Places = append(f.Places, git)
	}
	if err == nil && dir != "" {
		err = f.whole(dir)
	}
	return f.done(err)
}

// Above is the directory with the repository in which a directory lies, as git finds it, where that is none of the workspace; "" is
// none.
func (e *Eye) Above() (string, error) {
	for top := filepath.Dir(e.root); ; top = filepath.Dir(top) {
		f := finder{Eye: e, top: top}
		if _, dir, err := f.gitDir(); err != nil || dir != "" {
			return top, err
		}
		if top == "/" {
			return "", nil
		}
	}
}

// Dirs are the git directories of that repository, without links: that of its worktree, and the one in which that has its settings.
func (e *Eye) Dirs(top string) (dirs []string, err error) {
	f := finder{Eye: e, top: top}
	_, dir, err := f.gitDir()
	if err != nil || dir == "" {
		return nil, err
	}
	common, err := f.linked(dir, filepath.Join(dir, "commondir"), "")
	if common != "" {
		return []string{dir, common}, err
	}
	return []string{dir}, err
}

// gitDir is what .git leads to, and the git directory that it is or names; "" for none.
func (f *finder) gitDir() (git Place, dir string, err error) {
	if git, err = f.follow(f.top, ".git"); err != nil {
		return git, "", err
	}
	switch kind, err := f.Kind(git.Path); {
	case err != nil:
		return git, "", err
	case kind == unix.S_IFDIR:
		return git, git.Path, nil
	case kind != unix.S_IFREG:
		return git, "", nil
	}
	dir, err = f.linked(f.top, git.Path, "gitdir: ")
	return git, dir, err
}

// Bare finds the parts of a repository without a worktree, absolute and without links.
func (e *Eye) Bare(git string) (Parts, error) {
	f := finder{Eye: e, top: git}
	return f.done(f.whole(git))
}

// whole looks at a git directory with all that is in it, and at what the user's own configs name of its repository.
func (f *finder) whole(git string) error {
	users, err := f.userConfigs()
	if err == nil {
		err = f.control(git)
	}
	for _, config := range users {
		if err == nil {
			err = f.config(config, 0)
		}
	}
	return err
}

// Store finds the .wf at a path below directories that are no links, and where the config in it is a link, to which that leads.
func (e *Eye) Store(path string) (Parts, error) {
	f := finder{Eye: e, top: filepath.Dir(path)}
	store, err := f.follow(f.top, filepath.Base(path))
	if err != nil || !store.There && !store.Linked() {
		return f.Parts, err
	}
	f.Places = append(f.Places, store)
	config, err := f.follow(store.Path, "config.yaml")
	if config.Name = filepath.Join(path, "config.yaml"); config.Linked() {
		f.Places = append(f.Places, config)
	}
	return f.done(err)
}

// done tells what is known once all of a repository was seen.
func (f *finder) done(err error) (Parts, error) {
	for at := range f.Places {
		p := &f.Places[at]
		p.Whole = f.holds(p.Path)
		p.Inner = !p.Linked() && f.own(p.Path)
		for i, l := range p.Links {
			if p.Links[i].Own = f.own(l.Path); !p.Links[i].Own || err != nil {
				continue
			}
			p.Links[i].at, err = f.Spot(l.Path)
		}
	}
	return f.Parts, err
}

// own reports whether git or wf keeps a path for itself.
func (f *finder) own(path string) bool {
	name := filepath.Base(path)
	return name == ".git" || name == ".wf" || f.gits(path)
}

// gits reports whether a path lies in a git directory of the repository.
func (f *finder) gits(path string) bool {
	return slices.ContainsFunc(f.dirs, func(dir string) bool { return strings.HasPrefix(path, dir+"/") })
}

// linked is the directory, without links, that the line of a file names from another one; "" is none.
func (f *finder) linked(from, file, prefix string) (string, error) {
	b, err := f.read(file, gitFileMax)
	if err != nil {
		return "", err
	}
	path, ok := strings.CutPrefix(strings.TrimRight(string(b), "\r\n"), prefix)
	if !ok || path == "" {
		return "", nil
	}
	p, err := f.follow(from, path)
	if err != nil || !p.There {
		return "", err
	}
	return p.Path, nil
}

// control looks at a git directory and those within it.
func (f *finder) control(git string) error {
	if err := f.directory(git); err != nil {
		return err
	}
	for _, of := range []string{"modules", "worktrees"} {
		outer, err := f.follow(git, of)
		if err != nil {
			return err
		}
		kind, err := f.Kind(outer.Path)
		if err != nil {
			return err
		}
		if outer.Linked() {
			f.Places = append(f.Places, outer)
		}
		if kind != unix.S_IFDIR {
			continue
		}
		inner, all, err := f.inner(outer.Path, innerMax, 4)
		if err != nil {
			return err
		}
		if !all {
			f.Places = append(f.Places, outer)
			continue
		}
		for _, dir := range inner {
			if err := f.directory(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// directory looks at one git directory.
func (f *finder) directory(git string) error {
	if slices.Contains(f.dirs, git) {
		return nil
	}
	f.dirs = append(f.dirs, git)
	for _, part := range parts {
		p, err := f.follow(git, part.name)
		if err != nil {
			return err
		}
		if !p.There && part.unwanted && !(part.name == "commondir" && ofWorktree(git)) {
			err = f.absent(p.Path)
		}
		if err != nil {
			return err
		}
		if !p.There && !p.Linked() {
			continue
		}
		if err := f.add(p); err != nil {
			return err
		}
		if part.config {
			err = f.config(p, 0)
		}
		if part.name == "commondir" {
			err = f.common(git, p.Path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// absent takes in a path of a git directory at which nothing lies, if its directory is there. In a directory that others than git may have made, as one
// that has names as git has, it could be a file of the project.
func (f *finder) absent(path string) error {
	i := slices.IndexFunc(f.dirs, func(dir string) bool { return strings.HasPrefix(path, dir+"/") })
	if i < 0 {
		return nil
	}
	if git, err := f.made(f.dirs[i]); err != nil || !git {
		return err
	}
	if kind, err := f.Kind(filepath.Dir(path)); err != nil || kind != unix.S_IFDIR {
		return err
	}
	spot, err := f.Spot(path)
	if err == nil {
		f.Absent = append(f.Absent, spot)
	}
	return err
}

// head is the beginning of a HEAD.
var head = lazy.Regexp("^(ref: *refs/|[0-9a-f]{40})")

// made reports whether git made a directory, by what it asks itself before it takes one for a repository.
func (f *finder) made(dir string) (bool, error) {
	if strings.Contains(dir+"/", "/.git/") {
		return true, nil
	}
	text, err := f.read(filepath.Join(dir, "HEAD"), 64)
	if err != nil || !head().Match(text) {
		return false, err
	}
	for _, name := range []string{"objects", "refs"} {
		if kind, err := f.Kind(filepath.Join(dir, name)); err != nil || kind != unix.S_IFDIR {
			return false, err
		}
	}
	return true, nil
}

// ofWorktree reports whether a git directory is that of a worktree: it has a commondir but while git makes it.
func ofWorktree(git string) bool { return filepath.Base(filepath.Dir(git)) == "worktrees" }

// common looks at the directory of which a git directory has its settings, as one of a worktree does.
func (f *finder) common(git, file string) error {
	dir, err := f.linked(git, file, "")
	if err != nil || dir == "" || slices.Contains(f.dirs, dir) {
		return err
	}
	return f.control(dir)
}

// add takes a place in, and the links of a directory.
func (f *finder) add(p Place) error {
	f.Places = append(f.Places, p)
	return f.entries(p, 2)
}

// entries takes in to what the links of a directory lead, and of those below it down to some depth: a hook is often a link.
func (f *finder) entries(p Place, deep int) error {
	if kind, err := f.Kind(p.Path); err != nil || kind != unix.S_IFDIR || f.holds(p.Path) {
		return err
	}
	names, _, err := f.Names(p.Path, entriesMax)
	if err != nil {
		return err
	}
	for _, name := range names {
		if len(f.Places) >= placesMax {
			f.Cut = true
			return nil
		}
		entry, err := f.follow(p.Path, name)
		if err != nil {
			return err
		}
		entry.Name = p.Name + "/" + name
		if entry.Linked() {
			entry.Links = slices.Concat(p.Links, entry.Links)
			f.Places = append(f.Places, entry)
		} else if deep > 1 {
			if err := f.entries(entry, deep-1); err != nil {
				return err
			}
		}
	}
	return nil
}

// holds reports whether a directory holds the whole repository: what git reads there is in its worktree.
func (f *finder) holds(path string) bool {
	return path == "/" || path == f.top || strings.HasPrefix(f.top, path+"/")
}

// inner lists the git directories below a directory, which may have names of several parts; all is false where there are
// more than most, or deeper ones.
func (f *finder) inner(dir string, most, deep int) (found []string, all bool, err error) {
	if deep == 0 {
		return nil, false, nil
	}
	names, all, err := f.Names(dir, 8*innerMax)
	if err != nil || !all {
		return nil, false, err
	}
	for _, name := range names {
		here := filepath.Join(dir, name)
		if kind, err := f.Kind(here); err != nil || kind != unix.S_IFDIR {
			if err != nil {
				return nil, false, err
			}
			continue
		}
		below := here
		is, err := f.isGit(here)
		if err != nil {
			return nil, false, err
		}
		if is {
			found = append(found, here)
			below = filepath.Join(here, "modules")
			if kind, err := f.Kind(below); err != nil || kind != unix.S_IFDIR {
				if err != nil {
					return nil, false, err
				}
				continue
			}
		}
		more, all, err := f.inner(below, most-len(found), deep-1)
		if found = append(found, more...); err != nil || !all || len(found) > most {
			return nil, false, err
		}
	}
	return found, true, nil
}

// isGit goes by what is listed: a command could remove HEAD, and put it back later.
func (f *finder) isGit(dir string) (bool, error) {
	for _, name := range []string{"HEAD", "config", "commondir", "gitdir"} {
		if kind, err := f.Kind(filepath.Join(dir, name)); err != nil || kind != 0 {
			return kind != 0, err
		}
	}
	return false, nil
}
