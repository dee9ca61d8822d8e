package workspace_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"wf/protocol/tree"
	"wf/roles/workspace"
)

// C-3: files are restored side by side, and told in their order; where one of them fails, what was written beside the others is gone, and the
// same changes go on.
func TestC03FilesAreRestoredSideBySide(t *testing.T) {
	for _, c := range []struct{ dirs, files int }{{1, 1}, {1, 63}, {1, 64}, {1, 65}, {1, 129}, {127, 1}, {128, 1}, {129, 2}} {
		t.Run(fmt.Sprintf("%d of %d", c.dirs, c.files), func(t *testing.T) {
			k, dir := kept{}, t.TempDir()
			state := func(n int) map[string]string {
				out := map[string]string{}
				for d := range c.dirs {
					for f := range c.files {
						out[fmt.Sprintf("d%03d/f%03d", d, f)] = fmt.Sprint(n, " ", d, " ", f)
					}
				}
				return out
			}
			lay(t, dir, state(1))
			first := k.tree(t, dir)
			lay(t, dir, state(2))
			second := k.tree(t, dir)
			changes := k.diff(t, second, first)

			broken, failed := changes[len(changes)/2].Path, errors.New("cannot be read")
			_, err := workspace.Restore(t.Context(), dir, changes, workspace.Restoring{Open: func(it tree.Item) (io.ReadCloser, error) {
				if it.Path == broken {
					return nil, failed
				}
				return k.open(it)
			}})
			if !errors.Is(err, failed) || !strings.Contains(err.Error(), broken) {
				t.Fatalf("%v, want the error of %s", err, broken)
			}
			err = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
				if err == nil && strings.HasPrefix(e.Name(), ".") {
					t.Errorf("%s is left", path)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}

			var mu sync.Mutex
			var told []int
			out, err := workspace.Restore(t.Context(), dir, changes, workspace.Restoring{Open: k.open, Each: func(done int) {
				if !mu.TryLock() {
					t.Error("two calls at once")
					return
				}
				told = append(told, done)
				mu.Unlock()
			}})
			if err != nil || len(out.Conflicts) > 0 || k.tree(t, dir) != first {
				t.Fatalf("%v, %v", err, out.Conflicts)
			}
			if !slices.IsSorted(out.Changed) || !slices.IsSorted(told) || len(told) != len(changes) {
				t.Errorf("%d changed in another order than %d, or not told one by one: %v", len(out.Changed), len(changes), told)
			}
		})
	}
}
