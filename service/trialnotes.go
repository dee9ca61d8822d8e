package service

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"wf/cas"
	"wf/engine"
	"wf/files"
	"wf/protocol"
	"wf/protocol/tree"
	"wf/roles/workspace"
	"wf/service/compose"
)

// trialNotes are what a bisect or a sweep keeps between calls, in a directory of the user's cache that is named by its arguments:
//
//	lock            held by the process that has runs tried
//	salt            of one that was begun anew
//	runs.jsonl      the runs that were checked, each as an N
//	work/NAME-A     workspaces of runs that were not
type trialNotes[N note] struct {
	kind      string // bisect or sweep
	dir, name string // name is that of the bisect or sweep, in request ids
	inPlace   string // the workspace, where runs work in it
	lock      *os.File
	known     map[string]N // by key
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

// notesMax bounds what is read of notes.
const notesMax = 64 << 20

// openNotes opens the notes of a kind that arguments name, for runs that work in copies of a workspace, or in itself.
func openNotes[N note](kind string, arguments []byte, dir string, inPlace, anew bool) (_ *trialNotes[N], err error) {
	sum := sha256.Sum256(arguments)
	cache, err := compose.UserDir("XDG_CACHE_HOME", ".cache")
	if err != nil {
		return nil, err
	}
	n := &trialNotes[N]{kind: kind, name: hex.EncodeToString(sum[:10]), known: map[string]N{}}
	n.dir = filepath.Join(cache, kind, n.name)
	if inPlace {
		n.inPlace = dir
	} else if rel, err := filepath.Rel(files.Real(dir), files.Real(cache)); err == nil && filepath.IsLocal(rel) {
		return nil, protocol.ErrUsage.With("name the workspace with --dir, another place for copies with XDG_CACHE_HOME, or let the runs share it with --in-place",
			"each run works in a copy of the workspace %s, and the place for copies lies in it: %s", dir, cache)
	}
	if err := os.MkdirAll(filepath.Join(n.dir, "work"), 0o700); err != nil {
		return nil, err
	}
	if n.lock, err = files.OpenFile(filepath.Join(n.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, err
	}
	free, err := files.TryLock(n.lock, false)
	if err != nil || !free {
		n.lock.Close()
		if err == nil {
			err = protocol.ErrBusy.With("wait for it, or end it", "another process is at work with the same arguments")
		}
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, files.FreeLock(n.lock))
		}
	}()
	if anew {
		err = n.forget()
	}
	if err == nil {
		err = n.read()
	}
	return n, err
}

// forget begins anew.
func (n *trialNotes[N]) forget() error {
	salt := make([]byte, 5)
	rand.Read(salt) // never fails
	return errors.Join(n.removeWork(), remove(n.file("runs.jsonl")), files.Replace(n.file("salt"), []byte(hex.EncodeToString(salt))))
}

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (n *trialNotes[N]) file(name string) string { return filepath.Join(n.dir, name) }

// removeWork removes the workspaces.
func (n *trialNotes[N]) removeWork() error {
	return errors.Join(workspace.RemoveAll(n.file("work")), os.Mkdir(n.file("work"), 0o700))
}

// read reads what was noted. A line that a killed process left unfinished says nothing.
func (n *trialNotes[N]) read() error {
	salt, err := files.Read(n.file("salt"), 100)
	switch {
	case err == nil:
		n.name += "-" + string(salt)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	text, err := files.Read(n.file("runs.jsonl"), notesMax)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for line := range bytes.Lines(text) {
		var x N
		if json.Unmarshal(line, &x) == nil && x.key() != "" {
			n.known[x.key()] = x
		}
	}
	return nil
}

// add notes a run that was checked.
func (n *trialNotes[N]) add(x N) error {
	line, err := json.Marshal(x)
	if err != nil {
		return err
	}
	f, err := files.OpenFile(n.file("runs.jsonl"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(append([]byte("\n"), line...), '\n')) // begins on a line of its own, also behind an unfinished one
	n.known[x.key()] = x
	return errors.Join(err, f.Close())
}

// close ends it. What was found is kept, and of what is complete no workspace.
func (n *trialNotes[N]) close(complete bool) error {
	var err error
	if complete {
		err = n.removeWork()
	}
	return errors.Join(err, files.FreeLock(n.lock))
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
func (n *trialNotes[N]) place(ctx context.Context, s *cas.Store, of string, fill func(context.Context, string) error) (p trialPlace, err error) {
	for attempt := 0; ; attempt++ {
		name := fmt.Sprintf("%s-%d", of, attempt)
		p = trialPlace{dir: n.inPlace, request: n.kind + "/" + n.name + "/" + name}
		_, _, err := s.Tip(ctx, engine.RequestRun(p.request))
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

// fillPlace has a directory filled, which appears when it is whole.
func fillPlace(ctx context.Context, dir string, fill func(context.Context, string) error) error {
	part := dir + ".part"
	if err := workspace.RemoveAll(part); err != nil {
		return err
	}
	if err := os.Mkdir(part, 0o700); err != nil {
		return err
	}
	if err := fill(ctx, part); err != nil {
		return errors.Join(err, workspace.RemoveAll(part))
	}
	return os.Rename(part, dir)
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
