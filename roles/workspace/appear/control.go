package appear

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"hash"
	"hash/maphash"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"wf/protocol"
	"wf/roles/workspace/control"
	"wf/roles/workspace/internal/at"
)

// Bounds of what is looked at of repositories.
const (
	reposMax   = 1_000   // repositories with settings that are looked at
	fileMax    = 1 << 20 // bytes of a todo, and of a file whose content is compared
	targetMax  = 10_000  // entries of a directory of hooks, or to which a link leads
	targetsMax = 500     // targets of a repository
	linkedMax  = 1_000   // worktrees of a repository
	targetDeep = 2       // directories of hooks below each other

	targetNames = 30_000    // of all targets and links of a look: entries of their directories,
	targetBytes = 256 << 20 // and bytes of their files: many names can lead to the same ones
)

// A state is what makes one repository run programs, as of the last look.
type state struct {
	settings uint64          // of its own settings and hooks
	rebase   uint64          // of the commands of an unfinished rebase; 0 is none
	targets  []target        // on which git acts elsewhere in the workspace
	cut      bool            // there are more
	rebases  map[string]bool // directories of unfinished rebases, absolute; whether commands made them
}

// A Repository is one in a workspace, or a store of wf, that was not made by a command of this process.
type Repository struct {
	Kind    protocol.FoundKind // FoundRepository, FoundGitLink, FoundBare or FoundStore
	Path    string             // absolute: of .git, .wf, or of the bare repository
	Rebases []string           // directories of unfinished rebases that no command of this process began
}

// Top is the directory from which its hooks run.
func (r Repository) Top() string {
	if r.Kind == protocol.FoundBare {
		return r.Path
	}
	return filepath.Dir(r.Path)
}

// repositoryOf is the one that has .git in a directory.
func repositoryOf(top string) Repository {
	return Repository{Kind: protocol.FoundGitLink, Path: filepath.Join(top, ".git")}
}

// Parts are what git or wf acts on of it.
func (r Repository) Parts(eye *control.Eye) (control.Parts, error) {
	switch r.Kind {
	case protocol.FoundBare:
		return eye.Bare(r.Path)
	case protocol.FoundStore:
		return eye.Store(r.Path)
	}
	return eye.Repository(r.Top())
}

// Repositories are those of the workspace as of the last look, the shallow first.
func (w *Watch) Repositories() []Repository {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []Repository
	w.items(func(path string, i *item) {
		if i.made || !actsAsRepository(i.kind) && i.kind != protocol.FoundStore {
			return
		}
		r := Repository{Kind: i.kind, Path: filepath.Join(w.root, path)}
		if c := i.state; c != nil {
			for dir, made := range c.rebases {
				if !made {
					r.Rebases = append(r.Rebases, dir)
				}
			}
			slices.Sort(r.Rebases)
		}
		out = append(out, r)
	})
	return out
}

func actsAsRepository(kind protocol.FoundKind) bool {
	return kind == protocol.FoundRepository || kind == protocol.FoundGitLink || kind == protocol.FoundBare
}

// items gives what is known, the shallow first.
func (w *Watch) items(yield func(path string, i *item)) {
	w.each(func(d *dir, path func(string) string) {
		for _, i := range d.items { // few directories have any
			yield(cmp.Or(path(i.name), "."), i)
		}
	})
}

// each gives the directories that are known, the shallow first, with the path of a name in them.
func (w *Watch) each(yield func(d *dir, path func(name string) string)) {
	if w.top == nil {
		return
	}
	type node struct {
		*dir
		in int // the index of its parent
	}
	all := append(make([]node, 0, w.dirs), node{w.top, 0})
	for n := 0; n < len(all); n++ {
		yield(all[n].dir, func(name string) string {
			for at := n; at > 0; at = all[at].in {
				name = strings.TrimSuffix(all[at].name+"/"+name, "/")
			}
			return name
		})
		for _, k := range all[n].kids {
			all = append(all, node{k, n})
		}
	}
}

// control looks at what makes the repositories run programs. What is found of one that commands made is reported
// with it, once. partial reports that there is more than is looked at, or that a part could not be looked at.
func (w *Watch) control(eye *control.Eye, made bool) (partial bool) {
	n, links := 0, 0
	w.left = allowance{targetNames, targetBytes}
	w.items(func(path string, i *item) {
		if i.isLink() {
			links++
			partial = partial || links > targetsMax || w.follow(eye, path, i) != nil
			return
		}
		if !actsAsRepository(i.kind) && i.kind != protocol.FoundStore || n >= reposMax {
			return
		}
		n++
		if err := w.inspect(eye, path, i, made); err != nil || i.state.cut {
			partial = true
		}
	})
	if err := w.inspectAbove(eye); err != nil {
		partial = true
	}
	return partial
}

