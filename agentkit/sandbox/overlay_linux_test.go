package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"wf/agentkit/sandbox"
	"wf/roles/workspace"
)

// layered makes the workspace of a stage one in layers, with these files below; it gives the directory that holds the layers.
func (s *stage) layered(files map[string]string) (dir string, v *workspace.View) {
	s.t.Helper()
	if !s.namespaces {
		s.t.Skip("layers need namespaces")
	}
	dir = filepath.Join(filepath.Dir(s.work), "copy:,\\ 1")
	for name, text := range files {
		s.write(filepath.Join(dir, "base", name), text)
	}
	for _, name := range []string{"base", "files", "upper", "work"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			s.t.Fatal(err)
		}
	}
	s.policy.At = filepath.Join(filepath.Dir(s.work), "project")
	if err := os.MkdirAll(s.policy.At, 0o755); err != nil {
		s.t.Fatal(err)
	}
	s.work = filepath.Join(dir, "files")
	s.policy.Workspace = s.work
	return dir, s.mounted(dir)
}

// mounted mounts the layers until the test has ended.
func (s *stage) mounted(dir string) *workspace.View {
	s.t.Helper()
	v, err := sandbox.Overlay(filepath.Join(dir, "base"), filepath.Join(dir, "upper"), filepath.Join(dir, "work"))
	if err != nil {
		s.t.Fatal(err)
	}
	hide, err := workspace.Show(filepath.Join(dir, "files"), v)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		hide()
		if err := errors.Join(v.Close(), workspace.RemoveAll(filepath.Join(dir, "work"))); err != nil {
			s.t.Error(err)
		}
	})
	return v
}

// C-4: commands and wf itself work in one file system: each sees at once what another wrote, and the layer below stays as it is.
func TestC04CommandsAndToolsSeeTheSameLayers(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		dir, _ := s.layered(map[string]string{"a": "one", "d/b": "two", "gone/c": "x", "with:colon,and\\": "odd", ".wh.a": "no whiteout"})
		if out := s.works(`pwd; cat a d/b .wh.a 'with:colon,and\'; echo three > d/new; rm -r gone; echo 1 >> a; mkdir gone; ls -A gone`); out != s.policy.At+"\nonetwono whiteoutodd" {
			t.Errorf("%q", out)
		}
		p, err := workspace.Find(s.work, "", "d/new", workspace.Read)
		if err != nil {
			t.Fatal(err)
		}
		p.Close()
		if p, err = workspace.Find(s.work, "", "d/mine", workspace.Write); err != nil {
			t.Fatal(err)
		}
		if err := p.Replace("of a tool"); err != nil {
			t.Fatal(err)
		}
		p.Close()
		if out := s.works(`cat d/mine`); out != "of a tool" {
			t.Errorf("a command sees %q", out)
		}
		for name, want := range map[string]string{"a": "one", "gone/c": "x", "d/b": "two"} {
			if b, err := os.ReadFile(filepath.Join(dir, "base", name)); err != nil || string(b) != want {
				t.Errorf("below, %s is %q, %v", name, b, err)
			}
		}
		left, err := os.ReadDir(filepath.Join(dir, "files"))
		if err != nil || len(left) > 0 {
			t.Errorf("in the place of the mount lies %v, %v", left, err)
		}
	})
}

// What a process that was killed left in the directory of the kernel is in nobody's way.
func TestC04LeftWorkIsRemoved(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		dir, v := s.layered(map[string]string{"a": "one"})
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
		left := filepath.Join(dir, "work", "left")
		s.write(filepath.Join(left, "b", "c"), "x")
		if err := os.Chmod(filepath.Join(left, "b"), 0); err != nil {
			t.Fatal(err)
		}
		again, err := sandbox.Overlay(filepath.Join(dir, "base"), filepath.Join(dir, "upper"), filepath.Join(dir, "work"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(left); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("it is there: %v", err)
		}
		*v = *again // which the stage closes
	})
}

// Why layers cannot be mounted is said once, by what the system said.
func TestC04WhyLayersCannotBeMounted(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		dir, v := s.layered(map[string]string{"a": "one"})
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
		upper, work := filepath.Join(dir, "upper"), filepath.Join(dir, "work")
		_, err := sandbox.Overlay(filepath.Join(dir, "missing"), upper, work)
		if want := "mount layers: open " + filepath.Join(dir, "missing") + ": no such file or directory"; err == nil || err.Error() != want || !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v, want %s", err, want)
		}
		again, err := sandbox.Overlay(filepath.Join(dir, "base"), upper, work)
		if err != nil {
			t.Fatal(err)
		}
		*v = *again // which the stage closes
	})
}

