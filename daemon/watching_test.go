package daemon

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/api"
	"wf/cas"
	"wf/protocol"
)

// liveRun opens a store with one event of a run in it.
func liveRun(t *testing.T, dir string) (*cas.Store, api.Update) {
	t.Helper()
	s, err := cas.Open(t.Context(), dir, cas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := os.MkdirAll(filepath.Join(s.Dir(), "runs"), 0o700); err != nil {
		t.Fatal(err)
	}
	j, err := s.Journal(t.Context(), "R1")
	if err != nil {
		t.Fatal(err)
	}
	d := protocol.TextSaid{Content: protocol.NewText("hello")}
	got, err := j.Append(t.Context(), 1, []cas.Draft{{Step: "a#1", Data: d}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s, api.Update{Run: "R1", Entry: &got[0], Data: d, Step: "a#1"}
}

// The socket of a run is the user's own and lies outside of the store, under a path of any length; it
// takes the place of one that a killed process left, leaves that of a living one alone, and goes with
// the drive.
func TestTheSocketOfARun(t *testing.T) {
	short, err := os.MkdirTemp("", "live")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(short)
	t.Setenv("XDG_RUNTIME_DIR", short)
	for _, dir := range []string{filepath.Join(short, "store"), filepath.Join(short, strings.Repeat("long/", 40))} {
		s, n := liveRun(t, dir)
		sockets, name, err := RunSocket(s.Dir(), "R1")
		if err != nil || sockets != filepath.Join(short, "wf") {
			t.Fatalf("%s, %v", sockets, err)
		}
		path := filepath.Join(sockets, name)
		if err := os.WriteFile(path, nil, 0o644); err != nil { // whatever was left there
			t.Fatal(err)
		}
		l := NewLiveSockets(s)
		l.Notice(n)
		info, err := os.Lstat(path)
		if err != nil || info.Mode() != fs.ModeSocket|0o600 {
			t.Fatalf("%v %v", info, err)
		}
		c, err := DialRun(t.Context(), s.Dir(), "R1")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		other := NewLiveSockets(s)
		other.Notice(n)
		if len(other.open) != 0 {
			t.Error("the socket of a living process was replaced")
		}
		other.Close()
		l.End("R1")
		l.Close()
		if left, err := os.ReadDir(sockets); err != nil || len(left) != 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
		if _, err := DialRun(context.Background(), s.Dir(), "R1"); err == nil {
			t.Error("it still answers")
		}
	}
}

// A directory for sockets that is not the user's own, or that is a link, is not used: another user
// could have put it there.
func TestTheDirectoryOfSocketsIsTheUsersOwn(t *testing.T) {
	session, store := t.TempDir(), t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", session)
	if err := os.Symlink(store, filepath.Join(session, "wf")); err != nil {
		t.Fatal(err)
	}
	if _, err := SocketPath(store); !errors.Is(err, protocol.ErrInsecure) {
		t.Errorf("a link: %v", err)
	}
	if err := os.Remove(filepath.Join(session, "wf")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(session, "wf"), 0o777); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(filepath.Join(session, "wf"), 54321, 54321); err != nil {
			t.Fatal(err)
		}
		if _, err := SocketPath(store); !errors.Is(err, protocol.ErrInsecure) {
			t.Errorf("of another user: %v", err)
		}
		if err := os.Chown(filepath.Join(session, "wf"), 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	path, err := SocketPath(store)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(filepath.Dir(path)); err != nil || info.Mode() != fs.ModeDir|0o700 {
		t.Errorf("%v, %v", info, err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(store, link); err != nil {
		t.Fatal(err)
	}
	if other, err := SocketPath(link); err != nil || other != path {
		t.Errorf("by a link the socket is %s, %v, want %s", other, err, path)
	}
}
