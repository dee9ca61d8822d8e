package service

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"wf/engine"
	"wf/files"
	"wf/protocol"
	"wf/protocol/tree"
	"wf/roles/workspace"
	"wf/store"
)

// trialNotes are what a bisect or a sweep keeps between calls, in a notebook that is named by its arguments. It also has:
//
//	salt            of one that was begun anew
//
// The runs noted are those that were checked, each as an N; the workspaces NAME-A are of runs that were not.
type trialNotes[N note] struct {
	notebook
	kind    string // bisect or sweep
	name    string // of the bisect or sweep, in request ids
	inPlace string // the workspace, where runs work in it
	known   map[string]N
}

// A note is a line of runs.jsonl.
type note interface {
	// key is the same for no other run; "" is a line that says nothing.
	key() string
}

// What is copied of a workspace at most.
const (
	trialMaxFiles = 50_000
	trialMaxSize  = 500 << 20
)

// openNotes opens the notes of a kind that arguments name, for runs that work in copies of a workspace, or in itself.
func openNotes[N note](kind string, arguments []byte, dir string, inPlace, anew bool) (_ *trialNotes[N], err error) {
	n := &trialNotes[N]{kind: kind, known: map[string]N{}}
	if inPlace {
		n.inPlace = dir
	}
	n.notebook, err = openNotebook(kind, arguments, func(cache string) error {
		if inPlace || !lies(cache, files.Real(dir)) {
			return nil
		}
		return protocol.ErrUsage.With("name the workspace with --dir, another place for copies with XDG_CACHE_HOME, or let the runs share it with --in-place",
			"each run works in a copy of the workspace %s, and the place for copies lies in it: %s", dir, cache)
	}, "another process is at work with the same arguments")
	if err != nil {
		return nil, err
	}
	if n.name = filepath.Base(n.dir); anew {
		err = n.forget()
	}
	if err == nil {
		err = n.read()
	}
	if err != nil {
		return nil, errors.Join(err, n.close(false))
	}
	return n, nil
}

// forget begins anew.
func (n *trialNotes[N]) forget() error {
	salt := make([]byte, 5)
	rand.Read(salt) // never fails
	return errors.Join(n.clear(), files.Replace(n.file("salt"), []byte(hex.EncodeToString(salt))))
}

// read reads what was noted.
func (n *trialNotes[N]) read() error {
	salt, err := files.Read(n.file("salt"), 100)
	switch {
	case err == nil:
		n.name += "-" + string(salt)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return n.lines(func(line []byte) {
		var x N
		if json.Unmarshal(line, &x) == nil && x.key() != "" {
			n.known[x.key()] = x
		}
	})
}

// add notes a run that was checked.
func (n *trialNotes[N]) add(x N) error {
	n.known[x.key()] = x
	return n.write(x)
}

// A trialPlace is where a run works, and the request id that it has.
type trialPlace struct {
	dir, request string
	own          bool // dir is a copy
}

// drop removes the copy.
func (p trialPlace) drop() error {
	if !p.own {
		return nil
	}
	return workspace.RemoveAll(p.dir)
}

// place finds or makes the workspace of a run, of a name among the others; fill has its files written into a directory. A run that
// is known and whose copy is gone is not gone on with: another one takes its place.
func (n *trialNotes[N]) place(ctx context.Context, s store.Store, of string, fill func(context.Context, string) error) (p trialPlace, err error) {
	for attempt := 0; ; attempt++ {
		name := fmt.Sprintf("%s-%d", of, attempt)
		p = trialPlace{dir: n.inPlace, request: n.kind + "/" + n.name + "/" + name}
		_, _, err := s.Tip(ctx, (&engine.Engine{Store: s}).RequestRun(p.request))
		switch {
		case errors.Is(err, protocol.ErrRunDeleted):
			continue
		case err != nil && !errors.Is(err, protocol.ErrUnknownRun):
			return p, err
		case p.dir != "":
			return p, nil
		}
		p.dir, p.own = filepath.Join(n.dir, "work", name), true
		if files.Exists(p.dir) {
			return p, nil
		}
		if err == nil {
			continue
		}
		return p, fillPlace(ctx, p.dir, fill)
	}
}

// copyOf copies a workspace into a directory.
func copyOf(from string) func(context.Context, string) error {
	return func(ctx context.Context, to string) error {
		all, err := tree.NewGlobs([]string{"**"})
		if err != nil {
			return err
		}
		_, err = workspace.Copy(ctx, from, to, workspace.Copying{Choose: all.Top(), Max: trialMaxSize, MaxFiles: trialMaxFiles, Inward: true})
		if limit, ok := errors.AsType[*workspace.CopyError](err); ok {
			err = protocol.ErrUsage.With("name a smaller workspace with --dir, or let the runs share it with --in-place: each then finds what the others left",
				"each run works in a copy of the workspace %s: %s", from, limit)
		}
		return err
	}
}
