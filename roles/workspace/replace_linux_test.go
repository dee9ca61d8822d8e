package workspace_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"wf/roles/workspace"
)

// F507: while a file is written nothing of it lies in the directory: a process that is killed then leaves the old one, or none.
func TestF507NothingHalfWrittenHasAName(t *testing.T) {
	dir := t.TempDir()
	lay(t, dir, map[string]string{"old": "text"})
	if fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY, 0o600); err != nil {
		t.Skip("the file system has no files without names: ", err)
	} else if err := unix.Close(fd); err != nil {
		t.Fatal(err)
	}
	const size = 32 << 20
	written, looked := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-written:
				looked <- nil
				return
			default:
			}
			all, err := os.ReadDir(dir)
			for _, e := range all {
				s, serr := e.Info()
				if serr == nil && s.Size() != size && e.Name() != "old" {
					err = errors.Join(err, errors.New(e.Name()+" is half written"))
				}
				if !errors.Is(serr, fs.ErrNotExist) {
					err = errors.Join(err, serr)
				}
			}
			if err != nil {
				looked <- err
				return
			}
		}
	}()
	for range 4 {
		for _, name := range []string{"new", "old"} {
			replace(t, dir, name, size)
			if s, err := os.Stat(filepath.Join(dir, name)); err != nil || s.Size() != size {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	close(written)
	if err := <-looked; err != nil {
		t.Error(err)
	}
	for _, size := range []int{0, 1} {
		for _, name := range []string{"old", "new", "other"} {
			replace(t, dir, name, size)
			if b, err := os.ReadFile(filepath.Join(dir, name)); len(b) != size || err != nil {
				t.Errorf("%s has %d bytes, %v", name, len(b), err)
			}
		}
	}
}

func replace(t *testing.T, dir, name string, size int) {
	t.Helper()
	p, err := workspace.Find(dir, "", name, workspace.Write)
	if err == nil {
		defer p.Close()
		err = p.Replace(strings.Repeat("x", size))
	}
	if err != nil {
		t.Fatal(err)
	}
}
