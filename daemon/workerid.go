package daemon

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"wf/files"
	"wf/hub/guard"
	"wf/protocol"
)

// workerID is the id of this worker: that of the token which the hub made for it, else that of the
// store.
func workerID(store, name, tokenFile string) (string, error) {
	if tokenFile == "" {
		return storeID(store, name)
	}
	words, err := TokenWords(tokenFile)
	if err != nil {
		return "", err
	}
	for _, w := range words[1:] {
		if id, ok := strings.CutPrefix(w, string(guard.Worker)+":"); ok {
			return id, nil
		}
	}
	return storeID(store, name)
}

// storeID is the worker id of a store at the hubs that it joins: made once, and kept in the store.
func storeID(store, name string) (string, error) {
	path := filepath.Join(store, Dir, "agent-id")
	// A store may come from elsewhere: a link would give the hub another file, or have one made.
	b, err := files.Read(path, 1<<10)
	if errors.Is(err, files.ErrOdd) {
		return "", protocol.ErrStore.With("remove it; wf makes a new one", "worker id: %v", err)
	}
	if id := strings.TrimSpace(string(b)); err == nil && id != "" {
		return id, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("worker id: %w", err)
	}
	var chance [4]byte
	_, _ = rand.Read(chance[:]) // never fails (crypto/rand)
	id := printable(name, 60) + "-" + hex.EncodeToString(chance[:])
	if err := files.MakeDir(filepath.Dir(path)); err != nil {
		return "", fmt.Errorf("worker id: %w", err)
	}
	if err := os.WriteFile(path, []byte(id+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("worker id: %w", err)
	}
	return id, nil
}

// printable is the beginning of a name, without what a screen does not show.
func printable(name string, most int) string {
	r := []rune(strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return -1
		}
		return c
	}, name))
	return string(r[:min(len(r), most)])
}
