package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"wf/protocol"
)

// The id of a daemon lies in its store, which may come from elsewhere: a link in its place is neither
// read, so that no file goes to the hub as an id, nor written through.
func TestAnIDThatIsALinkIsRefused(t *testing.T) {
	store, victim := t.TempDir(), filepath.Join(t.TempDir(), "victim")
	path := filepath.Join(store, serveDir, "agent-id")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, path); err != nil {
		t.Fatal(err)
	}
	if id, err := agentID(store, "x"); !errors.Is(err, protocol.ErrStore) {
		t.Errorf("%q (%v)", id, err)
	}
	if _, err := os.Lstat(victim); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the target was made (%v)", err)
	}
	if err := os.WriteFile(victim, []byte("the key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if id, err := agentID(store, "x"); !errors.Is(err, protocol.ErrStore) {
		t.Errorf("%q (%v)", id, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	id, err := agentID(store, "x")
	if again, err2 := agentID(store, "x"); err != nil || err2 != nil || id != again {
		t.Errorf("%q (%v), then %q (%v)", id, err, again, err2)
	}
}
