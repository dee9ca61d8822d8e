package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"wf/cas"
	"wf/protocol"
)

// usersStore is what storeDir says of the store that all directories without one share.
const usersStore = "the user's data directory"

// storeDir is where the store is: --store, WF_STORE, the nearest .wf upwards, else the
// user's own. where says which of them it was.
func (a *app) storeDir() (dir, where string, err error) {
	if a.store != "" {
		return a.store, "--store", nil
	}
	if dir := os.Getenv("WF_STORE"); dir != "" {
		return dir, "WF_STORE", nil
	}
	cwd, err := os.Getwd()
	if err != nil {
		return "", "", fmt.Errorf("find the store: %w", err)
	}
	dir, err = nearest(cwd)
	if err != nil || dir != "" {
		return dir, ".wf", err
	}
	dir, err = userDir("XDG_DATA_HOME", ".local/share")
	return dir, usersStore, err
}

// projectDir is the name of the directory that holds the store, config and schema of a project.
const projectDir = ".wf"

// nearest is the .wf of dir or of the nearest directory above it, "" when there is none.
func nearest(dir string) (string, error) {
	for {
		found := filepath.Join(dir, projectDir)
		info, err := os.Stat(found)
		switch {
		case err == nil && info.IsDir():
			return found, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission):
			return "", fmt.Errorf("find the store: %w", err)
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", nil
		}
		dir = up
	}
}

// userDir is wf's part of an XDG base directory.
func userDir(variable, fallback string) (string, error) {
	if base := os.Getenv(variable); filepath.IsAbs(base) {
		return filepath.Join(base, "wf"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fail(protocol.ErrStore, "name a store with --store DIR", "no home directory for a store: %v", err)
	}
	return filepath.Join(home, fallback, "wf"), nil
}

// openStore opens the store for a command that writes, and makes it when there is none.
func (a *app) openStore(ctx context.Context) (*cas.Store, error) {
	return a.open(ctx, cas.Options{})
}

// existingStore opens a store that must be there already.
func (a *app) existingStore(ctx context.Context) (*cas.Store, error) {
	return a.open(ctx, cas.Options{MustExist: true})
}

func (a *app) open(ctx context.Context, o cas.Options) (*cas.Store, error) {
	dir, where, err := a.storeDir()
	if err != nil {
		return nil, err
	}
	// The lock of a read-only store cannot be written, yet the store can be read.
	if o.MustExist && !writable(dir) {
		o.ReadOnly = true
	}
	o.Warn, o.Seal = a.warn, a.seal()
	s, err := cas.Open(ctx, dir, o)
	if err != nil {
		return nil, err
	}
	s.HandleStop() // Ctrl-Z keeps nobody out
	if a.verbose {
		a.progress("store %s (from %s)", s.Dir(), where)
	}
	return s, nil
}

// seal is the key for what is derived in stores. Where none can be kept what this process seals is used by
// it alone.
func (a *app) seal() []byte {
	a.key.once.Do(func() {
		var err error
		if a.key.bytes, err = cas.UserKey(cas.StateDir(os.Getenv)); err == nil {
			return
		}
		a.key.bytes = make([]byte, 32)
		rand.Read(a.key.bytes) // never fails
		if !errors.Is(err, protocol.ErrForeign) {
			a.warn(fmt.Errorf("the stored states of runs are not used, and journals are read instead (remove what lies there: wf makes a new key): %w", err))
		}
	})
	return a.key.bytes
}

// sealFor is a key for one use alone, made from seal.
func (a *app) sealFor(use string) []byte {
	h := hmac.New(sha256.New, a.seal())
	h.Write([]byte("wf " + use))
	return h.Sum(nil)
}

// noStoreYet reports whether there is no store where wf would make it. A --store that is not even a
// directory is a mistake, which the open tells.
func (a *app) noStoreYet() (bool, error) {
	dir, where, err := a.storeDir()
	if err != nil || where == "--store" && !there(dir) {
		return false, err
	}
	return !holdsStore(dir), nil
}

// holdsStore reports whether there is a store in a directory, whole or not: the .wf of a project
// may hold its config alone.
func holdsStore(dir string) bool {
	return there(filepath.Join(dir, "store.db")) || there(filepath.Join(dir, "store.lock"))
}

// withStore runs f with a store that must exist, and closes it.
func (a *app) withStore(ctx context.Context, f func(*cas.Store) error) error {
	s, err := a.existingStore(ctx)
	if err != nil {
		return err
	}
	return errors.Join(f(s), s.Close())
}

// tellEarlier says where the runs of the project in dir are that were made before it had the
// store of its own that is in use: in that of the user. One that cannot be read is not told of.
func (a *app) tellEarlier(ctx context.Context, dir, used string) {
	abs, err := filepath.Abs(dir)
	users, userErr := userDir("XDG_DATA_HOME", ".local/share")
	if errors.Join(err, userErr) != nil || used == users || !holdsStore(users) {
		return
	}
	s, err := cas.Open(ctx, users, cas.Options{MustExist: true, ReadOnly: true, Seal: a.seal()})
	if err != nil {
		return
	}
	n, err := startedIn(ctx, s, projectOf(abs))
	if err = errors.Join(err, s.Close()); err == nil && n > 0 {
		a.progress("%s of this project from before it had a store of its own: wf ls --store %s", plural(n, "run"), users)
	}
}

// startedIn counts the runs of a project in a store.
func startedIn(ctx context.Context, s *cas.Store, project string) (n int, err error) {
	heads, err := newestRuns(ctx, s)
	for _, h := range heads {
		if started, err := startedBy(ctx, s, runOf(h)); err == nil && started.Parent == nil && projectOf(started.StartedIn()) == project {
			n++
		}
	}
	return n, err
}
