package main

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/cas"
	"wf/engine"
	"wf/protocol"
)

// liveRun opens a store with one event of a run in it.
func liveRun(t *testing.T, dir string) (*cas.Store, engine.Notice) {
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
	return s, engine.Notice{Run: "R1", Entry: &got[0], Data: d, Step: "a#1"}
}

// The socket of a run is the user's own, in a path of any length, takes the place of one that a
// killed process left, leaves that of a living one alone, and goes with the drive.
func TestTheSocketOfARun(t *testing.T) {
	short, err := os.MkdirTemp("", "live")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(short)
	for _, dir := range []string{short, filepath.Join(short, strings.Repeat("long/", 40))} {
		s, n := liveRun(t, dir)
		runs := filepath.Join(s.Dir(), "runs")
		path := filepath.Join(runs, "R1.sock")
		if err := os.WriteFile(path, nil, 0o644); err != nil { // whatever was left there
			t.Fatal(err)
		}
		l := newLiveSockets(s)
		l.notice(n)
		info, err := os.Lstat(path)
		if err != nil || info.Mode() != fs.ModeSocket|0o600 {
			t.Fatalf("%v %v", info, err)
		}
		c, err := dialRun(t.Context(), runs, "R1")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		other := newLiveSockets(s)
		other.notice(n)
		if len(other.open) != 0 {
			t.Error("the socket of a living process was replaced")
		}
		other.close()
		l.end("R1")
		l.close()
		if left, err := os.ReadDir(runs); err != nil || len(left) != 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
		if _, err := dialRun(context.Background(), runs, "R1"); err == nil {
			t.Error("it still answers")
		}
	}
}
