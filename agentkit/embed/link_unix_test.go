//go:build unix

package embed

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Tables lie in stores, which may come from elsewhere: a link in place of a file of a table neither makes
// nor changes another file.
func TestNothingInPlaceOfATableIsFollowed(t *testing.T) {
	for _, end := range []string{"", ".lock"} {
		for _, there := range []bool{true, false} {
			dir, victim := t.TempDir(), filepath.Join(t.TempDir(), "victim")
			if there {
				if err := os.WriteFile(victim, []byte("x"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink(victim, tablePath(dir, "test/two")+end); err != nil {
				t.Fatal(err)
			}
			x, err := OpenTable(dir, "test/two")
			if err == nil {
				err = x.Add([]Key{sha256.Sum256([]byte("a"))}, [][]float32{{1, 2}})
			}
			if err == nil {
				t.Errorf("%s%s: a vector was added", "table", end)
			}
			switch b, err := os.ReadFile(victim); {
			case there && (err != nil || string(b) != "x"):
				t.Errorf("%s%s: the target holds %q (%v)", "table", end, b, err)
			case !there && !errors.Is(err, fs.ErrNotExist):
				t.Errorf("%s%s: the target was made (%v)", "table", end, err)
			}
		}
	}
}
