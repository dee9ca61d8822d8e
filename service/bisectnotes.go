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

	"wf/api"
	"wf/engine"
	"wf/files"
	"wf/protocol"
	"wf/protocol/tree"
	"wf/roles/workspace"
	"wf/service/compose"
)

// bisectNotes are what a bisect keeps between calls, in a directory of the user's cache that is named by its arguments:
//
//	lock            held by the process that searches
//	salt            of a search that was begun anew
//	runs.jsonl      the runs that were checked
//	work/CID-N-A    workspaces of runs that were not
type bisectNotes struct {
	dir, name string // name is that of the search, in request ids
	inPlace   string // the workspace, where runs work in it
	lock      *os.File
	known     map[string]noted
}

// noted is a line of runs.jsonl.
type noted struct {
	Definition protocol.Link `json:"definition"`
	N          int           `json:"n"`
	Run        api.TrialRun  `json:"run"`
	Why        string        `json:"why,omitempty"`
}

// What a bisect copies of a workspace at most.
const (
	bisectMaxFiles = 50_000
	bisectMaxSize  = 500 << 20
)

// notesMax bounds what is read of notes.
const notesMax = 64 << 20

// openNotes opens the notes of the bisect of these versions.
func (b *Bisector) openNotes(versions []api.BisectVersion) (_ *bisectNotes, err error) {
	of, err := b.summary(versions)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(of)
	cache, err := compose.UserDir("XDG_CACHE_HOME", ".cache")
	if err != nil {
		return nil, err
	}
	n := &bisectNotes{name: hex.EncodeToString(sum[:10]), known: map[string]noted{}}
	n.dir = filepath.Join(cache, "bisect", n.name)
	if b.InPlace {
		n.inPlace = b.Launch.Workspace
	} else if rel, err := filepath.Rel(files.Real(b.Launch.Workspace), files.Real(cache)); err == nil && filepath.IsLocal(rel) {
		return nil, protocol.ErrUsage.With("name the workspace with --dir, another place for copies with XDG_CACHE_HOME, or let the runs share it with --in-place",
			"each run works in a copy of the workspace %s, and the place for copies lies in it: %s", b.Launch.Workspace, cache)
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
			err = protocol.ErrBusy.With("wait for it, or end it", "another process searches with the same arguments")
		}
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, files.FreeLock(n.lock))
		}
	}()
	if b.Anew {
		err = n.forget()
	}
	if err == nil {
		err = n.read()
	}
	return n, err
}

// forget begins the search anew.
func (n *bisectNotes) forget() error {
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

func (n *bisectNotes) file(name string) string { return filepath.Join(n.dir, name) }

// removeWork removes the workspaces.
func (n *bisectNotes) removeWork() error {
	return errors.Join(workspace.RemoveAll(n.file("work")), os.Mkdir(n.file("work"), 0o700))
}

// read reads what was noted. A line that a killed process left unfinished says nothing.
func (n *bisectNotes) read() error {
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
		var x noted
		if json.Unmarshal(line, &x) == nil && x.Run.Run != "" {
			n.known[noteKey(x.Definition, x.N)] = x
		}
	}
	return nil
}

func noteKey(def protocol.Link, k int) string { return fmt.Sprintf("%s/%d", def, k) }

func (n *bisectNotes) find(def protocol.Link, k int) (noted, bool) {
	x, ok := n.known[noteKey(def, k)]
	return x, ok
}

// add notes a run that was checked.
func (n *bisectNotes) add(def protocol.Link, k int, r api.TrialRun, why string) error {
	line, err := json.Marshal(noted{def, k, r, why})
	if err != nil {
		return err
	}
	f, err := files.OpenFile(n.file("runs.jsonl"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(append([]byte("\n"), line...), '\n')) // begins on a line of its own, also behind an unfinished one
	return errors.Join(err, f.Close())
}

// close ends the search. What it found is kept, and of one that is complete no workspace.
func (n *bisectNotes) close(complete bool) error {
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

// place finds or makes the workspace of a run. A run that is known and whose copy is gone is not gone on with: another one
// takes its place.
func (s *search) place(ctx context.Context, def protocol.Link, k int) (p trialPlace, err error) {
	n := s.notes
	for attempt := 0; ; attempt++ {
		name := fmt.Sprintf("%s-%d-%d", def, k, attempt)
		p = trialPlace{dir: n.inPlace, request: "bisect/" + n.name + "/" + name}
		_, _, err := s.Store.Tip(ctx, engine.RequestRun(p.request))
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
		return p, s.copyTo(ctx, p.dir)
	}
}

// copyTo makes a copy of the workspace, which appears when it is whole.
func (s *search) copyTo(ctx context.Context, dir string) error {
	part := dir + ".part"
	if err := workspace.RemoveAll(part); err != nil {
		return err
	}
	if err := os.Mkdir(part, 0o700); err != nil {
		return err
	}
	all, err := tree.NewGlobs([]string{"**"})
	if err != nil {
		return err
	}
	_, err = workspace.Copy(ctx, s.Launch.Workspace, part, workspace.Copying{Choose: all.Top(), Max: bisectMaxSize, MaxFiles: bisectMaxFiles, Inward: true})
	if limit, ok := errors.AsType[*workspace.CopyError](err); ok {
		err = protocol.ErrUsage.With("name a smaller workspace with --dir, or let the runs share it with --in-place: each then finds what the others left",
			"each run works in a copy of the workspace %s: %s", s.Launch.Workspace, limit)
	}
	if err != nil {
		return errors.Join(err, workspace.RemoveAll(part))
	}
	return os.Rename(part, dir)
}
