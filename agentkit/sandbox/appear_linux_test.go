package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is not there cannot be made read-only: what a command puts into a repository so that git reads the
// settings of another directory, or runs a hook, is gone when the command has ended.
func TestNothingThatControlsGitAppears(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		s.works(`git init -q --template= . && git init -q --template= below/inner`)
		s.policy.Dir = filepath.Join(s.work, "below/inner")
		for _, git := range []string{".git", "../../.git"} {
			s.write(filepath.Join(s.outside, "hooks/kept"), "x")
			out := s.works(`cp -r ` + git + ` evil && echo ../evil > ` + git + `/commondir && mkdir ` + git + `/hooks && ln -s "$OUTSIDE" ` + git + `/hooks/link`)
			for _, name := range []string{"commondir", "hooks"} {
				path := filepath.Join(s.policy.Dir, git, name)
				if s.exists(path) {
					t.Errorf("%s is there", path)
				}
				if !strings.Contains(out, ".git/"+name) {
					t.Errorf("%s is not told of: %s", name, out)
				}
			}
			s.works(`rm -r evil`)
		}
		if !s.exists(filepath.Join(s.outside, "hooks/kept")) {
			t.Error("a link was followed")
		}
	})
}

// Hooks that the user has stay.
func TestHooksOfTheUserStay(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		if err := os.MkdirAll(filepath.Join(s.work, ".git"), 0o755); err != nil {
			t.Fatal(err)
		}
		s.write(filepath.Join(s.work, ".git/hooks/pre-commit"), "true")
		s.works(`true`)
		if !s.exists(filepath.Join(s.work, ".git/hooks/pre-commit")) {
			t.Error("the hook is gone")
		}
	})
}
