package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"wf/agentkit/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	if name, ok := os.LookupEnv("WF_ATTACK"); ok {
		os.Exit(attack(name))
	}
	code := m.Run()
	if path, err := self(); err == nil {
		err = os.RemoveAll(filepath.Dir(path))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// self is a copy of this binary outside of /tmp, of which commands have their own.
var self = sync.OnceValues(func() (string, error) {
	b, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("/var/tmp", "wf-sandbox-self-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "self")
	return path, os.WriteFile(path, b, 0o755)
})

type runner func(ctx context.Context, p sandbox.Policy, args []string, stdout, stderr io.Writer) (int, error)

// A stage is a workspace, a home with a secret and a directory that is nobody's business.
type stage struct {
	t                   testing.TB
	run                 runner
	namespaces          bool
	work, home, outside string
	policy              sandbox.Policy
}

// onEach runs a test on every tier that this machine can hold.
func onEach(t *testing.T, f func(t *testing.T, s stage)) {
	tier := sandbox.Probe()
	if !tier.Holds {
		t.Skip("no sandbox here: ", tier)
	}
	if tier.Namespaces {
		t.Run("namespaces", func(t *testing.T) { f(t, newStage(t, sandbox.Run, true)) })
	}
	if tier.ABI >= 6 {
		t.Run("none", func(t *testing.T) { f(t, newStage(t, sandbox.RunWithoutNamespaces, false)) })
	}
}

func newStage(t testing.TB, run runner, namespaces bool) stage {
	t.Helper()
	// Not below /tmp, of which commands have their own.
	root, err := os.MkdirTemp("/var/tmp", "wf-sandbox-")
	if err != nil {
		t.Skip("no /var/tmp: ", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(root); err != nil {
			t.Error(err)
		}
	})
	s := stage{t: t, run: run, namespaces: namespaces}
	for name, dir := range map[string]*string{"work": &s.work, "home": &s.home, "outside": &s.outside} {
		*dir = filepath.Join(root, name)
		if err := os.Mkdir(*dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.write(filepath.Join(s.home, ".ssh/id"), "the key")
	s.write(filepath.Join(s.outside, "file"), "the secret")
	if tt, ok := t.(*testing.T); ok {
		tt.Setenv("HOME", s.home)
		tt.Setenv("XDG_CACHE_HOME", "")
		tt.Setenv("GOENV", "off")
	}
	self, err := self()
	if err != nil {
		t.Fatal(err)
	}
	s.policy = sandbox.Policy{Workspace: s.work, Grants: sandbox.Grants{Read: []string{self}}, Environ: []string{"SELF=" + self, "OUTSIDE=" + s.outside, "SSH=" + filepath.Join(s.home, ".ssh")}}
	return s
}

// workBelow moves the workspace into a new directory below parent, beside a secret, and gives that
// directory.
func (s *stage) workBelow(parent string) (dir string) {
	s.t.Helper()
	dir, err := os.MkdirTemp(parent, "wf-sandbox-")
	if err != nil {
		s.t.Skip(err)
	}
	s.t.Cleanup(func() { os.RemoveAll(dir) })
	s.policy.Workspace = filepath.Join(dir, "work")
	s.write(filepath.Join(dir, "work/file"), "x")
	s.write(filepath.Join(dir, "secret"), "the secret")
	return dir
}

func (s stage) write(path, content string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// sh runs a command line and gives its status and all of its output.
func (s stage) sh(line string) (int, string) {
	s.t.Helper()
	var out, errs bytes.Buffer
	code, err := s.run(s.t.Context(), s.policy, []string{"sh", "-c", line}, &out, &errs)
	if err != nil {
		s.t.Fatalf("%s: %v", line, err)
	}
	return code, strings.TrimRight(out.String()+errs.String(), "\n")
}

// works runs a command line that must succeed, and gives its output.
func (s stage) works(line string) string {
	s.t.Helper()
	code, out := s.sh(line)
	if code != 0 {
		s.t.Errorf("%s: exit %d: %s", line, code, out)
	}
	return out
}

// denied runs a command line that must fail as at a wall. In a root of its own a command does not find
// what it is not given.
func (s stage) denied(line string) {
	s.t.Helper()
	code, out := s.sh(line)
	walls := []string{"Permission denied", "Operation not permitted", "Read-only file system", "Invalid cross-device link", "Device or resource busy"}
	if s.namespaces {
		walls = append(walls, "No such file or directory", "Directory nonexistent")
	}
	for _, wall := range walls {
		if code != 0 && strings.Contains(out, wall) {
			return
		}
	}
	s.t.Errorf("%s: not denied: exit %d: %s", line, code, out)
}

func (s stage) exists(path string) bool {
	s.t.Helper()
	_, err := os.Lstat(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.t.Fatal(err)
	}
	return err == nil
}
