package compose

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
	"wf/files"
	"wf/protocol"
)

// UsersStore is what storeDir says of the store that all directories without one share.
const UsersStore = "the user's data directory"

// StoreDir is where the store is: --store, WF_STORE, the nearest .wf upwards, else the
// user's own. where says which of them it was.
func (u *Setup) StoreDir() (dir, where string, err error) {
	if u.Options.Store != "" {
		return u.Options.Store, "--store", nil
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
	dir, err = UserDir("XDG_DATA_HOME", ".local/share")
	return dir, UsersStore, err
}

// ProjectDir is the name of the directory that holds the store, config and schema of a project.
const ProjectDir = ".wf"

// nearest is the .wf of dir or of the nearest directory above it, "" when there is none.
func nearest(dir string) (string, error) {
	for {
		found := filepath.Join(dir, ProjectDir)
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

// UserDir is wf's part of an XDG base directory.
func UserDir(variable, fallback string) (string, error) {
	if base := os.Getenv(variable); filepath.IsAbs(base) {
		return filepath.Join(base, "wf"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", protocol.ErrStore.With("name a store with --store DIR", "no home directory for a store: %v", err)
	}
	return filepath.Join(home, fallback, "wf"), nil
}

// OpenStore opens the store, and makes it when there is none, unless it must exist.
func (u *Setup) OpenStore(ctx context.Context, mustExist bool) (*cas.Store, error) {
	dir, where, err := u.StoreDir()
	if err != nil {
		return nil, err
	}
	o := cas.Options{MustExist: mustExist, Warn: u.Warn, Seal: u.Seal()}
	// The lock of a read-only store cannot be written, yet the store can be read.
	if mustExist && !files.Writable(dir) {
		o.ReadOnly = true
	}
	s, err := cas.Open(ctx, dir, o)
	if err != nil {
		return nil, err
	}
	s.HandleStop() // Ctrl-Z keeps nobody out
	if u.Verbose {
		u.Tellf("store %s (from %s)", s.Dir(), where)
	}
	return s, nil
}

// Seal is the key for what is derived in stores. Where none can be kept what this process seals is used by
// it alone.
func (u *Setup) Seal() []byte {
	u.key.once.Do(func() {
		var err error
		if u.key.bytes, err = cas.UserKey(cas.StateDir(os.Getenv)); err == nil {
			return
		}
		u.key.bytes = make([]byte, 32)
		rand.Read(u.key.bytes) // never fails
		if !errors.Is(err, protocol.ErrForeign) {
			u.Warn(fmt.Errorf("the stored states of runs are not used, and journals are read instead (remove what lies there: wf makes a new key): %w", err))
		}
	})
	return u.key.bytes
}

// sealFor is a key for one use alone, made from seal.
func (u *Setup) sealFor(use string) []byte {
	h := hmac.New(sha256.New, u.Seal())
	h.Write([]byte("wf " + use))
	return h.Sum(nil)
}

// NoStoreYet reports whether there is no store where wf would make it. A --store that is not even a
// directory is a mistake, which the open tells.
func (u *Setup) NoStoreYet() (bool, error) {
	dir, where, err := u.StoreDir()
	if err != nil || where == "--store" && !files.Exists(dir) {
		return false, err
	}
	return !HoldsStore(dir), nil
}

// HoldsStore reports whether there is a store in a directory, whole or not: the .wf of a project
// may hold its config alone.
func HoldsStore(dir string) bool {
	return files.Exists(filepath.Join(dir, "store.db")) || files.Exists(filepath.Join(dir, "store.lock")) || files.Exists(filepath.Join(dir, cas.Restoring))
}

// WithStore runs f with a store that must exist, and closes it.
func (u *Setup) WithStore(ctx context.Context, f func(*cas.Store) error) error {
	return u.withStore(ctx, true, f)
}

// WithNewStore runs f with a store, which is made when there is none, and closes it.
func (u *Setup) WithNewStore(ctx context.Context, f func(*cas.Store) error) error {
	return u.withStore(ctx, false, f)
}

func (u *Setup) withStore(ctx context.Context, mustExist bool, f func(*cas.Store) error) error {
	s, err := u.OpenStore(ctx, mustExist)
	if err != nil {
		return err
	}
	return errors.Join(f(s), s.Close())
}