// What a command may do with the mount: neither can it reach the layers by a path, nor say what the kernel reads as orders in them.
func TestC04ACommandCannotActOnTheLayers(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		dir, v := s.layered(map[string]string{"a": "one", "d/b": "two"})
		out := s.works(`ls ` + shellWord(filepath.Dir(dir)) + ` 2>&1; cat ` + shellWord(dir) + `/*/a ` + shellWord(dir) + `/files/a 2>&1
			mknod white c 0 0 2>&1; mknod null c 1 3 2>&1; mkdir opaque; ls -A
			python3 -c 'import os
for f in ("d", "opaque"):
    try: os.setxattr(f, "user.overlay.opaque", b"y")
    except OSError: pass
    try: os.setxattr(f, "trusted.overlay.opaque", b"y"); print("trusted")
    except OSError: pass
' 2>/dev/null; ls d; mount -o remount,suid,dev . 2>&1; umount . 2>&1; grep " $PWD " /proc/self/mountinfo; true`)
		if strings.Contains(strings.ReplaceAll(out, "none", ""), "one") || strings.Contains(out, "upperdir="+dir) || strings.Contains(out, "trusted") || !strings.Contains(out, "\na\nd\nopaque\nb\n") {
			t.Errorf("%s", out)
		}
		if !strings.Contains(out, "nosuid,nodev") {
			t.Errorf("how it is mounted: %s", out)
		}
		b, err := unixAttr(filepath.Join(v.Upper, "opaque"), "user.overlay.opaque")
		if err == nil {
			// The kernel itself says so of directories that it made anew; one below which nothing lies hides nothing.
			t.Logf("opaque: %s", b)
		}
		if b, err := unixAttr(filepath.Join(v.Upper, "d"), "user.overlay.opaque"); err == nil && string(b) == "y" {
			t.Error("a command hid what lies below a directory by an attribute")
		}
	})
}

func shellWord(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func unixAttr(path, name string) ([]byte, error) {
	b := make([]byte, 100)
	n, err := unix.Lgetxattr(path, name, b)
	return b[:max(n, 0)], err
}

// The files that say what git runs are read-only in layers, too, and what a command adds to a repository goes.
func TestC04TheRepositoryInLayersIsProtected(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		s.layered(map[string]string{"a": "one", "r/.git/HEAD": "ref: refs/heads/main\n", "r/.git/config": "[core]\n", "r/.git/objects/x": "", "r/.git/refs/x": ""})
		s.works(`echo evil >> r/.git/config; mkdir -p r/.git/hooks; echo evil > r/.git/hooks/pre-commit; true`)
		root, err := workspace.Open(s.work, "r/.git")
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		if b, err := root.ReadFile("config"); err != nil || string(b) != "[core]\n" {
			t.Errorf("the config is %q, %v", b, err)
		}
		if _, err := root.Stat("hooks"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("hooks were made: %v", err)
		}
	})
}

// The layers can be mounted again, by the next process, with what was written; and many commands work in them beside each other.
func TestC04LayersAreMountedAgain(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		dir, _ := s.layered(map[string]string{"a": "one"})
		var all sync.WaitGroup
		for i := range 16 {
			all.Go(func() {
				if _, err := sandbox.Run(context.Background(), s.policy, []string{"sh", "-c", fmt.Sprintf("echo %d > n%d; echo %d >> a", i, i, i)}, nil, nil); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if out := s.works(`ls | wc -l; wc -l < a`); strings.Join(strings.Fields(out), " ") != "17 16" {
			t.Errorf("%q", out)
		}
		other := filepath.Join(dir, "once")
		for _, name := range []string{"upper", "work"} {
			if err := os.MkdirAll(filepath.Join(other, name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 3 {
			if err := errors.Join(workspace.RemoveAll(filepath.Join(other, "work")), os.Mkdir(filepath.Join(other, "work"), 0o755)); err != nil {
				t.Fatal(err)
			}
			v, err := sandbox.Overlay(filepath.Join(dir, "base"), filepath.Join(other, "upper"), filepath.Join(other, "work"))
			if err != nil {
				t.Fatal(err)
			}
			hide, err := workspace.Show(other, v)
			if err != nil {
				t.Fatal(err)
			}
			root, err := workspace.Open(other, "")
			if err != nil {
				t.Fatal(err)
			}
			if err := root.WriteFile(fmt.Sprint("r", i), nil, 0o644); err != nil {
				t.Error(err)
			}
			for j := range i + 1 {
				if _, err := root.Stat(fmt.Sprint("r", j)); err != nil {
					t.Error(err)
				}
			}
			root.Close()
			hide()
			if err := v.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}