// follow tells whether what an item leads to in the workspace is another than before.
func (w *Watch) follow(eye *control.Eye, path string, i *item) error {
	place, err := eye.Follow(filepath.Join(w.root, path))
	if err != nil {
		return err
	}
	sum := newSum()
	for _, l := range place.Links {
		sum.Write([]byte(l.Path + "\x00" + l.To + "\x00"))
	}
	if strings.HasPrefix(place.Path, w.root+"/") { // elsewhere no command changes anything
		content, err := w.content(eye, place.Path)
		if err != nil {
			return err
		}
		sum.number(content)
	}
	before := i.leads
	i.leads = max(sum.Sum64(), 1)
	if before != 0 && before != i.leads {
		w.found(protocol.Found{Kind: i.kind, Path: path, Changed: true})
	}
	return nil
}

func (w *Watch) inspect(eye *control.Eye, path string, i *item, made bool) (failed error) {
	abs := filepath.Join(w.root, path)
	top, dirs := filepath.Dir(abs), []string{abs}
	switch i.kind {
	case protocol.FoundBare:
		top = abs
	case protocol.FoundStore:
		dirs = nil // it is asked for a link alone: wf itself writes what it keeps
	case protocol.FoundGitLink:
		dirs, failed = eye.Dirs(top)
	}
	before, now := i.state, &state{rebases: map[string]bool{}}
	i.state = now
	settings, unseen := settingsIn(eye, dirs)
	rebase, unread := w.rebases(eye, dirs, before, now, made || i.made)
	now.settings, now.rebase = settings, rebase
	failed = errors.Join(failed, unseen, unread, w.renewTargets(eye, Repository{Kind: i.kind, Path: abs}, before, now))
	if before == nil {
		return failed
	}
	if before.settings != now.settings && !i.made {
		w.found(protocol.Found{Kind: i.kind, Path: path, Changed: true})
	}
	if before.rebase != now.rebase && now.rebase != 0 {
		w.found(protocol.Found{Kind: protocol.FoundRebase, Path: w.rel(top) + "/"})
	}
	w.tellTargets(before, now)
	return failed
}

// inspectAbove looks at what the repository names in which the workspace lies: the rest of it no command can change.
func (w *Watch) inspectAbove(eye *control.Eye) error {
	top, err := eye.Above()
	if err != nil || top == "" {
		w.above = nil
		return err
	}
	dirs, err := eye.Dirs(top)
	before, now := w.above, &state{}
	settings, unseen := settingsIn(eye, dirs)
	now.settings = settings
	err = errors.Join(err, unseen, w.renewTargets(eye, repositoryOf(top), before, now))
	if w.above = now; before != nil {
		w.tellTargets(before, now)
	}
	return err
}

// settingsIn sums up what git directories say that git runs, and which directories lie in a .git that git does not make there: the user
// may reach those by a link.
func settingsIn(eye *control.Eye, dirs []string) (uint64, error) {
	sum := newSum()
	var failed error
	for _, dir := range dirs {
		of, err := settingsOf(eye, dir)
		sum.number(of)
		failed = errors.Join(failed, err)
		if filepath.Base(dir) != ".git" {
			continue
		}
		names, all, err := eye.Names(dir, targetMax)
		if failed = errors.Join(failed, err); !all {
			failed = errors.Join(failed, errFlood)
		}
		for _, name := range names {
			if slices.Contains(ofGit, name) || control.IsAside(name) {
				continue
			}
			kind, err := eye.Kind(filepath.Join(dir, name))
			if failed = errors.Join(failed, err); kind == unix.S_IFDIR {
				sum.Write([]byte(name + "\x00"))
			}
		}
	}
	return sum.Sum64(), failed
}

// settingsOf sums up what one git directory says that git runs.
func settingsOf(eye *control.Eye, dir string) (uint64, error) {
	sum := newSum()
	fd, err := openOurs(eye, dir)
	if err != nil {
		return 0, unseen(err)
	}
	defer unix.Close(fd)
	for _, name := range control.Settings() { // what one holds too much of, or hides, keeps no other from being looked at
		err = errors.Join(err, eye.Again(filepath.Join(dir, name), func() error { return sum.add(fd, name, 1) }))
	}
	return sum.Sum64(), err
}

