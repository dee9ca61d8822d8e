package sandbox_test

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// needsRoot skips where commands have no root of their own.
func needsRoot(t *testing.T, s stage) {
	t.Helper()
	if !s.namespaces {
		t.Skip("needs a mount namespace")
	}
}

// afterStart runs a command that says "up" and then waits for a line on the pipe "go" of the workspace;
// in between do is called. It gives the output of the command.
func (s stage) afterStart(line string, do func()) string {
	s.t.Helper()
	for _, name := range []string{"up", "go"} {
		if err := unix.Mkfifo(filepath.Join(s.work, name), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	var wait sync.WaitGroup
	defer wait.Wait()
	wait.Go(func() {
		up, err := os.Open(filepath.Join(s.work, "up"))
		if err != nil {
			s.t.Error(err)
			return
		}
		defer up.Close()
		if _, err := up.Read(make([]byte, 1)); err != nil {
			s.t.Error(err)
		}
		do()
		if err := os.WriteFile(filepath.Join(s.work, "go"), []byte("x\n"), 0); err != nil {
			s.t.Error(err)
		}
	})
	return s.works("echo up > up; read x < go; " + line)
}

// A mount snapshot hides what is there; a root of its own hides what comes later, too.
func TestASocketThatIsBoundLaterIsOutOfReach(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		needsRoot(t, s)
		path := filepath.Join(s.outside, "later")
		s.policy.Environ = append(s.policy.Environ, "HOST_TCP=127.0.0.1:1", "HOST_UDP=127.0.0.1:1", "HOST_UNIX="+path)
		out := s.afterStart(`WF_ATTACK=dial "$SELF"`, func() {
			listener, err := net.Listen("unix", path)
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { listener.Close() })
		})
		if got := said(out)["unix"]; !strings.Contains(got, "no such file") {
			t.Errorf("the socket answers: %q", got)
		}
	})
}

func TestASocketInTheWorkspaceIsMasked(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		needsRoot(t, s)
		path := filepath.Join(s.work, "socket")
		listener, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		s.policy.Environ = append(s.policy.Environ, "HOST_TCP=127.0.0.1:1", "HOST_UDP=127.0.0.1:1", "HOST_UNIX="+path)
		if got := said(s.works(`WF_ATTACK=dial "$SELF"`))["unix"]; got == "ok" || got == "" {
			t.Errorf("the socket answers: %q", got)
		}
		s.works("test ! -S socket")
	})
}

// What is not given has no name in there: neither a name nor a time of it is seen.
func TestNamesOutsideAreHidden(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		needsRoot(t, s)
		s.works(`test ! -e "$OUTSIDE" && test ! -e "$SSH" && test ! -e /run && test ! -e /etc/shadow && test ! -e /var/log`)
		s.works(`test "$(stat -c %a /dev/shm)" = 1777 && test -e /dev/fd/0 && cat /etc/passwd >/dev/null && sh -c 'echo x > /dev/stderr'`)
		s.denied("echo x > /root-was-here")
		s.denied("mkdir /etc/made")
		s.denied("rm /etc/passwd")
	})
}

// A path that leads over links is the same path inside.
func TestAWorkspaceBehindLinks(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		link, again := filepath.Join(s.outside, "link"), filepath.Join(s.outside, "again")
		s.write(filepath.Join(s.work, "sub/file"), "text")
		if err := os.Symlink(s.work, link); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("link/sub", again); err != nil {
			t.Fatal(err)
		}
		s.policy.Workspace, s.policy.Dir = link, again
		s.works("cat " + again + "/file && cat file")
	})
}

// userCache is a cache of go that holds one file.
func (s stage) userCache(t *testing.T) string {
	dir := filepath.Join(s.home, ".cache/go-build")
	s.write(filepath.Join(dir, "built"), "the user's")
	t.Setenv("GOCACHE", "")
	return dir
}

func TestCachesOfTheUserAreReadAndNotWritten(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		needsRoot(t, s)
		cache := s.userCache(t)
		npm := filepath.Join(s.home, ".npm")
		s.write(filepath.Join(npm, "_cacache/one"), "x")
		s.write(filepath.Join(cache, "untouched"), "the user's")
		s.works(`cd "$GOCACHE" && cat built && echo changed > built && echo own > own && rm -r "$npm_config_cache/_cacache" && echo y > "$npm_config_cache/own"`)
		s.works(`cd "$GOCACHE" && test "$(cat built own)" = "changed
own"`) // what one command leaves, the next one finds
		if got := s.works(`cat "$GOCACHE/untouched"`); got != "the user's" {
			t.Errorf("a later command found %q below its layer", got)
		}
		for path, want := range map[string]string{filepath.Join(cache, "built"): "the user's", filepath.Join(npm, "_cacache/one"): "x"} {
			if got, err := os.ReadFile(path); err != nil || string(got) != want {
				t.Errorf("%s of the user holds %q (%v)", path, got, err)
			}
		}
		if s.exists(filepath.Join(cache, "own")) || s.exists(filepath.Join(npm, "own")) {
			t.Error("a command wrote into a cache of the user")
		}
		s.policy.Network = true
		if out := s.works(`echo "$GOCACHE"`); out == cache {
			t.Error("a command with the network reads what the user built")
		}
	})
}

// Layers that two commands share would be in an undefined state.
func TestCommandsBesideEachOtherHaveLayersOfTheirOwn(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		needsRoot(t, s)
		s.userCache(t)
		out := s.afterStart(`cat "$GOCACHE/built" "$GOCACHE"/second 2>&1 || true`, func() {
			if got := s.works(`echo second > "$GOCACHE/second" && cat "$GOCACHE/built"`); got != "the user's" {
				t.Errorf("the second command found %q", got)
			}
		})
		if !strings.HasPrefix(out, "the user's") || strings.Contains(out, "second\n") {
			t.Errorf("the first command found %q", out)
		}
		// Both have ended: the first set is free again.
		if got := s.works(`cat "$GOCACHE/built"; test ! -e "$GOCACHE/second" && echo first`); !strings.HasSuffix(got, "first") {
			t.Errorf("the next command found %q", got)
		}
	})
}

// A cache on a file system that can be no layer costs the user's builds, never the command.
func TestACacheThatCanBeNoLayer(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		needsRoot(t, s)
		s.userCache(t)
		var private bytes.Buffer
		if _, err := s.run(t.Context(), s.policy, []string{"sh", "-c", `echo "$TMPDIR"`}, &private, nil); err != nil {
			t.Fatal(err)
		}
		if os.Geteuid() != 0 {
			t.Skip("an overlay as the place of a layer is made by root")
		}
		// An overlay cannot be the upper layer of another.
		layers := filepath.Join(filepath.Dir(strings.TrimSpace(private.String())), "layers")
		var dirs []string
		for _, name := range []string{"lower", "upper", "work"} {
			dir := filepath.Join(s.outside, name)
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			dirs = append(dirs, dir)
		}
		if err := unix.Mount("overlay", layers, "overlay", 0, "lowerdir="+dirs[0]+",upperdir="+dirs[1]+",workdir="+dirs[2]); err != nil {
			t.Skip("no overlay here: ", err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(layers, 0); err != nil {
				t.Error(err)
			}
		})
		s.works(`echo own > "$GOCACHE/own" && cat "$GOCACHE/own"`)
	})
}
