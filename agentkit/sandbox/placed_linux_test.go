package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// copied makes the workspace of a stage a copy of a directory, which has a secret and a repository of its own; it gives the
// directory.
func (s *stage) copied() (original string) {
	s.t.Helper()
	original = filepath.Join(filepath.Dir(s.work), "project")
	s.write(filepath.Join(original, "file"), "of the original")
	s.write(filepath.Join(original, "bin/tool"), "of the original")
	s.write(filepath.Join(original, "sub/deep/file"), "of the original")
	s.write(filepath.Join(s.work, "file"), "of the copy")
	s.write(filepath.Join(s.work, "sub/deep/file"), "of the copy, below")
	s.policy.At = original
	return original
}

// C-4: within the walls a copy lies where the directory does that it was made of; nothing of that directory can be read or
// written, also what a user gives besides, and what is written is in the copy.
func TestC04ACopyLiesWhereItsDirectoryDoes(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		original := s.copied()
		s.policy.Dir = filepath.Join(s.work, "sub/deep")
		s.policy.Environ = append(s.policy.Environ, "PWD="+s.policy.Dir)
		s.policy.Grants.Read = append(s.policy.Grants.Read, filepath.Join(original, "bin"))
		at := original
		if !s.namespaces { // there is one place for both
			at = s.work
		}
		out := s.works(`pwd; pwd -P; cat file; echo; echo made > ../made; cat ` + at + `/file; echo; ls ` + at)
		if want := at + "/sub/deep\n" + at + "/sub/deep\nof the copy, below\nof the copy\nfile\nsub"; out != want {
			t.Errorf("%q, want %q", out, want)
		}
		if b, err := os.ReadFile(filepath.Join(s.work, "sub/made")); err != nil || string(b) != "made\n" {
			t.Errorf("what it wrote is %q, %v", b, err)
		}
		if _, err := os.Stat(filepath.Join(original, "sub/made")); !os.IsNotExist(err) {
			t.Errorf("it wrote into the directory: %v", err)
		}
		if !s.namespaces {
			return
		}
		if out := s.works(`cat ` + original + `/bin/tool ` + s.work + `/file 2>&1; ls -d ` + filepath.Dir(original) + `/*; true`); strings.Contains(out, "of the") || strings.Contains(out, "outside") {
			t.Errorf("it reaches %q", out)
		}
	})
}

// Git's control files of the copy are read-only there, too, and a repository of the directory is not there.
func TestC04TheRepositoryOfACopyIsProtected(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		needsRoot(t, s)
		original := s.copied()
		for _, dir := range []string{original, s.work} {
			if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
				t.Skip(string(out))
			}
		}
		s.write(filepath.Join(original, ".git/only"), "of the original")
		out := s.works(`echo evil >> .git/config; echo evil > .git/hooks/pre-commit; ls .git/only; git add file && git -c user.name=a -c user.email=b commit -q -m x && git log --format=%s; true`)
		if !strings.HasPrefix(out, "x\n") {
			t.Errorf("git does not work: %q", out)
		}
		b, err := os.ReadFile(filepath.Join(s.work, ".git/config"))
		if err != nil || strings.Contains(string(b), "evil") {
			t.Errorf("the config is %q, %v", b, err)
		}
		if _, err := os.Stat(filepath.Join(s.work, ".git/hooks/pre-commit")); !os.IsNotExist(err) {
			t.Errorf("a hook was made: %v", err)
		}
	})
}

// A directory in /tmp, where commands have one of their own, and one behind a link.
func TestC04ACopyOfADirectoryInTmp(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		needsRoot(t, s)
		dir, err := os.MkdirTemp("/tmp", "wf-placed-")
		if err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		s.write(filepath.Join(dir, "project/file"), "of the original")
		s.write(filepath.Join(dir, "secret"), "of the original")
		link := filepath.Join(s.outside, "link")
		if err := os.Symlink(filepath.Join(dir, "project"), link); err != nil {
			t.Fatal(err)
		}
		s.write(filepath.Join(s.work, "file"), "of the copy")
		for _, at := range []string{filepath.Join(dir, "project"), link} {
			s.policy.At = at
			s.policy.Environ = append(s.policy.Environ, "PWD="+s.policy.Workspace)
			if out := s.works(`pwd; cat ` + at + `/file; cat ../secret 2>&1; echo x > file2; echo y > "$TMPDIR/y" && cat "$TMPDIR/y"`); !strings.HasPrefix(out, at+"\nof the copy") || strings.Contains(out, "original") || !strings.HasSuffix(out, "y") {
				t.Errorf("at %s: %q", at, out)
			}
		}
		if _, err := os.Stat(filepath.Join(s.work, "file2")); err != nil {
			t.Error(err)
		}
	})
}
