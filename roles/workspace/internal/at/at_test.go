package at

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAWalkFollowsNoLinkWhereverItIs(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(os.MkdirAll(filepath.Join(top, "a/b"), 0o700), os.WriteFile(filepath.Join(top, "a/b/file"), []byte("text"), 0o600),
		os.Symlink("a", filepath.Join(top, "toA")), os.Symlink("file", filepath.Join(top, "a/b/toFile")), os.Symlink(top, filepath.Join(top, "a/up")))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := Open(unix.AT_FDCWD, top, unix.O_DIRECTORY)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(dir)
	for name, walk := range map[string]func(int, string, int) (int, error){"Walk": Walk, "walkByName": walkByName} {
		for _, path := range []string{"a/b/file", top + "/a/b/file", "a/b", "."} {
			fd, err := walk(dir, path, 0)
			if err != nil {
				t.Errorf("%s to %s: %v", name, path, err)
				continue
			}
			unix.Close(fd)
		}
		for _, path := range []string{"toA", "toA/b/file", "a/b/toFile", "a/up/a/b/file", top + "/toA/b", "a/none", "a/b/file/x"} {
			if fd, err := walk(dir, path, 0); err == nil {
				unix.Close(fd)
				t.Errorf("%s opens %s", name, path)
			}
		}
	}
}

func TestOnlyARegularFileIsOne(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	if err := errors.Join(os.WriteFile(file, []byte("text"), 0o600), unix.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	f, err := Regular(unix.AT_FDCWD, file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if b, err := io.ReadAll(f); err != nil || string(b) != "text" {
		t.Errorf("read %q, %v", b, err)
	}
	for _, name := range []string{dir, pipe} {
		if f, err := Regular(unix.AT_FDCWD, name); !errors.Is(err, ErrNoFile) {
			t.Errorf("%s is %v, %v", name, f, err)
		}
	}
}

func TestOnlyALinkHasText(t *testing.T) {
	dir := t.TempDir()
	long := filepath.Join(dir, "long")
	text := "/" + strings.Repeat("x/", unix.PathMax/2-1)
	err := errors.Join(os.WriteFile(filepath.Join(dir, "file"), nil, 0o600), os.Mkdir(filepath.Join(dir, "dir"), 0o700), os.Symlink(text, long))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Link(unix.AT_FDCWD, long); got != text || err != nil {
		t.Errorf("a text of %d bytes: %d, %v", len(text), len(got), err)
	}
	for name, want := range map[string]error{"file": ErrNoLink, "dir": ErrNoLink, "none": unix.ENOENT} {
		if got, err := Link(unix.AT_FDCWD, filepath.Join(dir, name)); !errors.Is(err, want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestADirectoryThatIsRemovedHasNoNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	dir, err := Open(unix.AT_FDCWD, path, unix.O_DIRECTORY)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(dir)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if n, err := Names(dir, make([]byte, 4096)); n != 0 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}
