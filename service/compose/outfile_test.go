package compose

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A link of the user is followed as long as it stays in the project, and so is one outside of it; one that leads out
// is refused, wherever it stands on the way.
func TestALinkOfTheUserIsWrittenThroughWhereItStays(t *testing.T) {
	out, project := t.TempDir(), t.TempDir()
	t.Chdir(project)
	for at, to := range map[string]string{
		"latest.car": "run.car", "away.car": filepath.Join(out, "away"), "gone.car": filepath.Join(out, "gone"), "dir": out, "loose.car": "none.car",
		filepath.Join(out, "own.car"): filepath.Join(out, "own"),
	} {
		if err := os.Symlink(to, at); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"run.car", filepath.Join(out, "away"), filepath.Join(out, "own")} {
		if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write := func(path string) error {
		o, err := OutFile(path)
		if err != nil {
			return err
		}
		defer o.Close()
		f, err := o.Open(os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
		return o.Replace(Private, func(w io.Writer) error {
			_, err := io.WriteString(w, "new")
			return err
		})
	}
	for path, leads := range map[string]string{
		"run.car": "run.car", "latest.car": "run.car", "fresh.car": "fresh.car", filepath.Join(project, "whole.car"): "whole.car",
		filepath.Join(out, "own.car"): filepath.Join(out, "own"), filepath.Join(out, "fresh"): filepath.Join(out, "fresh"),
	} {
		if err := write(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if b, err := os.ReadFile(leads); err != nil || string(b) != "new" {
			t.Errorf("%s: %q, %v", path, b, err)
		}
	}
	for _, path := range []string{"away.car", "gone.car", "dir/run.car", "loose.car"} {
		if err := write(path); err == nil || !strings.Contains(err.Error(), "an agent that worked here may have left it") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if info, err := os.Lstat("latest.car"); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v", err)
	}
	entries, err := os.ReadDir(out)
	if err != nil || len(entries) != 4 {
		t.Errorf("outside are %v, %v", entries, err)
	}
	if b, err := os.ReadFile(filepath.Join(out, "away")); err != nil || string(b) != "old" {
		t.Errorf("away: %q, %v", b, err)
	}
}

// A file that is made has the mode that was asked for, less what the umask takes; one that is there keeps its own.
func TestModesOfWhatIsReplaced(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	umask := func() fs.FileMode { // of this process, by what it makes
		f, err := os.OpenFile("umask", os.O_CREATE|os.O_WRONLY, 0o777)
		if err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat()
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		return 0o777 &^ info.Mode().Perm()
	}()
	for _, was := range []fs.FileMode{0, 0o600, 0o640, 0o644, 0o666} {
		for _, mode := range []fs.FileMode{Private, Shared} {
			name, want := "file", mode&^umask
			if was != 0 {
				if err := errors.Join(os.WriteFile(name, []byte("old"), 0o600), os.Chmod(name, was)); err != nil {
					t.Fatal(err)
				}
				want = was
			}
			o, err := OutFile(name)
			if err != nil {
				t.Fatal(err)
			}
			err = o.Replace(mode, func(w io.Writer) error {
				_, err := io.WriteString(w, "new")
				return err
			})
			o.Close()
			info, gone := os.Stat(name)
			if err := errors.Join(err, gone); err != nil || info.Mode().Perm() != want {
				t.Errorf("%v over %v: %v, %v; want %v", mode, was, info.Mode(), err, want)
			}
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
}
