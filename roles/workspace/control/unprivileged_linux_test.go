package control

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"wf/protocol"
	"wf/roles/workspace/workspacetest"
)

// The tests of this package once more, as a user who may do nothing.
func TestWithoutRoot(t *testing.T) {
	if testing.Short() {
		t.Skip("the same tests once more")
	}
	workspacetest.Unprivileged(t, "TestWhatAModeHidesIsLookedAt")
}

// What cannot be looked at, although a command could, is an error of every look, and never nothing.
func TestWhatCannotBeLookedAtIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("root alone lets a thread look as another user")
	}
	s := newStage(t)
	s.write("x/.git/config", "")
	s.must(os.Chmod(s.path("x"), 0o700))
	for dir := s.root; dir != "/" && dir != "/tmp" && dir != "/var/tmp"; dir = filepath.Dir(dir) {
		s.must(os.Chmod(dir, 0o755))
	}
	e, done := At(s.root), make(chan map[string]error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with it
		if _, err := unix.SetfsuidRetUid(65534); err != nil {
			done <- map[string]error{"become another user": err}
			return
		}
		out := map[string]error{}
		_, _, out["lstat"] = e.Lstat(s.path("x/.git"))
		_, _, out["names"] = e.Names(s.path("x"), 9)
		_, out["repository"] = e.Repository(s.path("x"))
		_, out["bare"] = e.Bare(s.path("x/.git"))
		_, out["store"] = e.Store(s.path("x/.wf"))
		_, out["spot"] = e.Spot(s.path("x/.git/hooks"))
		_, out["put aside"] = e.PutAside(Spot{Path: s.path("x/.git/hooks")})
		_, out["put back"] = e.PutBack(Link{at: Spot{Path: s.path("x/.git/hooks")}, To: "y"})
		done <- out
	}()
	for what, err := range <-done {
		if !errors.Is(err, protocol.ErrUnseen) || !strings.Contains(err.Error(), "x") || !strings.Contains(err.Error(), "cannot be looked at") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
