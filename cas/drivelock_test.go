package cas_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"wf/cas/castest"
)

// A run is driven until its process is gone, however it went.
func TestAKilledProcessDrivesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := openStore(t, dir)
	defer s.Close()
	is := func(want bool, when string) {
		t.Helper()
		if got, err := s.Driven(t.Context(), "r1"); err != nil || got != want {
			t.Errorf("%s the run is driven: %t, %v", when, got, err)
		}
	}
	is(false, "before")
	cmd, _, out := start(t, "drive", dir, "r1")
	if !out.Scan() || out.Text() != "driven" {
		t.Fatalf("the process did not begin: %s", out.Text())
	}
	is(true, "meanwhile")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	is(false, "after kill -9")
	claim, err := s.Claim(t.Context(), "r1")
	if err != nil {
		t.Fatal(err)
	}
	is(true, "driven here")
	if err := claim.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	is(false, "let go")
}

// To ask takes no lock: a driver that comes at any moment finds the run free.
func TestAskingForTheDriverHindersNone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := openStore(t, dir)
	defer s.Close()
	cmd, _, out := start(t, "redrive", dir, "r1", "3000")
	stop := castest.AskForDriver(t, s, "r1")
	if lines := finish(t, cmd, out); len(lines) > 0 {
		t.Errorf("the driver said %q", lines)
	}
	stop()
}

// What lies where the lock of a run belongs may have been put there by an agent: to ask for the
// driver does not wait at a pipe, and to drive writes through no link.
func TestALockThatIsNoFileHindersNone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := openStore(t, dir)
	defer s.Close()
	claim, err := s.Claim(t.Context(), "r1") // makes the directory of the locks
	if err != nil {
		t.Fatal(err)
	}
	if err := claim.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "runs", "r2.lock"), 0o600); err != nil {
		t.Fatal(err)
	}
	if driven, err := s.Driven(t.Context(), "r2"); driven || err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a pipe is a driver: %t, %v", driven, err)
	}
	if _, err := s.Claim(t.Context(), "r2"); err == nil {
		t.Error("a pipe was taken for a lock")
	}
	target := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(target, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, filepath.Join(dir, "runs", "r3.lock")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Claim(t.Context(), "r3"); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a link was taken for a lock: %v", err)
	}
	counter := filepath.Join(dir, "store.lock")
	if err := os.Remove(counter); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(counter, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Changes(t.Context()); err == nil {
		t.Error("commits are counted in a pipe")
	}
	if b, err := os.ReadFile(target); err != nil || string(b) != "precious" {
		t.Errorf("the target of a link is %q now: %v", b, err)
	}
}
