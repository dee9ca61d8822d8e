package roles_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"wf/protocol"
	"wf/roles"
)

func openOwn(t *testing.T, root, key, want string) *roles.OwnCopy {
	t.Helper()
	o, mark, err := roles.OpenOwnCopy(root, "RUN", key)
	if err != nil || mark != want {
		t.Fatalf("%q, %v", mark, err)
	}
	return o
}

func TestC04ACopyWithoutItsMarkIsMadeAnew(t *testing.T) {
	root := t.TempDir()
	for _, whole := range []bool{false, true} {
		mark := ""
		o := openOwn(t, root, "k", "")
		f := filepath.Join(o.Files(), "d", "f")
		if err := errors.Join(os.Mkdir(filepath.Dir(f), 0o755), os.WriteFile(f, []byte("x"), 0o600), os.Chmod(filepath.Dir(f), 0)); err != nil {
			t.Fatal(err)
		}
		if whole {
			mark = "mark"
			if err := o.Ready(mark); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := roles.OpenOwnCopy(root, "RUN", "k"); !errors.Is(err, protocol.ErrBusy) {
			t.Errorf("a second process: %v", err)
		}
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
		o = openOwn(t, root, "k", mark)
		if _, err := os.Lstat(filepath.Dir(f)); (err == nil) != whole {
			t.Errorf("whole: %t, and what was in it: %v", whole, err)
		}
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := roles.DropOwnCopy(root, "RUN", "k"); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	if err := roles.DropOwnCopy(root, "RUN", "k"); err != nil {
		t.Errorf("one that is not there: %v", err)
	}
}

func TestC04OldCopiesAreSwept(t *testing.T) {
	roots := t.TempDir()
	root := filepath.Join(roots, "store")
	old := time.Now().Add(-time.Hour)
	for _, key := range []string{"used", "old", "new"} {
		o := openOwn(t, root, key, "")
		if err := errors.Join(os.WriteFile(filepath.Join(o.Files(), "f"), []byte("12345"), 0o600), o.Ready("mark")); err != nil {
			t.Fatal(err)
		}
		if key == "used" {
			defer o.Close()
		} else if err := o.Close(); err != nil {
			t.Fatal(err)
		}
		if key != "new" {
			if err := os.Chtimes(filepath.Join(root, "RUN", key+".lock"), old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, remove := range []bool{false, true} {
		all, n, size, err := roles.SweepOwnCopies(roots, time.Now().Add(-time.Minute), remove)
		if all != 3 || n != 1 || size < 5 || size > 20 || err != nil {
			t.Errorf("%d, %d, %d, %v", all, n, size, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(root, "RUN", "*")); err != nil || len(left) != 4 {
		t.Errorf("%v, %v", left, err)
	}
	// What lies in the place of a directory, or of a lock, is not followed.
	elsewhere := t.TempDir()
	if err := os.Symlink(elsewhere, filepath.Join(root, "LINK")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := roles.OpenOwnCopy(root, "LINK", "k"); err == nil {
		t.Error("a copy is made behind a link")
	}
}
