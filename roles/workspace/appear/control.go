package appear

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash"
	"hash/maphash"
	"io"
	"io/fs"
	"os"
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
	todoMax    = 1 << 20 // bytes of a todo, and of a file whose content is compared
	targetMax  = 300     // entries of a directory of hooks
	targetsMax = 500     // targets of a repository
	linkedMax  = 32      // worktrees of a repository
	targetDeep = 2       // directories of hooks below each other
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
	n := 0
	w.items(func(path string, i *item) {
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
	now.settings = settingsIn(eye, dirs)
	now.rebase = w.rebases(dirs, before, now, made || i.made)
	if err := w.renewTargets(eye, Repository{Kind: i.kind, Path: abs}, before, now); err != nil {
		failed = err
	}
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
	before, now := w.above, &state{settings: settingsIn(eye, dirs)}
	if failed := w.renewTargets(eye, Repository{Kind: protocol.FoundGitLink, Path: filepath.Join(top, ".git")}, before, now); failed != nil {
		err = failed
	}
	if w.above = now; before != nil {
		w.tellTargets(before, now)
	}
	return err
}

// settingsIn sums up what git directories say that git runs.
func settingsIn(eye *control.Eye, dirs []string) uint64 {
	sum := newSum()
	for _, dir := range dirs {
		fd, err := openOurs(eye, dir)
		if err != nil {
			continue
		}
		for _, name := range control.Settings() {
			sum.add(fd, name, 1)
		}
		f := listing(fd)
		var strange []string
		_ = entries(f, func(e fs.DirEntry) bool { // what cannot be read has no settings
			if e.IsDir() && filepath.Base(dir) == ".git" && !slices.Contains(ofGit, e.Name()) {
				strange = append(strange, e.Name())
			}
			return len(strange) < targetMax
		})
		f.Close()
		slices.Sort(strange)
		sum.Write([]byte(strings.Join(strange, "\x00")))
	}
	return sum.Sum64()
}

// ofGit are directories that git and its companions make in a git directory. Whatever else is there the user may reach by a link.
var ofGit = []string{"objects", "refs", "logs", "hooks", "info", "modules", "worktrees", "branches", "remotes", "rebase-merge", "rebase-apply", "sequencer", "rr-cache", "lfs", "annex", "reftable", "svn", "fsmonitor--daemon", "filter-repo", "NOTES_MERGE_WORKTREE",
	"hooks.removed", "branches.removed", "remotes.removed", "commondir.removed"}

func (w *Watch) rel(abs string) string {
	if rel, err := filepath.Rel(w.root, abs); err == nil {
		return rel
	}
	return abs
}

// rebases finds unfinished rebases, and sums up the commands that they run when they go on.
func (w *Watch) rebases(dirs []string, before, now *state, made bool) uint64 {
	for _, dir := range dirs {
		fd, err := openBelow(unix.AT_FDCWD, dir+"/worktrees")
		if err != nil {
			continue
		}
		f := listing(fd)
		n := 0
		_ = entries(f, func(e fs.DirEntry) bool { // one that cannot be read has no worktrees
			if n++; e.IsDir() {
				dirs = append(dirs, dir+"/worktrees/"+e.Name())
			}
			return n < linkedMax
		})
		f.Close()
	}
	sum := newSum()
	commands := false
	for _, dir := range dirs {
		for _, name := range []string{"rebase-merge", "rebase-apply"} {
			at := dir + "/" + name
			if s, err := statBelow(unix.AT_FDCWD, at); err != nil || kindOf(&s) != unix.S_IFDIR {
				continue
			}
			now.rebases[at] = made
			if before != nil {
				if was, there := before.rebases[at]; there {
					now.rebases[at] = was
				}
			}
			todo, _ := readFile(at + "/git-rebase-todo") // rebase-apply has none
			if len(todo) == todoMax {                    // what is behind that is not read
				commands = true
				sum.Write(todo)
			}
			for line := range bytes.Lines(todo) {
				if words := bytes.Fields(line); len(words) > 0 && (string(words[0]) == "exec" || string(words[0]) == "x") {
					commands = true
					sum.Write(line)
				}
			}
		}
	}
	if !commands {
		return 0
	}
	return sum.Sum64()
}

// readFile reads the beginning of a regular file.
func readFile(path string) ([]byte, error) {
	f, err := at.Regular(unix.AT_FDCWD, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, todoMax))
}

// hashed sums up stamps and contents, for this process: by a seed that none of those who write them knows.
type hashed struct{ hash.Hash64 }

func newSum() hashed {
	sum := &maphash.Hash{}
	sum.SetSeed(seed())
	return hashed{sum}
}

var seed = sync.OnceValue(maphash.MakeSeed)

// add takes in a name of an open directory, and what is in it down to some depth.
func (h hashed) add(dir int, name string, deep int) {
	s, err := at.Stat(dir, name)
	if err != nil {
		return
	}
	h.Write([]byte(name))
	now := stampOf(&s)
	for _, n := range []uint64{now.dev, now.ino, uint64(now.size), uint64(now.mtime), uint64(now.ctime)} {
		h.Write(binary.LittleEndian.AppendUint64(nil, n))
	}
	if kindOf(&s) != unix.S_IFDIR || deep == 0 {
		return
	}
	fd, err := at.Open(dir, name, unix.O_DIRECTORY)
	if err != nil {
		return
	}
	f := listing(fd)
	defer f.Close()
	for _, name := range someNames(f) {
		h.add(fd, name, deep-1)
	}
}

// someNames are names of an open directory, sorted. What cannot be read is summed up by its stamp.
func someNames(dir *os.File) (names []string) {
	_ = entries(dir, func(e fs.DirEntry) bool {
		names = append(names, e.Name())
		return len(names) < targetMax
	})
	slices.Sort(names)
	return names
}
