package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode"

	"wf/cmd/internal/chat"
	"wf/protocol"
	"wf/protocol/tree"
	"wf/roles/workspace"
)

// chatFiles are the files of a workspace, which agents may have written, for a chat.
type chatFiles string

func newChatFiles(dir string) chat.Files { return chatFiles(dir) }

// How many files of a workspace are offered, and how many names are looked at for them.
const (
	chatPathsMax = 20_000
	chatNamesMax = 200_000
)

// Paths lists the files that no .gitignore or .wfignore leaves out, level by level. Links are not followed.
func (d chatFiles) Paths(ctx context.Context) (paths []string, more bool, err error) {
	root, err := workspace.Open(string(d), "")
	if err != nil {
		return nil, false, err
	}
	defer root.Close()
	top, err := tree.NewIgnored(workspace.RulesOf(string(d)), tree.Globs{}, tree.Globs{})
	if err != nil {
		return nil, false, err
	}
	l := chatLister{root: root}
	for level := []chatDir{{".", top}}; len(level) > 0; {
		var next []chatDir
		for _, dir := range level {
			below, err := l.dir(ctx, dir)
			if err != nil {
				return nil, false, err
			}
			if l.full() {
				return l.paths[:min(len(l.paths), chatPathsMax)], true, nil
			}
			next = append(next, below...)
		}
		level = next
	}
	return l.paths, false, nil
}

// A chatLister lists the files of a workspace.
type chatLister struct {
	root  *os.Root
	paths []string
	names int
}

// chatDir is a directory with what is chosen of it.
type chatDir struct {
	path string
	of   tree.Chooser
}

// full reports whether there is more than is listed.
func (l *chatLister) full() bool { return len(l.paths) > chatPathsMax || l.names > chatNamesMax }

// dir lists the files of a directory, and gives the directories in it. One that cannot be read has none.
func (l *chatLister) dir(ctx context.Context, d chatDir) (below []chatDir, err error) {
	f, err := l.root.OpenFile(d.path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, nil
	}
	defer f.Close()
	var paths []string
	for !l.full() {
		entries, err := f.ReadDir(1000)
		if len(entries) == 0 || err != nil && !errors.Is(err, io.EOF) {
			break
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		for _, e := range entries {
			l.names++
			name := e.Name()
			if workspace.Reserved(name) != "" || strings.ContainsFunc(name, unicode.IsControl) {
				continue
			}
			switch {
			case e.IsDir():
				of, err := d.of.Enter(name)
				if err != nil {
					return nil, err
				}
				if of != nil {
					below = append(below, chatDir{path.Join(d.path, name), of})
				}
			case e.Type().IsRegular() && d.of.Takes(name):
				paths = append(paths, path.Join(d.path, name))
			}
		}
	}
	slices.Sort(paths)
	slices.SortFunc(below, func(a, b chatDir) int { return strings.Compare(a.path, b.path) })
	l.paths = append(l.paths, paths...)
	return below, nil
}

// Read reads the beginning of a file. A path that leads out of the workspace, by a link or by its parts, is refused, as is one
// below .wf.
func (d chatFiles) Read(name string, n int) (text []byte, size int64, err error) {
	outside := protocol.ErrUsage.With("", "@%s leads out of the workspace %s; its text is not added: write the path without @, or copy the file into the workspace", name, string(d))
	local := name
	if filepath.IsAbs(name) {
		if local, err = filepath.Rel(string(d), name); err != nil {
			return nil, 0, outside
		}
	}
	if local = filepath.Clean(local); !filepath.IsLocal(local) {
		return nil, 0, outside
	}
	p, err := workspace.Find(string(d), "", local, workspace.Read)
	var reserved *workspace.ReservedError
	switch {
	case workspace.Outside(err):
		return nil, 0, outside
	case errors.As(err, &reserved):
		return nil, 0, protocol.ErrUsage.With("", "@%s: %v", name, err)
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
		return nil, 0, fmt.Errorf("@%s: %w", name, fs.ErrNotExist)
	case err != nil:
		return nil, 0, fmt.Errorf("@%s: %w", name, err)
	}
	defer p.Close()
	if info, err := p.Dir.Lstat(p.Base); err != nil || !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("@%s: %w", name, fs.ErrNotExist)
	}
	f, err := p.Open()
	if err != nil {
		return nil, 0, fmt.Errorf("@%s: %w", name, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(f, int64(n)))
	}
	if err != nil {
		return nil, 0, fmt.Errorf("@%s: %w", name, err)
	}
	return text, max(info.Size(), int64(len(text))), nil
}
