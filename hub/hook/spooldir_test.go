package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"wf/files"
	"wf/files/filestest"
)

// awaitWritten waits until nothing is written any more.
func (s *spoolStage) awaitWritten() {
	s.t.Helper()
	filestest.Until(s.t, "nothing is written", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !s.writing
	}, nil)
}

// killed has a spool end as its process does when it is killed: nothing more is written, and its lock is free.
func (s *spoolStage) killed() {
	s.t.Helper()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	if err := errors.Join(files.FreeLock(s.lock), s.file.close()); err != nil {
		s.t.Fatal(err)
	}
}

// Each process has a directory of its own; what one that was killed left is taken over by another that lives, once, with its definition, and
// past the bounds.
func TestWhatAKilledProcessLeftIsTakenOver(t *testing.T) {
	dir := t.TempDir()
	first, second := spoolIn(t, dir, SpoolOptions{}), spoolIn(t, dir, SpoolOptions{Events: 4})
	if first.dir == second.dir {
		t.Fatal("two processes have one directory")
	}
	var err error
	if first.text, err = first.Define([]byte("another definition")); err != nil {
		t.Fatal(err)
	}
	all := names("a", 20)
	for _, request := range all {
		first.sent("a", request)
	}
	second.sent("b", "b/00000")
	second.takeOver()
	if n, _, _ := second.Depth(); n != 1 {
		t.Fatalf("of a process that lives %d are taken over", n-1)
	}
	image := t.TempDir()
	first.killed()
	copyTree(t, first.dir, image, nil)
	b := newBegun()
	second.serve(b)
	b.await(t, "all begin", func() bool { return b.count() == 21 })
	if !slices.Equal(b.order["a"], all) {
		t.Errorf("%v", b.order["a"])
	}
	if _, err := second.Close(); err != nil { // it looks for what others left
		t.Fatal(err)
	}
	// Killed between the two: what was taken over is still in the other file.
	copyTree(t, image, first.dir, nil)
	third := spoolIn(t, dir, SpoolOptions{}) // its directory is the first one
	if third.dir != first.dir {
		t.Fatal(third.dir)
	}
	if n, _, _ := third.Depth(); n != 20 {
		t.Errorf("%d wait", n)
	}
	left, err := Look(dir, testKey)
	if err != nil || left.Events != 20 || left.Oldest.IsZero() || left.Lost != 0 {
		t.Errorf("%+v, %v", left, err)
	}
	if left, err := Look(filepath.Join(dir, "none"), testKey); err != nil || left != (Left{}) {
		t.Errorf("%+v, %v", left, err)
	}
}

// There are so many directories, and one more process is told so.
func TestSoManyProcessesTakeEvents(t *testing.T) {
	dir := t.TempDir()
	for range mostSpools {
		spoolIn(t, dir, SpoolOptions{})
	}
	if _, err := OpenSpool(SpoolOptions{Dir: dir, Key: testKey}); err == nil || !strings.Contains(err.Error(), "64 processes") {
		t.Error(err)
	}
}

// What has begun goes from the disk: at once where nothing waits, and before 4 MiB of it where one event waits for long.
func TestWhatHasBegunGoesFromTheDisk(t *testing.T) {
	dir := t.TempDir()
	s, b := spoolIn(t, dir, SpoolOptions{}), newBegun()
	path := filepath.Join(s.dir, eventFile)
	size := func() int64 {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	var stuck atomic.Bool
	stuck.Store(true)
	b.fails = func(k Kept) error {
		if k.Hook == "stuck" && stuck.Load() {
			return errors.New("not now")
		}
		return nil
	}
	s.serve(b)
	s.sent("a", "a/secret", `{"x":"what an event says"}`)
	b.await(t, "it begins", func() bool { return b.count() == 1 })
	awaitSize(t, size, func(n int64) bool { return n == 0 })

	s.sent("stuck", "stuck/1", `{"x":"it waits"}`)
	big := `{"x":"` + strings.Repeat("x", 300<<10) + `"}`
	largest := int64(0)
	for _, request := range names("a", 100) { // 30 MB
		s.sent("a", request, big)
		largest = max(largest, size())
	}
	b.await(t, "all but one begin", func() bool { return b.count() == 101 })
	awaitSize(t, size, func(n int64) bool { return n < slack+1<<20 })
	awaitDepth(t, s.Spool, 1)
	s.awaitWritten()
	if most := int64(slack + 2*atOnceBytes); largest > most {
		t.Errorf("the file had %d bytes while one event waited", largest)
	}
	s.killed()
	again := spoolIn(t, dir, SpoolOptions{})
	if n, _, _ := again.Depth(); n != 1 {
		t.Errorf("%d wait", n)
	}
	stuck.Store(false)
	again.serve(b)
	b.await(t, "it begins", func() bool { return b.times["stuck/1"] == 1 })
	entries, err := os.ReadDir(again.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v, %v", e.Name(), info.Mode(), err)
		}
	}
	if info, err := os.Stat(again.dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory has the mode %v, %v", info.Mode(), err)
	}
}

func awaitSize(t *testing.T, size func() int64, is func(int64) bool) {
	t.Helper()
	filestest.Until(t, "the file has its size", func() bool { return is(size()) }, nil)
}

// A definition stays as long as an event waits for it, and is what it was; one that is not there costs its own events alone.
func TestADefinitionStaysWithItsEvents(t *testing.T) {
	dir := t.TempDir()
	s := spoolIn(t, dir, SpoolOptions{})
	one, two := s.text, ""
	var err error
	if two, err = s.Define([]byte("the newer one")); err != nil || one == two {
		t.Fatal(two, err)
	}
	s.sent("a", "a/1")
	s.text = two
	s.sent("a", "a/2")
	if _, err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = spoolIn(t, dir, SpoolOptions{})
	for name, want := range map[string]string{one: "a definition", two: "the newer one"} {
		if text, err := s.definition(name); err != nil || string(text) != want {
			t.Errorf("%s, %v", text, err)
		}
	}
	if err := os.WriteFile(filepath.Join(s.dir, one+definitionIs), []byte("what a person wrote"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newBegun()
	s.serve(b)
	b.await(t, "the other one begins", func() bool { return b.times["a/2"] == 1 })
	awaitLog(t, s, "put aside", 1)
	if _, err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = spoolIn(t, dir, SpoolOptions{}) // defines the first one again
	if _, err := os.Stat(filepath.Join(s.dir, two+definitionIs)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a definition of no event stays: %v", err)
	}
}

// What an event says comes out byte by byte, since the inputs of its run are hashed.
func TestWhatAnEventSaysComesOutAsItWent(t *testing.T) {
	s := spoolIn(t, t.TempDir(), SpoolOptions{})
	for i, what := range []string{`{"x":"<>&\u2028 \u0000 ä \"\\"}`, `{"n":1e300,"m":[null,true,{"":""}]}`, `"` + "\u2028" + `"`, fmt.Sprintf("%q", strings.Repeat("x", 1<<20))} {
		frame, err := s.file.frame(record{Kept: &Kept{What: json.RawMessage(what)}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.file.open(frame)
		if err != nil || !bytes.Equal(r.Kept.What, []byte(what)) {
			t.Errorf("%d: %.100s, %v", i, r.Kept.What, err)
		}
	}
}