// ofGit are what git and its companions make in a git directory.
var ofGit = []string{
	"objects", "refs", "logs", "hooks", "info", "modules", "worktrees", "branches", "remotes", "rebase-merge", "rebase-apply", "sequencer", "rr-cache", "reftable", "NOTES_MERGE_WORKTREE", "fsmonitor--daemon",
	"lfs", "annex", "svn", "filter-repo",
	"HEAD", "config", "description", "index", "packed-refs", "COMMIT_EDITMSG", "ORIG_HEAD", "FETCH_HEAD",
}

func (w *Watch) rel(abs string) string {
	if rel, err := filepath.Rel(w.root, abs); err == nil {
		return rel
	}
	return abs
}

// rebases finds unfinished rebases, and sums up the commands that they run when they go on; 0 is none.
func (w *Watch) rebases(eye *control.Eye, dirs []string, before, now *state, made bool) (uint64, error) {
	var flood error
	for _, dir := range dirs {
		trees, err := eye.Follow(dir + "/worktrees")
		if err != nil {
			return 0, err
		}
		names, all, err := eye.Names(trees.Path, linkedMax)
		if err != nil {
			return 0, err
		}
		if !all {
			flood = errFlood
		}
		for _, name := range names {
			dirs = append(dirs, trees.Path+"/"+name)
		}
	}
	sum, commands := newSum(), false
	for _, dir := range dirs {
		for _, name := range []string{"rebase-merge", "rebase-apply"} {
			at, err := eye.Follow(dir + "/" + name)
			if err != nil {
				return 0, err
			}
			kind, err := eye.Kind(at.Path)
			if err != nil {
				return 0, err
			}
			if kind != unix.S_IFDIR {
				continue
			}
			now.rebases[at.Path] = made
			if before != nil {
				if was, there := before.rebases[at.Path]; there {
					now.rebases[at.Path] = was
				}
			}
			todo, err := eye.Read(at.Path+"/git-rebase-todo", fileMax) // rebase-apply has none
			if err != nil {
				return 0, err
			}
			commands = sum.commands(todo) || commands
		}
	}
	if !commands {
		return 0, flood
	}
	return sum.Sum64(), flood
}

// commands takes in the commands of a todo, and reports whether there are any, as there may be where it is longer than is read.
func (h hashed) commands(todo []byte) (any bool) {
	if len(todo) == fileMax {
		h.Write(todo)
		return true
	}
	for line := range bytes.Lines(todo) {
		if words := bytes.Fields(line); len(words) > 0 && (string(words[0]) == "exec" || string(words[0]) == "x") {
			any = true
			h.Write(line)
		}
	}
	return any
}

// hashed sums up stamps and contents, for this process: by a seed that none of those who write them knows.
type hashed struct {
	hash.Hash64
	left *allowance // nil is no bound over all
}

// An allowance is what one look may still read, over all that it looks at in this way.
type allowance struct {
	names int
	bytes int64
}

func newSum() hashed {
	sum := &maphash.Hash{}
	sum.SetSeed(seed())
	return hashed{Hash64: sum}
}

var seed = sync.OnceValue(maphash.MakeSeed)

func (h hashed) number(n uint64) { h.Write(binary.LittleEndian.AppendUint64(nil, n)) }

// add takes in the stamp of a name of an open directory, and of what is in it down to some depth. The error is of what cannot be looked at.
func (h hashed) add(dir int, name string, deep int) error {
	s, err := at.Stat(dir, name)
	if err != nil {
		return unseen(err)
	}
	h.Write([]byte(name))
	now := stampOf(&s)
	for _, n := range []uint64{now.dev, now.ino, uint64(now.size), uint64(now.mtime), uint64(now.ctime)} {
		h.number(n)
	}
	if kindOf(&s) != unix.S_IFDIR || deep == 0 {
		return nil
	}
	return h.each(dir, name, func(fd int, name string) error { return h.add(fd, name, deep-1) })
}

// each opens a directory in an open one, and goes through names in it, sorted.
func (h hashed) each(dir int, name string, do func(fd int, name string) error) error {
	fd, err := at.Open(dir, name, unix.O_DIRECTORY)
	if err != nil {
		return unseen(err)
	}
	f := listing(fd)
	defer f.Close()
	var names []string
	err = entries(f, func(e fs.DirEntry) bool {
		names = append(names, e.Name())
		return len(names) <= targetMax
	})
	if h.left != nil {
		h.left.names -= len(names)
	}
	if err == nil && (len(names) > targetMax || h.left != nil && h.left.names < 0) {
		err = errFlood
	}
	if err != nil {
		return unseen(err)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := do(fd, name); err != nil {
			return err
		}
	}
	return nil
}

// unseen is the error of a look, nil where it found nothing.
func unseen(err error) error {
	if gone(err) {
		return nil
	}
	return err
}
