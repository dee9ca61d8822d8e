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

	"wf/agentkit/config"
	"wf/cas"
	"wf/files"
	"wf/protocol"
	"wf/store"
)

// UsersStore is what storeDir says of the store that all directories without one share.
const UsersStore = "the user's data directory"

// StoreName is the name of the store, a directory or the address of a database: --store, WF_STORE, store in the
// user's config, the nearest .wf upwards, else the user's own. where says which of them it was.
func (u *Setup) StoreName() (name, where string, err error) {
	if name, where, err = u.namedStore(); err == nil {
		if err = store.Named(name); err != nil {
			err = fmt.Errorf("%s: %w", where, err)
		}
	}
	return name, where, err
}

func (u *Setup) namedStore() (name, where string, err error) {
	if u.Options.Store != "" {
		return u.Options.Store, "--store", nil
	}
	if name := os.Getenv("WF_STORE"); name != "" {
		return name, "WF_STORE", nil
	}
	configured, err := config.UserStore(UserConfig())
	if err != nil || configured != "" {
		return configured, UserConfig(), err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return "", "", fmt.Errorf("find the store: %w", err)
	}
	name, err = nearest(cwd)
	if err != nil || name != "" {
		return name, ".wf", err
	}
	name, err = UserDir("XDG_DATA_HOME", ".local/share")
	return name, UsersStore, err
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

// OpenStore opens the store. One in a directory is made when there is none, unless it must exist.
func (u *Setup) OpenStore(ctx context.Context, mustExist bool) (store.Store, error) {
	name, where, err := u.StoreName()
	if err != nil {
		return nil, err
	}
	s, err := u.openStore(ctx, name, mustExist)
	if err == nil && u.Verbose {
		u.Tellf("store %s (from %s)", store.Shown(s.Name()), where)
	}
	return s, err
}

func (u *Setup) openStore(ctx context.Context, name string, mustExist bool) (store.Store, error) {
	return store.Open(ctx, name, store.Options{MustExist: mustExist, Seal: u.Seal(), Warn: u.Warn, State: cas.StateDir(os.Getenv)})
}

// Beside is the directory of this machine for what belongs to the store and is not in it; see store.Store.
func (u *Setup) Beside(ctx context.Context) (dir string, err error) {
	name, _, err := u.StoreName()
	if err != nil || !store.IsDatabase(name) {
		return name, err
	}
	err = u.WithStore(ctx, func(s store.Store) error {
		dir = s.Beside()
		return nil
	})
	return dir, err
}

// WithDirectory runs f with a store that must exist, and be a directory; hint says what does the same for a database.
func (u *Setup) WithDirectory(ctx context.Context, hint string, f func(*cas.Store) error) error {
	name, _, err := u.StoreName()
	if err == nil {
		err = store.OfDirectory(name, hint)
	}
	if err != nil {
		return err
	}
	return u.WithStore(ctx, func(s store.Store) error {
		dir, err := store.Directory(s, hint)
		if err != nil {
			return err
		}
		return f(dir)
	})
}

// Seal is the key for what is derived in stores. Where none can be kept what this process seals is used by
// it alone.
func (u *Setup) Seal() []byte {
	u.key.once.Do(func() {
		if u.key.bytes, u.key.err = cas.UserKey(cas.StateDir(os.Getenv)); u.key.err == nil {
			return
		}
		err := u.key.err
		u.key.bytes = make([]byte, 32)
		rand.Read(u.key.bytes) // never fails
		if !errors.Is(err, protocol.ErrForeign) {
			u.Warn(fmt.Errorf("the stored states of runs are not used, and journals are read instead (remove what lies there: wf makes a new key): %w", err))
		}
	})
	return u.key.bytes
}

// KeptSeal is a key for one use alone, for what other processes of the user read later; an error where none can be kept.
func (u *Setup) KeptSeal(use string) ([]byte, error) {
	if u.Seal(); u.key.err != nil {
		return nil, u.key.err
	}
	return u.sealFor(use), nil
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
	name, where, err := u.StoreName()
	if err != nil || where == "--store" && !files.Exists(name) {
		return false, err
	}
	return !HoldsStore(name), nil
}

// HoldsStore reports whether there is a store in a directory, whole or not: the .wf of a project
// may hold its config alone. A database is taken to hold one: its open says where it does not.
func HoldsStore(name string) bool {
	return store.IsDatabase(name) || files.Exists(filepath.Join(name, "store.db")) || files.Exists(filepath.Join(name, "store.lock")) || files.Exists(filepath.Join(name, cas.Restoring))
}

// WithStore runs f with a store that must exist, and closes it.
func (u *Setup) WithStore(ctx context.Context, f func(store.Store) error) error {
	return u.withStore(ctx, true, f)
}

// WithNewStore runs f with a store, which is made when there is none, and closes it.
func (u *Setup) WithNewStore(ctx context.Context, f func(store.Store) error) error {
	return u.withStore(ctx, false, f)
}

// WithStoreNamed runs f with the store of a name, and closes it.
func (u *Setup) WithStoreNamed(ctx context.Context, name string, mustExist bool, f func(store.Store) error) error {
	s, err := u.openStore(ctx, name, mustExist)
	if err != nil {
		return err
	}
	return errors.Join(f(s), s.Close())
}

func (u *Setup) withStore(ctx context.Context, mustExist bool, f func(store.Store) error) error {
	s, err := u.OpenStore(ctx, mustExist)
	if err != nil {
		return err
	}
	return errors.Join(f(s), s.Close())
}
