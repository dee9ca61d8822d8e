package appear_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"wf/roles/workspace/appear"
)

// tick returns when the clock of a file system has gone on: a change from then on has another ctime than those
// before.
func tick(t *rapid.T, probe string) {
	defer os.Remove(probe)
	var first int64
	for n := 0; ; n++ {
		var s unix.Stat_t
		if err := errors.Join(os.WriteFile(probe, []byte("x"), 0o600), unix.Stat(probe, &s)); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			first = s.Ctim.Nano()
		} else if s.Ctim.Nano() != first {
			return
		}
	}
}

// What is known after any changes, by reading what changed, is what a first look finds.
func TestALaterLookKnowsWhatAFirstOneFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		root, err := os.MkdirTemp("", "wf-appear-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(root)
		watch := func() *appear.Watch {
			w, err := appear.Of(root)
			if err != nil {
				t.Fatal(err)
			}
			return w
		}
		appear.Forget()
		w := watch()
		w.Begin().End()
		path := rapid.Custom(func(t *rapid.T) string {
			return filepath.Join(append([]string{root}, rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", ".git", ".wf", ".envrc", "HEAD", "objects", "refs"}), 1, 4).Draw(t, "path")...)...)
		})
		for range rapid.IntRange(1, 5).Draw(t, "commands") {
			s := w.Begin()
			for range rapid.IntRange(0, 8).Draw(t, "changes") {
				at := path.Draw(t, "at")
				switch rapid.IntRange(0, 4).Draw(t, "change") { // some of which cannot be made
				case 0, 1:
					_ = os.MkdirAll(at, 0o755)
				case 2:
					_ = os.RemoveAll(at)
				case 3:
					_ = os.Rename(at, path.Draw(t, "to"))
				case 4:
					_ = os.WriteFile(at, []byte("x"), 0o644)
				}
			}
			s.End()
			if rapid.Bool().Draw(t, "settled") {
				tick(t, root+".probe")
				appear.Settle(w)
			}
			appear.Forget()
			fresh := watch()
			fresh.Begin().End()
			if d := cmp.Diff(appear.Items(fresh), appear.Items(w)); d != "" {
				t.Fatalf("a first look finds, a later one knows:\n%s", d)
			}
			if counted, has := appear.Known(w); counted != has {
				t.Fatalf("it counts %d directories and has %d", counted, has)
			}
		}
	})
}
