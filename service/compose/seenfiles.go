package compose

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"wf/cas"
	"wf/files"
)

// seenFiles keep what was seen of workspaces in the state directory of the user: no agent writes there. The names say
// nothing of what they are made of.
type seenFiles struct {
	dir string // "" keeps nothing
	key []byte
}

// seenMax is the length in bytes of the longest file, seenFor how long one is kept that is not written.
const (
	seenMax = 1 << 30
	seenFor = 30 * 24 * time.Hour
)

// SeenFiles keep what was seen of the files of workspaces.
func (u *Setup) SeenFiles() seenFiles {
	state := cas.StateDir(os.Getenv)
	if state == "" {
		return seenFiles{}
	}
	return seenFiles{filepath.Join(state, "seen"), u.sealFor("seen")}
}

func (s seenFiles) path(key string) string {
	h := hmac.New(sha256.New, s.key)
	h.Write([]byte(key))
	return filepath.Join(s.dir, hex.EncodeToString(h.Sum(nil)[:16]))
}

// Load is what was saved under a key; nil where that cannot be read.
func (s seenFiles) Load(key string) []byte {
	if s.dir == "" {
		return nil
	}
	data, _ := files.Read(s.path(key), seenMax) // what cannot be read is seen anew
	return data
}

// Save keeps data under a key, and removes what was not saved for long.
func (s seenFiles) Save(key string, data []byte) error {
	if s.dir == "" {
		return nil
	}
	if err := files.MakeDir(s.dir); err != nil {
		return err
	}
	err := s.remove(func(path string) (bool, error) {
		info, err := os.Lstat(path)
		return err == nil && time.Since(info.ModTime()) > seenFor, err
	})
	if err != nil {
		return err
	}
	return files.ReplaceSoon(s.path(key), data)
}

// Drop removes what begins with one of these texts.
func (s seenFiles) Drop(begins ...string) error {
	longest := 0
	for _, begin := range begins {
		longest = max(longest, len(begin))
	}
	b := make([]byte, longest)
	return s.remove(func(path string) (bool, error) {
		f, err := files.Open(path)
		if errors.Is(err, files.ErrOdd) {
			return false, nil // none of ours
		}
		if err != nil {
			return false, err
		}
		defer f.Close()
		n, err := io.ReadFull(f, b)
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return false, err
		}
		return slices.ContainsFunc(begins, func(begin string) bool { return bytes.HasPrefix(b[:n], []byte(begin)) }), nil
	})
}

// remove removes the files that are meant; one that goes meanwhile is gone.
func (s seenFiles) remove(meant func(path string) (bool, error)) error {
	list, err := os.ReadDir(s.dir)
	if s.dir == "" || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range list {
		path := filepath.Join(s.dir, e.Name())
		yes, err := meant(path)
		if err == nil && yes {
			err = os.Remove(path)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
