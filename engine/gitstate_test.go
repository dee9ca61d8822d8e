package engine_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A run asks for the commit of its workspace after each step. What the workspace says about git
// was written by its agents, and starts nothing.
func TestNoProgramOfTheWorkspaceRunsAfterAStep(t *testing.T) {
	for name, spoil := range map[string]string{
		"fsmonitor":  `git config core.fsmonitor "touch '$PWD/evil'; false"`,
		"commondir":  `mkdir ../common && cp -r .git/. ../common && git config --file ../common/config core.fsmonitor "touch '$PWD/evil'; false" && echo ../../common > .git/commondir`,
		"a filter":   `git config filter.x.clean "touch '$PWD/evil'; cat" && echo '* filter=x' > .gitattributes && touch -d yesterday file && echo y > file`,
		"a gitlink":  `git init -q sub && cd sub && git commit -q --allow-empty -m x && cd .. && git add sub && cd sub && git config core.fsmonitor "touch '$OLDPWD/evil'; false"`,
		"an include": `git config core.fsmonitor "touch '$PWD/evil'; false" && mv .git/config settings && printf '[include]\n\tpath = ../settings\n' > .git/config`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.dir = filepath.Join(b.dir, "work")
			if err := os.Mkdir(b.dir, 0o777); err != nil {
				t.Fatal(err)
			}
			for _, key := range []string{"AUTHOR", "COMMITTER"} {
				t.Setenv("GIT_"+key+"_NAME", "a")
				t.Setenv("GIT_"+key+"_EMAIL", "a@b")
			}
			prepare := exec.Command("sh", "-ec", "git init -q -b main && echo x > file && git add file && git commit -q -m x && "+spoil)
			prepare.Dir = b.dir
			if out, err := prepare.CombinedOutput(); err != nil {
				t.Skipf("no git: %v: %s", err, out)
			}
			if err := os.RemoveAll(filepath.Join(b.dir, "evil")); err != nil {
				t.Fatal(err)
			}
			_, v := b.run("wf: 1\nname: one\nroles: {a: {run: \"true\"}}\n", nil)
			if _, err := os.Lstat(filepath.Join(b.dir, "evil")); err == nil {
				t.Error("wf ran a program that the workspace names")
			}
			left := v.Steps[0].Workspace
			if left == nil || len(left.Head) != 40 {
				t.Errorf("the commit of the workspace is %+v", left)
			}
		})
	}
}
