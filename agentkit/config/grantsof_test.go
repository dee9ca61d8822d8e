package config

import (
	"os"
	"path/filepath"
	"testing"

	"wf/protocol"
)

// A grant of a definition is for its directory and its texts: by their digest, or by the CID that this version of wf gives them.
func TestTrustInADefinitionIsInItsDirectory(t *testing.T) {
	one, other := linkOf(t, "bafyreihsi3kj3qafaptezoj4kpzgy43dxznjv244rrh2cqfzckptsrrhxe"), linkOf(t, "bafyreicuvczkpouw76qgo76mduw3jlzm2xqmmwzu7cwouifgblm6gpor5m")
	given := Grant{Power: Schedule, CID: one, Dir: "/home/ada/project", Digest: "d1", File: "/home/ada/project/nightly.yaml"}
	for _, x := range []struct {
		name      string
		change    func(x *Grant)
		workspace string
		want      bool
	}{
		{"the same", func(*Grant) {}, "", true},
		{"another file there", func(x *Grant) { x.File = "/home/ada/project/copy.yaml" }, "", true},
		{"a comment", func(x *Grant) { x.Digest = "d2" }, "", true},
		{"a later version of wf", func(x *Grant) { x.CID = other }, "", true},
		{"another text", func(x *Grant) { x.CID, x.Digest = other, "d2" }, "", false},
		{"another directory", func(x *Grant) { x.Dir = "/home/ada/clone" }, "", false},
		{"a directory below", func(x *Grant) { x.Dir = "/home/ada/project/sub" }, "", false},
		{"another power", func(x *Grant) { x.Power = Webhook }, "", false},
		{"no text", func(x *Grant) { x.Digest = "" }, "", true},
		{"no text and another CID", func(x *Grant) { x.CID, x.Digest = other, "" }, "", false},
		{"no directory", func(x *Grant) { x.Dir = "" }, "", false},
		{"no directory, in the workspace", func(x *Grant) { x.Dir = "" }, "/home/ada/project", true},
		{"no directory, below the workspace", func(x *Grant) { x.Dir = "" }, "/home/ada", true},
		{"no directory, beside the workspace", func(x *Grant) { x.Dir = "" }, "/home/ada/pro", false},
		{"no directory and another CID", func(x *Grant) { x.Dir, x.CID = "", other }, "/home/ada/project", false},
	} {
		t.Run(x.name, func(t *testing.T) {
			g := GrantsIn(t.TempDir(), nil)
			if err := g.Add(given); err != nil {
				t.Fatal(err)
			}
			asked := given
			x.change(&asked)
			if got, err := g.Holds(asked, x.workspace); got != x.want || err != nil {
				t.Errorf("%v %v", got, err)
			}
			for _, back := range []func() error{func() error { return g.Remove(given.Power, one) }, func() error { return g.Withdraw(given) }} {
				if err := g.Add(given); err != nil {
					t.Fatal(err)
				}
				if err := back(); err != nil {
					t.Fatal(err)
				}
				if got, err := g.Holds(asked, x.workspace); got || err != nil {
					t.Errorf("taken back it is %v %v", got, err)
				}
			}
		})
	}
}

// A grant of an earlier version of wf is for the file that it names, whatever its path is called by.
func TestAnOldGrantHoldsForItsFile(t *testing.T) {
	dir := t.TempDir()
	file, clone := filepath.Join(dir, "nightly.yaml"), filepath.Join(dir, "clone", "nightly.yaml")
	if err := os.Mkdir(filepath.Dir(clone), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, clone} {
		if err := os.WriteFile(path, []byte("wf: 1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	g := GrantsIn(t.TempDir(), nil)
	old := Grant{Power: Schedule, CID: linkOf(t, "bafyreihsi3kj3qafaptezoj4kpzgy43dxznjv244rrh2cqfzckptsrrhxe"), File: file}
	if err := g.Add(old); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{file: true, filepath.Join(link, "nightly.yaml"): true, clone: false, filepath.Join(dir, "gone.yaml"): false} {
		x := old
		x.File, x.Dir, x.Digest = path, filepath.Dir(path), "d1"
		if got, err := g.Holds(x, ""); got != want || err != nil {
			t.Errorf("%s: %v %v", path, got, err)
		}
	}
}

func linkOf(t *testing.T, text string) protocol.Link {
	t.Helper()
	l, err := protocol.ParseLink(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
