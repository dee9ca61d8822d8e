package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ipfs/go-cid"

	"wf/protocol"
	"wf/protocol/tree"
	"wf/roles"
	"wf/roles/workspace"
)

// What the files of a visit whose result is reused may be.
const (
	memoFiles    = 50_000
	memoTotal    = 500 << 20 // bytes
	memoFileSize = 500 << 20
)

// An outline is the tree of a directory, without the contents of files.
type outline struct {
	root   protocol.Link
	nodes  map[protocol.Link][]byte
	hidden []string // what is in no tree, sorted: path and kind; only where all is looked at
}

func (s *outline) read(l protocol.Link) ([]byte, error) {
	if b, ok := s.nodes[l]; ok {
		return b, nil
	}
	return nil, fmt.Errorf("%s: %w", l, protocol.ErrNotFound)
}

// walk yields the files.
func (s *outline) walk() iter.Seq2[tree.Item, error] {
	if !s.root.Defined() {
		return func(func(tree.Item, error) bool) {}
	}
	return tree.Walk(s.read, s.root)
}

// changed is what differs between two outlines, by path: files and links, and directories.
func changed(before, after *outline) (out, dirs []tree.Change, err error) {
	both := func(l protocol.Link) ([]byte, error) {
		if b, ok := before.nodes[l]; ok {
			return b, nil
		}
		return after.read(l)
	}
	for c, err := range tree.Diff(both, before.root, after.root) {
		if err != nil {
			return nil, nil, err
		}
		if c.Before.Mode != tree.Dir && c.After.Mode != tree.Dir {
			out = append(out, c)
		} else {
			dirs = append(dirs, c)
		}
	}
	slices.SortFunc(out, func(a, b tree.Change) int { return cmp.Compare(a.Path, b.Path) })
	return out, dirs, nil
}

// taking is how files are taken of a visit; nothing of them is kept.
func taking(choose tree.Chooser, put func(tree.Block) error) workspace.Taking {
	return workspace.Taking{Choose: choose, MaxSize: memoFileSize, MaxTotal: memoTotal, MaxFiles: memoFiles, Put: put}
}

// shoot takes the tree of a directory. With whole it has directories without files, too.
func shoot(ctx context.Context, dir string, choose tree.Chooser, whole bool) (outline, error) {
	s := outline{nodes: map[protocol.Link][]byte{}}
	t := taking(choose, s.put)
	t.Whole = whole
	var err error
	s.root, _, err = workspace.Take(ctx, dir, t)
	return s, err
}

// put keeps the blocks of directories.
func (s *outline) put(b tree.Block) error {
	if b.Link.CID().Type() != cid.Raw {
		s.nodes[b.Link] = b.Data
	}
	return nil
}

// inputs is the tree of what the visit reads of the workspace. Of what cannot be read no key tells.
func (m *memoizing) inputs() (outline, error) {
	s, err := m.look()
	if limit, ok := errors.AsType[*workspace.LimitError](err); ok {
		return s, fmt.Errorf("its inputs are too many or too large: %v: %w", limit, roles.ErrNotReusable)
	}
	if err != nil {
		return s, err
	}
	for it, err := range s.walk() {
		if err != nil {
			return s, err
		}
		if it.Mode == tree.Omitted {
			return s, fmt.Errorf("its input %s cannot be read: %s: %w", it.Path, it.Why, roles.ErrNotReusable)
		}
	}
	return s, nil
}

func (m *memoizing) look() (outline, error) {
	switch {
	case m.follows.Sees == roles.SeesEverything:
		return m.e.shootAll(m.ctx, m.turn.Workspace)
	case m.turn.Role.Caching.Whole:
		s, err := m.e.shootAll(m.ctx, m.turn.Workspace)
		s.hidden = nil // a copy has nothing of git and wf
		return s, err
	}
	return m.shootGlobs(m.turn.Workspace, m.turn.Role.Caching.Inputs)
}

func (m *memoizing) shootGlobs(dir string, texts []string) (outline, error) {
	if len(texts) == 0 {
		return outline{}, nil
	}
	globs, err := tree.NewGlobs(texts)
	if err != nil {
		return outline{}, err
	}
	return shoot(m.ctx, dir, globs.Top(), false)
}

// lying is what lies at some paths of a directory.
func (m *memoizing) lying(dir string, paths []string) (map[string]tree.Entry, error) {
	out := make(map[string]tree.Entry, len(paths))
	if len(paths) == 0 {
		return out, nil
	}
	s, err := shoot(m.ctx, dir, choosePaths(paths), false)
	if err != nil {
		return nil, err
	}
	for it, err := range s.walk() {
		if err != nil {
			return nil, err
		}
		out[it.Path] = it.Entry
	}
	return out, nil
}

// pathSet chooses files by their paths.
type pathSet struct {
	files map[string]bool
	dirs  map[string]*pathSet
}

func choosePaths(paths []string) *pathSet {
	top := &pathSet{map[string]bool{}, map[string]*pathSet{}}
	for _, p := range paths {
		at := top
		dirs := strings.Split(p, "/")
		for _, d := range dirs[:len(dirs)-1] {
			if at.dirs[d] == nil {
				at.dirs[d] = &pathSet{map[string]bool{}, map[string]*pathSet{}}
			}
			at = at.dirs[d]
		}
		at.files[dirs[len(dirs)-1]] = true
	}
	return top
}

func (p *pathSet) Takes(name string) bool { return p.files[name] }

func (p *pathSet) Enter(name string) (tree.Chooser, error) {
	if d := p.dirs[name]; d != nil {
		return d, nil
	}
	return nil, nil
}

// choosesPath reports whether globs choose a path.
func choosesPath(globs tree.Globs, path string) bool {
	var at tree.Chooser = globs.Top()
	dirs := strings.Split(path, "/")
	for _, d := range dirs[:len(dirs)-1] {
		below, err := at.Enter(d)
		if err != nil || below == nil {
			return false
		}
		at = below
	}
	return at.Takes(dirs[len(dirs)-1])
}

// leadsOut reports whether a link that lies at a path of the workspace leads out of it.
func leadsOut(path, text string) bool {
	return filepath.IsAbs(text) || !filepath.IsLocal(filepath.Join(filepath.Dir(path), text))
}

// scratchRoot is where visits have copies of their files.
func (e *Engine) scratchRoot() (string, error) {
	if e.Scratch != "" {
		return e.Scratch, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no place for the files of visits whose results are reused: %w", err)
	}
	return filepath.Join(cache, "wf", "reuse"), nil
}
