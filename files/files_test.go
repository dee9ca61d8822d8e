//go:build unix

package files_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"wf/files"
)

// laid is a directory with a file beside it, and what may lie in the place of one.
func laid(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "dir")
	path := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(os.MkdirAll(path("below"), 0o700), os.WriteFile(path("file"), []byte("four"), 0o600), os.WriteFile(path("../outside"), []byte("four"), 0o600),
		os.Symlink("file", path("link")), os.Symlink("../outside", path("out")), os.Symlink("below", path("dirlink")), os.Symlink("/dev/zero", path("device")),
		os.Symlink("nothing", path("broken")), syscall.Mkfifo(path("pipe"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestNothingButARegularFileIsRead(t *testing.T) {
	dir := laid(t)
	for how, c := range map[string]struct {
		read func(name string, most int64) ([]byte, error)
		good []string
	}{
		"Read":      {func(name string, most int64) ([]byte, error) { return files.Read(filepath.Join(dir, name), most) }, []string{"file"}},
		"ReadNamed": {func(name string, most int64) ([]byte, error) { return files.ReadNamed(filepath.Join(dir, name), most) }, []string{"file", "link", "out"}},
		"ReadIn":    {func(name string, most int64) ([]byte, error) { return files.ReadIn(dir, name, most) }, []string{"file", "link"}},
	} {
		good := map[string]bool{}
		for _, name := range c.good {
			good[name] = true
		}
		for _, name := range []string{"file", "link", "out", "device", "broken", "pipe", "below", "../outside"} {
			if name == "../outside" && how != "ReadIn" {
				continue
			}
			b, err := c.read(name, 4)
			if (err == nil) != good[name] || good[name] && string(b) != "four" {
				t.Errorf("%s of %s: %q, %v", how, name, b, err)
			}
		}
		if b, err := c.read("file", 3); !errors.Is(err, files.ErrOdd) {
			t.Errorf("%s of more than it may be: %q, %v", how, b, err)
		}
	}
}

func TestNoDirectoryIsMadeBehindALink(t *testing.T) {
	dir := laid(t)
	for name, good := range map[string]bool{"below": true, "new/deep": true, "dirlink": false, "broken": false, "file": false} {
		if err := files.MakeDir(filepath.Join(dir, name)); (err == nil) != good {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "nothing")); err == nil {
		t.Error("the target of a link was made")
	}
}
