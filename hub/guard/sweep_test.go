package guard

import (
	"errors"
	"maps"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// What killed servers left behind goes; what lives, is about to live or is something else stays.
func TestSocketsOfKilledServersAreRemoved(t *testing.T) {
	dir, err := os.MkdirTemp("", "sweep") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := func(name string) string { return filepath.Join(dir, name) }
	dead := func(name string) {
		t.Helper()
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path(name), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	dead("daemon.sock")
	dead("daemon.run.sock")
	dead("starting.sock") // bound, and not listening yet
	dead("other")
	starting, err := lockSocket(path("starting.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer starting.Close()
	live, err := listenUnix(t.Context(), path("live.sock"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	err = errors.Join(os.WriteFile(path("daemon.sock.lock"), []byte("1\n"), 0o600), os.WriteFile(path("file.sock"), nil, 0o600), os.Symlink("live.sock", path("link.sock")))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := Sweep(t.Context(), dir); n != 2 || err != nil {
		t.Errorf("%d were removed, %v", n, err)
	}
	left := map[string]bool{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left[e.Name()] = true
	}
	want := map[string]bool{"starting.sock": true, "starting.sock.lock": true, "live.sock": true, "live.sock.lock": true, "other": true,
		"daemon.sock.lock": true, "file.sock": true, "link.sock": true}
	if !maps.Equal(left, want) {
		t.Errorf("left are %v", left)
	}
	if n, err := Sweep(t.Context(), path("nowhere")); n != 0 || err != nil {
		t.Errorf("no directory: %d, %v", n, err)
	}
}
