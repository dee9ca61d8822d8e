package appear

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash"
	"hash/fnv"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"wf/protocol"
	"wf/roles/workspace"
	"wf/roles/workspace/internal/at"
)

// Bounds of what is looked at of repositories.
const (
	reposMax   = 1_000   // repositories with settings that are looked at
	configMax  = 1 << 20 // bytes of a config or a todo
	targetMax  = 300     // entries of a directory of hooks
	linkedMax  = 32      // worktrees of a repository
	namesMax   = 100     // paths that a config names
	targetDeep = 2       // directories of hooks below each other
)

// A control is what makes one repository run programs, as of the last look.
type control struct {
	settings uint64            // of its own settings and hooks
	rebase   uint64            // of the commands of an unfinished rebase; 0 is none
	names    []string          // what the config names in the workspace, absolute
	cut      bool              // it names more
	targets  map[string]uint64 // what is there; 0 is nothing
	rebases  map[string]bool   // directories of unfinished rebases, absolute; whether commands made them
}

// settingsOf are the names in a git directory that say what git runs, and where it reads.
var settingsOf = []string{"config", "config.worktree", "commondir", "gitdir", "hooks", "objects/info/alternates"}

// A Repository is one in a workspace, or a store of wf, that was not made by a command of this process.
type Repository struct {
	Kind    protocol.FoundKind // FoundRepository, FoundGitLink, FoundBare or FoundStore
	Path    string             // absolute: of .git, .wf, or of the bare repository
	Names   []string           // what its config names in the workspace: hooks, and settings that are included
	Rebases []string           // directories of unfinished rebases that no command of this process began
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
		if c := i.control; c != nil {
			r.Names = c.names
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
	if w.top == nil {
		return
	}
	type node struct {
		*dir
		in int // the index of its parent
	}
	all := append(make([]node, 0, w.dirs), node{w.top, 0})
	for n := 0; n < len(all); n++ {
		for _, i := range all[n].items { // few directories have any
			path := i.name
			for at := n; at > 0; at = all[at].in {
				path = strings.TrimSuffix(all[at].name+"/"+path, "/")
			}
			yield(cmp.Or(path, "."), i)
		}
		for _, k := range all[n].kids {
			all = append(all, node{k, n})
		}
	}
}

// control looks at what makes the repositories run programs. What is found of one that commands made is reported
// with it, once. cut reports that a config names more than is looked at.
func (w *Watch) control(made bool) (cut bool) {
	n := 0
	w.items(func(path string, i *item) {
		if !actsAsRepository(i.kind) || n >= reposMax {
			return
		}
		n++
		w.inspect(path, i, made)
		cut = cut || i.control.cut
	})
	return cut
}

func (w *Watch) inspect(path string, i *item, made bool) {
	abs := filepath.Join(w.root, path)
	top := filepath.Dir(abs)
	dirs := []string{abs}
	switch i.kind {
	case protocol.FoundBare:
		top = abs
	case protocol.FoundGitLink:
		dirs = workspace.GitDirs(top)
	}
	before, now := i.control, &control{targets: map[string]uint64{}, rebases: map[string]bool{}}
	i.control = now
	sum := hashed{fnv.New64a()}
	var configs []string
	for _, dir := range dirs {
		fd, err := openBelow(unix.AT_FDCWD, dir)
		if err != nil {
			continue
		}
		for _, name := range settingsOf {
			sum.add(fd, name, 1)
		}
		configs = append(configs, dir+"/config", dir+"/config.worktree")
		unix.Close(fd)
	}
	now.settings = sum.Sum64()
	now.rebase = w.rebases(dirs, before, now, made || i.made)
	if before != nil && before.settings == now.settings {
		now.names, now.cut = before.names, before.cut
	} else {
		for _, config := range configs {
			names, cut := w.named(config, top)
			now.names, now.cut = append(now.names, names...), now.cut || cut
		}
	}
	for _, name := range now.names {
		now.targets[name] = hashBelow(name)
	}
	if before == nil {
		return
	}
	if before.settings != now.settings && !i.made {
		w.found(i.kind, path, true)
	}
	if before.rebase != now.rebase && now.rebase != 0 {
		w.found(protocol.FoundRebase, w.rel(top)+"/", false)
	}
	for _, name := range now.names {
		if is, was := now.targets[name], before.targets[name]; is != was && is != 0 {
			w.found(protocol.FoundHooks, w.rel(name), was != 0)
		}
	}
}

func (w *Watch) rel(abs string) string {
	if rel, err := filepath.Rel(w.root, abs); err == nil {
		return rel
	}
	return abs
}

// named are the paths of the workspace that a config has git run or include, absolute and without links. Where
// hooks lie in a directory with the name of _, as husky has them, they run those around it. cut reports that it
// names more than is looked at: each look goes to all of them.
func (w *Watch) named(config, top string) (out []string, cut bool) {
	b, err := readFile(config)
	if err != nil {
		return nil, false
	}
	n := 0
	for key, value := range workspace.GitConfig(bytes.NewReader(b)) {
		from := top
		switch {
		case key == "core.hookspath":
		case key == "include.path", strings.HasPrefix(key, "includeif.") && strings.HasSuffix(key, ".path"):
			from = filepath.Dir(config)
		default:
			continue
		}
		if n++; n > namesMax {
			return out, true
		}
		path := filepath.Clean(value)
		if strings.HasPrefix(path, "~") || value == "" {
			continue
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(from, path)
		}
		if key == "core.hookspath" && filepath.Base(path) == "_" {
			path = filepath.Dir(path)
		}
		if real, err := workspace.Real(path); err == nil {
			path = real
		}
		// What the whole repository lies in is reported by other means than a list of its files.
		if strings.HasPrefix(path, w.root+"/") && !strings.HasPrefix(top+"/", path+"/") && !slices.Contains(out, path) {
			out = append(out, path)
		}
	}
	return out, false
}

// rebases finds unfinished rebases, and sums up the commands that they run when they go on.
func (w *Watch) rebases(dirs []string, before, now *control, made bool) uint64 {
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
	sum := fnv.New64a()
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
			for line := range bytes.Lines(todo) {
				if word, _, _ := bytes.Cut(bytes.TrimLeft(line, " \t"), []byte(" ")); string(word) == "exec" || string(word) == "x" {
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
	return io.ReadAll(io.LimitReader(f, configMax))
}

// hashed sums up stamps.
type hashed struct{ hash.Hash64 }

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
	var names []string
	_ = entries(f, func(e fs.DirEntry) bool { // what cannot be read is summed up by its stamp
		names = append(names, e.Name())
		return len(names) < targetMax
	})
	slices.Sort(names)
	for _, name := range names {
		h.add(fd, name, deep-1)
	}
}

// hashBelow sums up what is at an absolute path; 0 is nothing.
func hashBelow(path string) uint64 {
	dir, name := split(path)
	fd, err := openBelow(unix.AT_FDCWD, dir)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	if _, err := at.Stat(fd, name); err != nil {
		return 0
	}
	sum := hashed{fnv.New64a()}
	sum.add(fd, name, targetDeep)
	return sum.Sum64()
}
