package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What git acts on lies beyond the repository of the workspace, too: the one above it, and the configs of the user, name files in
// it. Where they are no tracked file behind a link they are not written; else it is told.
func TestF404WhatIsNamedFromBeyondIsControlled(t *testing.T) {
	for name, c := range map[string]struct {
		config string // of the user
		before string // in the directory above the workspace
		line   string
		in     string // where the user goes on
		told   string // "" for a wall
	}{
		"hooksPath of the repository above":    {"", `git config core.hooksPath work/.husky && mkdir work/.husky && echo > work/.husky/sample`, `hook .husky/pre-commit`, "..", ""},
		"a link of the repository above":       {"", `mkdir work/h && echo > work/h/sample && rm -rf .git/hooks && ln -s ../work/h .git/hooks`, `hook h/pre-commit`, "..", ""},
		"the same, tracked":                    {"", `mkdir work/h && echo > work/h/sample && rm -rf .git/hooks && ln -s ../work/h .git/hooks && git add work/h && git commit -q -m h`, `hook h/pre-commit`, "..", "(by the link ../.git/hooks)"},
		"an include of the repository above":   {"", `echo > work/team && git config include.path ../work/team`, `settings team`, "..", ""},
		"hooksPath of the user":                {"[core]\n\thooksPath = .githooks\n", `mkdir work/.githooks && echo > work/.githooks/sample`, `hook .githooks/pre-commit`, ".", ""},
		"hooksPath of the user, not there":     {"[core]\n\thooksPath = .githooks\n", `true`, `hook .githooks/pre-commit`, ".", "hooks"},
		"an include of an include of the user": {"[include]\n\tpath = ~/more\n", `printf '[include]\n\tpath = %s/work/team\n' "$PWD" > home/more && echo > work/team`, `settings team`, ".", ""},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s stage) {
				s.write(filepath.Join(s.home, "dot/gitconfig"), c.config+"[safe]\n\tdirectory = *\n")
				if err := os.Symlink("dot/gitconfig", filepath.Join(s.home, ".gitconfig")); err != nil { // as managers of such files have it
					t.Fatal(err)
				}
				v := newVictim(t, s)
				if c.in == ".." {
					v.user(`rm -rf .git && cd .. && git init -q -b main . && cd work && git add file && git commit -q -m one`)
				}
				v.user(`cd .. && ` + c.before)
				v.attack(`true`)
				said := v.attack(c.line)
				ran := v.ran(c.in)
				if s.namespaces && c.told == "" && (ran || said.loud != "") {
					t.Errorf("it ran: %v, told %q", ran, said)
				}
				if ran && said.loud+said.appeared == "" || !strings.Contains(said.appeared, c.told) {
					t.Errorf("it ran: %v, and is told %q", ran, said)
				}
			})
		})
	}
}

// Before there were configs a repository had a file for each remote.
func TestF402OldFormsOfARemote(t *testing.T) {
	for _, dir := range []string{"remotes", "branches"} {
		onEach(t, func(t *testing.T, s stage) {
			v := newVictim(t, s)
			said := v.attack(`git init -q --bare evil && hook evil/hooks/post-receive && mkdir .git/` + dir + ` && echo "URL: evil" > .git/` + dir + `/origin`)
			if v.exists(filepath.Join(v.work, ".git", dir)) || !strings.Contains(said.loud, ".git/"+dir) {
				t.Errorf("it is there, told %q", said)
			}
		})
	}
}

// Of two commands at once the second may not make anew what the first one made, and the walls removed.
func TestF402TheSecondOfTwoCommandsMakesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		v := newVictim(t, s)
		up1, up2, go1, go2 := v.pipe("up1"), v.pipe("up2"), v.pipe("go1"), v.pipe("go2")
		first, second := make(chan told, 1), make(chan told, 1)
		go func() { first <- v.attack(`mkdir .git/hooks; echo up > up1; read x < go1`) }()
		v.came(up1)
		go func() { second <- v.attack(`echo up > up2; read x < go2; hook .git/hooks/pre-commit`) }()
		v.came(up2)
		v.goOn(go1)
		<-first
		v.goOn(go2)
		if said := <-second; v.ran(".") || v.exists(filepath.Join(v.work, ".git/hooks")) {
			t.Errorf("what the second made is there, told %q", said)
		}
		v.user(`mkdir .git/hooks && echo > .git/hooks/sample`) // it is the user's again
		v.attack(`true`)
		if _, err := os.Stat(filepath.Join(v.work, ".git/hooks/sample")); err != nil {
			t.Error(err)
		}
	})
}
