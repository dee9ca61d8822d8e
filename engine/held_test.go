package engine_test

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/protocol"
)

// hooked is a repository with hooks of the workspace, and a config that includes a file of it.
var hooked = map[string]string{".git/HEAD": "ref: refs/heads/main\n", ".git/objects/x": "", ".git/refs/x": "", ".git/config": "[core]\n\thooksPath = .husky\n[include]\n\tpath = ../inc/git\n",
	".husky/pre-commit": "true\n", "inc/git": "[alias]\n", "a": "1\n"}

// harming writes where git looks, and elsewhere.
const harming = "echo evil > .husky/pre-commit; echo evil > .husky/post-commit; echo evil > inc/git; echo 2 > a"

// What commands write in a copy of the workspace, in which there is no repository, comes into the workspace but for that on which git acts.
func TestNothingOnWhichGitActsComesOutOfACopy(t *testing.T) {
	b := newOwnBench(t)
	b.lay(hooked)
	_, v := b.run(coders, map[string]any{"items": []any{harming}})
	b.done(v)
	var paths []string
	for _, c := range b.merged(v, "merge#1").Conflicts {
		paths = append(paths, c.Kind+" "+c.Path)
	}
	if d := cmp.Diff([]string{"workspace .husky/post-commit", "workspace .husky/pre-commit", "workspace inc/git"}, paths); d != "" {
		t.Error(d)
	}
	got := b.tree()
	delete(got, "fixed")
	after := maps.Clone(hooked)
	after["a"] = "2\n"
	if d := cmp.Diff(after, got); d != "" {
		t.Error(d)
	}
}

// Nor does it by a command whose result is kept, nor by a result that was kept before git acted on the file.
func TestNothingOnWhichGitActsComesOfAKeptResult(t *testing.T) {
	m := newMemos(t)
	yaml := role(harming, "true")
	m.lay(hooked)
	v := m.drive(m.start(yaml, ""))
	if got := m.read(".husky/pre-commit") + m.read("inc/git") + m.read("a"); v.Status == protocol.Done || got != "true\n[alias]\n1\n" {
		t.Errorf("%s: %q", how(v), got)
	}
	m = newMemos(t)
	yaml = role("mkdir -p .husky; echo evil > .husky/pre-commit", "{inputs: [a], outputs: [.husky/**]}")
	m.write("a", "1")
	want(t, "before", m.did(yaml), "none")
	m.lay(hooked)
	m.write("a", "1")
	if err := os.RemoveAll(filepath.Join(m.dir, ".husky")); err != nil {
		t.Fatal(err)
	}
	if v := m.drive(m.start(yaml, "offline")); v.Status == protocol.Done || m.read(".husky/pre-commit") == "evil\n" {
		t.Errorf("%s: %q", how(v), m.read(".husky/pre-commit"))
	}
}
