package cas

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"wf/files"
	"wf/protocol"
)

const (
	keyFile = "key"
	keySize = 32
)

// UserKey is a secret of the user on this machine, kept in stateDir (see StateDir) and made when there is
// none. What it seals only this user's wf can have written. It is 32 random bytes in a file that the user
// alone can read; another file in its place is an error wrapping protocol.ErrCorrupt.
func UserKey(stateDir string) ([]byte, error) {
	if stateDir == "" {
		return nil, errNoState
	}
	return Secret(filepath.Join(stateDir, keyFile))
}

// Secret is a file of 32 random bytes, which is made when there is none, as that of UserKey is.
func Secret(path string) ([]byte, error) {
	key, err := readKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeKey(path); err == nil {
			key, err = readKey(path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the key in %s: %w", path, err)
	}
	return key, nil
}

func readKey(path string) ([]byte, error) {
	f, err := openData(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() != keySize || info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%d bytes of mode %v, want %d of 0600: %w", info.Size(), info.Mode().Perm(), keySize, protocol.ErrCorrupt)
	}
	key := make([]byte, keySize)
	_, err = io.ReadFull(f, key)
	return key, err
}

// makeKey makes the file, whole. Of several processes the first one makes it.
func makeKey(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	key := make([]byte, keySize)
	rand.Read(key) // never fails
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(key)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		if err = os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) { // no links here
			return os.Rename(f.Name(), path)
		}
		err = nil
	}
	if err = errors.Join(err, os.Remove(f.Name())); err != nil {
		return err
	}
	return files.SyncDir(filepath.Dir(path))
}
