package cas_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"wf/cas"
	"wf/protocol"
)

func TestTheKeyOfAUserIsMadeOnceAndPrivate(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state", "wf")
	keys := make([][]byte, 8)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			var err error
			if keys[i], err = cas.UserKey(state); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, k := range keys {
		if len(k) != 32 || !bytes.Equal(k, keys[0]) || bytes.Equal(k, make([]byte, 32)) {
			t.Fatalf("the keys of one user are %x", keys)
		}
	}
	left, err := os.ReadDir(state)
	if err != nil || len(left) != 1 {
		t.Fatalf("beside the key lies %v, %v", left, err)
	}
	if info, err := left[0].Info(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key has the mode %v, %v", info.Mode(), err)
	}
	if other, err := cas.UserKey(t.TempDir()); err != nil || bytes.Equal(other, keys[0]) {
		t.Errorf("another user has the key %x, %v", other, err)
	}
}

// What is no key of wf's is not taken for one, and never written over.
func TestAnotherFileInPlaceOfTheKeyIsRefused(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"short": func(path string) error { return os.WriteFile(path, []byte("short"), 0o600) },
		"read by all": func(path string) error {
			return errors.Join(os.WriteFile(path, make([]byte, 32), 0o600), os.Chmod(path, 0o644))
		},
		"a link":        func(path string) error { return os.Symlink("/dev/zero", path) },
		"a directory":   func(path string) error { return os.Mkdir(path, 0o700) },
		"a broken link": func(path string) error { return os.Symlink("nothing", path) },
	} {
		state := t.TempDir()
		if err := put(filepath.Join(state, "key")); err != nil {
			t.Fatal(err)
		}
		if key, err := cas.UserKey(state); err == nil {
			t.Errorf("%s is the key %x", name, key)
		}
	}
	if _, err := cas.UserKey(""); !errors.Is(err, protocol.ErrForeign) {
		t.Errorf("without a state directory: %v", err)
	}
}
