package daemon

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"wf/cas"
	"wf/files"
	"wf/hub/schedule"
	"wf/protocol"
	"wf/service/compose"
)

// The id of a daemon lies in its store, which may come from elsewhere: a link in its place is neither
// read, so that no file goes to the hub as an id, nor written through.
func TestAnIDThatIsALinkIsRefused(t *testing.T) {
	store, victim := t.TempDir(), filepath.Join(t.TempDir(), "victim")
	path := filepath.Join(store, Dir, "agent-id")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, path); err != nil {
		t.Fatal(err)
	}
	if id, err := storeID(store, "x"); !errors.Is(err, protocol.ErrStore) {
		t.Errorf("%q (%v)", id, err)
	}
	if _, err := os.Lstat(victim); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the target was made (%v)", err)
	}
	if err := os.WriteFile(victim, []byte("the key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if id, err := storeID(store, "x"); !errors.Is(err, protocol.ErrStore) {
		t.Errorf("%q (%v)", id, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	id, err := storeID(store, "x")
	if again, err2 := storeID(store, "x"); err != nil || err2 != nil || id != again {
		t.Errorf("%q (%v), then %q (%v)", id, err, again, err2)
	}
}

// A directory in which a daemon keeps what is its own is no link either, and what it keeps is no link.
func TestWhatADaemonKeepsIsKeptInItsStore(t *testing.T) {
	store, elsewhere := t.TempDir(), t.TempDir()
	if err := os.Symlink(elsewhere, filepath.Join(store, Dir)); err != nil {
		t.Fatal(err)
	}
	if id, err := storeID(store, "x"); err == nil {
		t.Errorf("an id was made: %q", id)
	}
	seen := &schedule.Seen{In: schedule.File(filepath.Join(store, Dir, "schedule.json"))}
	if _, err := seen.Until("job", time.Now()); err == nil {
		t.Error("a job was noted")
	}
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
		t.Errorf("behind the link lies %v, %v", left, err)
	}
	s, err := cas.Open(t.Context(), filepath.Join(t.TempDir(), "store"), cas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, link := range []string{compose.TasksDir + "/R1", compose.TasksDir} {
		path := filepath.Join(s.Dir(), link)
		if err := errors.Join(os.RemoveAll(path), os.MkdirAll(filepath.Dir(path), 0o700), os.Symlink(elsewhere, path)); err != nil {
			t.Fatal(err)
		}
		if dir, err := compose.TaskDir(s, "R1"); !errors.Is(err, files.ErrOdd) {
			t.Errorf("with a link in place of %s pages go to %s, %v", link, dir, err)
		}
	}
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
		t.Errorf("behind the link lies %v, %v", left, err)
	}
	at := filepath.Join(t.TempDir(), "schedule.json")
	if err := os.Symlink("/dev/zero", at); err != nil {
		t.Fatal(err)
	}
	if _, err := (&schedule.Seen{In: schedule.File(at)}).Until("job", time.Now()); !errors.Is(err, files.ErrOdd) {
		t.Errorf("a link was read: %v", err)
	}
}
