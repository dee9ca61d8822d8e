package service

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"wf/files"
	"wf/protocol"
	"wf/roles/workspace"
	"wf/service/compose"
)

// A notebook is what a bisect, a sweep or an evaluation keeps between calls, in a directory of the user's cache:
//
//	lock         held by the process that has runs tried
//	runs.jsonl   what is known of the runs
//	work/        workspaces
type notebook struct {
	dir  string
	lock *os.File
	mu   *sync.Mutex // for runs.jsonl
}

// notesMax bounds what is read of notes.
const notesMax = 1 << 30

// openNotebook opens the notebook of a kind that a text names. fits is asked about the place of all of them, before anything is made
// there; busy says that another process has the notebook.
func openNotebook(kind string, of []byte, fits func(cache string) error, busy string) (n notebook, err error) {
	cache, err := compose.UserDir("XDG_CACHE_HOME", ".cache")
	if err == nil {
		err = fits(cache)
	}
	if err != nil {
		return n, err
	}
	sum := sha256.Sum256(of)
	n = notebook{dir: filepath.Join(cache, kind, hex.EncodeToString(sum[:10])), mu: new(sync.Mutex)}
	if err := os.MkdirAll(n.file("work"), 0o700); err != nil {
		return n, err
	}
	if n.lock, err = files.OpenFile(n.file("lock"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return n, err
	}
	free, err := files.TryLock(n.lock, false)
	if err != nil || !free {
		n.lock.Close()
		if err == nil {
			err = protocol.ErrBusy.With(protocol.ErrBusy.Hint, "%s", busy)
		}
	}
	return n, err
}

// lies reports whether the cache lies in a directory.
func lies(cache, in string) bool {
	rel, err := filepath.Rel(in, files.Real(cache))
	return err == nil && filepath.IsLocal(rel)
}

func (n *notebook) file(name string) string { return filepath.Join(n.dir, name) }

// removeWork removes the workspaces.
func (n *notebook) removeWork() error {
	return errors.Join(workspace.RemoveAll(n.file("work")), os.Mkdir(n.file("work"), 0o700))
}

// clear forgets the runs.
func (n *notebook) clear() error { return errors.Join(remove(n.file("runs.jsonl")), n.removeWork()) }

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// lines gives what was noted, line by line. One that a killed process left unfinished says nothing.
func (n *notebook) lines(take func(line []byte)) error {
	text, err := files.Read(n.file("runs.jsonl"), notesMax)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for line := range bytes.Lines(text) {
		take(line)
	}
	return nil
}

// write notes what is known of a run.
func (n *notebook) write(x any) error {
	line, err := json.Marshal(x)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	f, err := files.OpenFile(n.file("runs.jsonl"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(append([]byte("\n"), line...), '\n')) // begins on a line of its own, also behind an unfinished one
	return errors.Join(err, f.Close())
}

// close ends it. What was found is kept, and of what is complete no workspace.
func (n *notebook) close(complete bool) error {
	var err error
	if complete {
		err = n.removeWork()
	}
	return errors.Join(err, files.FreeLock(n.lock))
}

// fillPlace has a directory filled, which appears when it is whole.
func fillPlace(ctx context.Context, dir string, fill func(context.Context, string) error) error {
	part := dir + ".part"
	if err := errors.Join(workspace.RemoveAll(part), workspace.RemoveAll(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(part, 0o700); err != nil {
		return err
	}
	err := fill(ctx, part)
	if err == nil {
		err = os.Rename(part, dir)
	}
	if err != nil {
		return errors.Join(err, workspace.RemoveAll(part))
	}
	return nil
}
