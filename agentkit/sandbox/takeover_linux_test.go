package sandbox_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"wf/roles/workspace/appear"
)

// takeoverTools make a file a hook that the user's git runs, or settings by which it runs something.
const takeoverTools = `
hook() { mkdir -p "$(dirname "$1")"; printf '#!/bin/sh\necho > "%s"\n' "$CANARY" > "$1" && chmod 755 "$1"; }
settings() { printf '[core]\n\tfsmonitor = "echo > %s;:"\n' "$CANARY" >> "$1"; }
`

// A victim is a workspace with a repository of the user, in which commands attack and the user works on.
type victim struct {
	stage
	canary string
}

func newVictim(t *testing.T, s stage, lines ...string) victim {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	v := victim{s, filepath.Join(filepath.Dir(s.work), "canary")}
	v.policy.Environ = append(append(v.policy.Environ, gitUser...), "CANARY="+v.canary, "WORK="+v.work)
	v.write(filepath.Join(v.work, "file"), "x")
	v.user(`git init -q -b main --template= . && git add file && git commit -q -m one`)
	for _, line := range lines {
		v.user(line)
	}
	t.Cleanup(func() { giveBack(v.work) })
	return v
}

// goOn has a command go on that waits at a pipe.
func (v victim) goOn(pipe *os.File) {
	v.t.Helper()
	if _, err := pipe.WriteString("go\n"); err != nil {
		v.t.Error(err)
	}
}

// user is what the user does outside of the sandbox.
func (v victim) user(line string) {
	v.t.Helper()
	if out, err := unconfined(v.t.Context(), append(gitUser, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=protocol.file.allow", "GIT_CONFIG_VALUE_0=always"), v.work, "sh", "-c", line); err != nil {
		v.t.Fatalf("%s: %v: %s", line, err, out)
	}
}

func (v victim) attack(line string) told {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.t.Context(), time.Minute)
	defer cancel()
	said := v.confined(ctx, nil, v.work, takeoverTools+line)
	if ctx.Err() != nil {
		v.t.Errorf("%s: it hangs", line)
	}
	return said
}

// pipe is a fifo of the workspace. Commands say by one how far they have come, and wait at one.
func (v victim) pipe(name string) *os.File {
	v.t.Helper()
	path := filepath.Join(v.work, name)
	if err := unix.Mkfifo(path, 0o600); err != nil {
		v.t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK, 0) // its opening waits for nobody
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { f.Close() })
	return f
}

// came waits until a command has come so far that it writes to a pipe.
func (v victim) came(pipe *os.File) {
	v.t.Helper()
	_ = pipe.SetReadDeadline(time.Now().Add(time.Minute)) // an error shows when it is read
	if _, err := pipe.Read(make([]byte, 1)); err != nil {
		v.t.Error(err)
	}
}

// ran reports whether anything that commands left runs when the user works on in a directory.
func (v victim) ran(dir string) bool {
	v.t.Helper()
	for _, args := range [][]string{{"status"}, {"commit", "-q", "--allow-empty", "-m", "two"}} {
		_, _ = unconfined(v.t.Context(), gitUser, filepath.Join(v.work, dir), append([]string{"git"}, args...)...) // what runs counts
	}
	defer os.Remove(v.canary)
	return v.exists(v.canary)
}

const evilMonitor = `core.fsmonitor "echo > $CANARY;:"`

// F-401: a directory into which wf may not look is not one in which nothing is: its files stay read-only for the next command, or
// that is refused. Root looks everywhere.
func TestF401NoModeHidesWhatControlsGit(t *testing.T) {
	for name, c := range map[string]struct{ before, first, then, works string }{
		".git 0000":          {`true`, `chmod 0 .git`, `chmod 755 .git; git config ` + evilMonitor, "."},
		".git 0111":          {`true`, `chmod 0111 .git`, `chmod 755 .git; git config ` + evilMonitor, "."},
		".git 0444":          {`mkdir .git/hooks`, `chmod 0444 .git`, `chmod 755 .git; hook .git/hooks/pre-commit`, "."},
		"the workspace":      {`mkdir .wf && echo x > .wf/config.yaml`, `chmod 0 .`, `chmod 755 "$WORK"; cd "$WORK"; echo evil > .wf/config.yaml; git config ` + evilMonitor, "."},
		"objects":            {`mkdir -p .git/objects/info && echo /none > .git/objects/info/alternates`, `chmod 0 .git/objects/info; chmod 0 .git/objects`, `chmod 755 .git/objects .git/objects/info; echo /evil > .git/objects/info/alternates`, "."},
		"modules":            {`git init -q ../o && git -C ../o commit -q --allow-empty -m o && git submodule add -q ../o deep/sub && git commit -q -m sub`, `chmod 0 .git/modules/deep; chmod 0 .git/modules`, `chmod 755 .git/modules .git/modules/deep; git -C deep/sub config ` + evilMonitor, "deep/sub"},
		"a gitfile":          {`git init -q ../o && git -C ../o commit -q --allow-empty -m o && git submodule add -q ../o deep/sub && git commit -q -m sub`, `chmod 0 deep/sub; chmod 0 deep`, `chmod 755 deep deep/sub; git init -q "$HOME/evil"; git -C "$HOME/evil" config ` + evilMonitor + `; echo "gitdir: $HOME/evil/.git" > deep/sub/.git`, "deep/sub"},
		"worktrees":          {`git worktree add -q tree && git config extensions.worktreeConfig true && echo > .git/worktrees/tree/config.worktree`, `chmod 0 .git/worktrees/tree; chmod 0 .git/worktrees`, `chmod 755 .git/worktrees .git/worktrees/tree; settings .git/worktrees/tree/config.worktree`, "tree"},
		"a rebase":           {`mkdir .git/rebase-merge && echo "pick 1" > .git/rebase-merge/git-rebase-todo`, `chmod 0 .git/rebase-merge; chmod 0 .git`, `chmod 755 .git .git/rebase-merge; echo "exec evil" >> .git/rebase-merge/git-rebase-todo`, "."},
		"nested":             {`git init -q vendor/a/x`, `chmod 0 vendor`, `chmod 755 vendor; git -C vendor/a/x config ` + evilMonitor, "vendor/a/x"},
		"nested, its .git":   {`git init -q vendor/a/x`, `chmod 0 vendor/a/x/.git`, `chmod 755 vendor/a/x/.git; git -C vendor/a/x config ` + evilMonitor, "vendor/a/x"},
		"an inner .wf":       {`mkdir -p inner/.wf && echo x > inner/.wf/config.yaml`, `chmod 0 inner`, `chmod 755 inner; echo evil > inner/.wf/config.yaml`, "."},
		"core.hooksPath":     {`mkdir -p tools/hooks && echo > tools/hooks/sample && git config core.hooksPath tools/hooks`, `chmod 0 tools`, `chmod 755 tools; hook tools/hooks/pre-commit`, "."},
		"include.path":       {`mkdir tools && echo > tools/team && git config include.path ../tools/team`, `chmod 0 tools`, `chmod 755 tools; settings tools/team`, "."},
		"a bare repository":  {`git init -q --bare fixtures/bare`, `chmod 0 fixtures`, `chmod 755 fixtures; git -C fixtures/bare config ` + evilMonitor, "."},
		"where a link leads": {`mkdir -p tools/hooks && echo > tools/hooks/sample && ln -s ../tools/hooks .git/hooks`, `chmod 0 tools`, `chmod 755 tools; hook .git/hooks/pre-commit`, "."},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s stage) {
				needsRoot(t, s)
				v := newVictim(t, s, c.before)
				before := everything(v.work)
				told := []told{v.attack(c.first), v.attack(c.then)}
				giveBack(v.work)
				if wrong, ran := changes(before, everything(v.work)), v.ran(c.works); len(wrong) > 0 || ran {
					t.Errorf("the next command %v, which runs: %v, told %q", wrong, ran, told)
				}
				v.works(`true`) // the user has put it right
			})
		})
	}
}

// everything is what controls a workspace, but for what is not looked at in each of its repositories.
func everything(work string) map[string]string {
	out := controlled(work)
	for _, file := range []string{"inner/.wf/config.yaml", "tools/hooks/sample", "tools/hooks/pre-commit", "tools/team", "fixtures/bare/config", ".git/objects/info/alternates"} {
		if b, err := os.ReadFile(filepath.Join(work, file)); err == nil {
			out[file] = string(b)
		}
	}
	return out
}

// A later process knows no repository in a directory that an earlier one left closed.
func TestF401WhatWasClosedBeforeThisProcessIsNoHole(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		needsRoot(t, s)
		v := newVictim(t, s, `git init -q vendor/a/x`)
		v.attack(`chmod 0 vendor`)
		for range 10 { // more workspaces than a process remembers
			w, err := appear.Of(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			w.Look()
		}
		said := v.attack(`true`)
		also := v.attack(`chmod 755 vendor; git -C vendor/a/x config ` + evilMonitor)
		giveBack(v.work)
		if v.ran("vendor/a/x") && said.loud+also.loud == "" && !strings.Contains(also.appeared, "vendor/a/x") {
			t.Errorf("what the next command put there runs, told %q, %q", said, also)
		}
	})
}

// A command that goes on changing modes while others begin opens nothing to them.
func TestF401ModesThatChangeAllTheTime(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		needsRoot(t, s)
		v := newVictim(t, s)
		before := controlled(v.work)
		up := v.pipe("up")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan bool)
		go func() {
			defer close(ended)
			v.confined(ctx, nil, v.work, `echo up > up; while :; do chmod 0 .git; chmod 755 .git; done`)
		}()
		v.came(up)
		for range 10 {
			v.attack(`chmod 755 .git; settings .git/config; hook .git/hooks/pre-commit`)
		}
		cancel()
		<-ended
		giveBack(v.work)
		if wrong := changes(before, controlled(v.work)); len(wrong) > 0 || v.ran(".") {
			t.Errorf("they %v", wrong)
		}
	})
}

// F-402: what a command puts into a repository where there was nothing is gone when it has ended, whatever modes it sets: they are
// modes of the user's own files, who can give them back. It is told by its name.
func TestF402NoModeKeepsWhatACommandMade(t *testing.T) {
	const tree = `git worktree add -q tree && git config extensions.worktreeConfig true`
	const sub = `git init -q ../o && git -C ../o commit -q --allow-empty -m o && git submodule add -q ../o sub && git commit -q -m sub && rm -rf .git/modules/sub/hooks`
	const common = `mkdir aside && cp -r .git/objects .git/refs .git/config aside/ && settings aside/config && echo ../aside > .git/commondir; `
	for name, c := range map[string]struct{ before, line, made, works string }{
		"hooks 0111":            {`true`, `hook .git/hooks/pre-commit; chmod 0111 .git/hooks`, ".git/hooks", "."},
		"hooks 0555":            {`true`, `hook .git/hooks/pre-commit; chmod 0555 .git/hooks`, ".git/hooks", "."},
		"hooks 0000":            {`true`, `hook .git/hooks/pre-commit; chmod 0 .git/hooks`, ".git/hooks", "."},
		"hooks below 0111":      {`true`, `hook .git/hooks/pre-commit; chmod 0111 .git`, ".git/hooks", "."},
		"hooks below 0555":      {`true`, `hook .git/hooks/pre-commit; chmod 0555 .git`, ".git/hooks", "."},
		"hooks below 0000":      {`true`, `hook .git/hooks/pre-commit; chmod 0 .git`, ".git/hooks", "."},
		"hooks, workspace 0000": {`true`, `hook .git/hooks/pre-commit; chmod 0 .`, ".git/hooks", "."},
		"hooks, workspace 0555": {`true`, `hook .git/hooks/pre-commit; chmod 0555 .git .`, ".git/hooks", "."},
		"hooks with more below": {`true`, `hook .git/hooks/pre-commit; mkdir -p .git/hooks/a/b/c; chmod 0 .git/hooks/a/b; chmod 0111 .git/hooks/a; chmod 0555 .git/hooks .git`, ".git/hooks", "."},
		"a link as hooks":       {`true`, `hook "$WORK/aside/pre-commit"; ln -s ../aside .git/hooks; chmod 0555 .git`, ".git/hooks", "."},
		"commondir 0000":        {`true`, common + `chmod 0 .git/commondir`, ".git/commondir", "."},
		"commondir below 0555":  {`true`, common + `chmod 0555 .git`, ".git/commondir", "."},
		"commondir below 0111":  {`true`, common + `chmod 0111 .git`, ".git/commondir", "."},
		"of a submodule":        {sub, `hook .git/modules/sub/hooks/pre-commit; chmod 0111 .git/modules/sub/hooks; chmod 0555 .git/modules/sub; chmod 0111 .git/modules`, ".git/modules/sub/hooks", "sub"},
		"of a worktree":         {tree, `settings .git/worktrees/tree/config.worktree; chmod 0555 .git/worktrees/tree; chmod 0111 .git/worktrees`, ".git/worktrees/tree/config.worktree", "tree"},
		"by another name":       {`git init -q --template= n/m && rm n/m/.git/config`, `hook n/m/.git/hooks/pre-commit; mv n n2; ln -s n2 n`, "n/m/.git/hooks", "n/m"},
		"of a nested one":       {`git init -q --template= vendor/x`, `hook vendor/x/.git/hooks/pre-commit; chmod 0111 vendor/x/.git/hooks; chmod 0555 vendor/x/.git; chmod 0111 vendor/x`, "vendor/x/.git/hooks", "vendor/x"},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s stage) {
				v := newVictim(t, s, c.before)
				said := v.attack(c.line)
				giveBack(v.work)
				_, err := os.Lstat(filepath.Join(v.work, c.made))
				if there, ran := err == nil, v.ran(c.works); there || ran || !strings.Contains(said.loud, c.made) {
					t.Errorf("%s is there: %v, and ran: %v, told %q", c.made, there, ran, said)
				}
			})
		})
	}
}

// elsewhere does something in a network namespace of its own, on a thread that ends with it. The first thread of a process
// cannot end, and what is known of the process is known by it.
func elsewhere(done chan<- error, do func()) {
	runtime.LockOSThread() // never unlocked
	if unix.Gettid() == unix.Getpid() {
		go elsewhere(done, do)
		select {} // keeps the first thread
	}
	err := unix.Unshare(unix.CLONE_NEWNET)
	if err == nil {
		do()
	}
	done <- err
}

// F-403: whatever name a socket of a process outside has by now, the next command does not connect to it.
func TestF403NoNameOfASocketIsOpen(t *testing.T) {
	while := func(line string) func(v victim, listen func(path string)) {
		return func(v victim, listen func(path string)) {
			v.afterStart(line+`; rm up go`, func() { listen(filepath.Join(v.work, "d/socket")) })
		}
	}
	at := func(name, line string) func(v victim, listen func(path string)) {
		return func(v victim, listen func(path string)) {
			listen(filepath.Join(v.work, name))
			v.attack(line)
		}
	}
	for name, c := range map[string]struct {
		before func(v victim, listen func(path string))
		path   string
	}{
		"its directory 0000":        {at("d/socket", `chmod 0 d`), "d/socket"},
		"its directory 0555":        {at("d/socket", `chmod 0555 d`), "d/socket"},
		"directories above it":      {at("d/e/socket", `chmod 0 d/e; chmod 0 d`), "d/e/socket"},
		"its directory moved":       {at("d/socket", `mv d moved`), "moved/socket"},
		"one above it moved":        {at("d/e/socket", `mv d moved`), "moved/e/socket"},
		"a link to it":              {at("d/socket", `ln -s d/socket link`), "link"},
		"a link to its directory":   {at("d/socket", `ln -s d link`), "link/socket"},
		"a link in place of a name": {at("d/socket", `mv d moved; ln -s moved d`), "d/socket"},
		"a name of two lines":       {at("d/a\nb", `true`), "d/a\nb"},
		"a name with blanks":        {at("d/ a /b", `true`), "d/ a /b"},
		"moved as it was bound":     {while(`mv d/socket moved`), "moved"},
		"linked as it was bound":    {while(`ln d/socket hard`), "hard"},
		"a second name of the user": {func(v victim, listen func(path string)) {
			listen(filepath.Join(v.work, "d/socket"))
			v.user(`ln d/socket hard`)
		}, "hard"},
		"a path from where it was": {func(v victim, listen func(path string)) {
			v.t.(*testing.T).Chdir(filepath.Join(v.work, "d"))
			listen("socket")
		}, "d/socket"},
		"in .git": {func(v victim, listen func(path string)) { // as git's own monitor has it
			v.t.(*testing.T).Chdir(filepath.Join(v.work, ".git"))
			listen("socket")
		}, ".git/socket"},
		"in .wf": {func(v victim, listen func(path string)) {
			v.user(`mkdir .wf`)
			v.t.(*testing.T).Chdir(filepath.Join(v.work, ".wf"))
			listen("socket")
		}, ".wf/socket"},
		"a path over a link": {func(v victim, listen func(path string)) {
			if err := os.Symlink(v.work, filepath.Join(v.outside, "link")); err != nil {
				v.t.Fatal(err)
			}
			listen(filepath.Join(v.outside, "link/d/socket"))
		}, "d/socket"},
		"of another network namespace": {func(v victim, listen func(path string)) {
			if os.Geteuid() != 0 {
				v.t.Skip("a thread of root alone makes one")
			}
			done := make(chan error)
			go elsewhere(done, func() { listen(filepath.Join(v.work, "d/socket")) })
			if err := <-done; err != nil {
				v.t.Skip(err)
			}
		}, "d/socket"},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s stage) {
				needsRoot(t, s)
				v := newVictim(t, s, `mkdir -p d/e "d/ a "`)
				c.before(v, func(path string) {
					l, err := net.Listen("unix", path)
					if err != nil {
						t.Errorf("%s: %v", path, err)
						return
					}
					t.Cleanup(func() { l.Close() })
				})
				v.policy.Environ = append(v.policy.Environ, "HOST_TCP=127.0.0.1:1", "HOST_UDP=127.0.0.1:1", "HOST_UNIX="+c.path)
				told := v.attack(`chmod 755 d d/e 2>/dev/null; WF_ATTACK=dial "$SELF"`)
				if answer := said(told.out)["unix"]; answer == "ok" || answer == "" && told.loud == "" {
					t.Errorf("the socket answers %q, told %q", answer, told)
				}
			})
		})
	}
}

// F-404: where a link of the user in a place of control leads is that place. What git reads there is not written, or it is told:
// with the name of the link where git itself writes the file, since it is in the index.
func TestF404WhereLinksLeadIsControlled(t *testing.T) {
	const tracked = ` && git add -A . && git commit -q -m links`
	hooks := `mkdir scripts && echo > scripts/sample && ln -s ../scripts .git/hooks`
	hook := `mkdir .git/hooks scripts && echo > scripts/h && chmod 755 scripts/h && ln -s ../../scripts/h .git/hooks/pre-commit`
	config := `mv .git/config gitconfig && ln -s ../gitconfig .git/config`
	husky := `mkdir -p tools/husky && echo > tools/husky/sample && ln -s tools/husky .husky && git config core.hooksPath .husky`
	team := `mkdir -p tools && echo > tools/team && ln -s tools/team team && git config include.path ../team`
	for name, c := range map[string]struct {
		before, line string
		link         string // that is told
	}{
		"hooks":                         {hooks, `hook scripts/pre-commit`, ""},
		"hooks, tracked":                {hooks + tracked, `hook scripts/pre-commit`, ""},
		"hooks, replaced":               {hooks, `rm .git/hooks; hook .git/hooks/pre-commit`, ""},
		"hooks, moved":                  {hooks, `mv scripts s; hook scripts/pre-commit`, ""},
		"hooks that are not there":      {`ln -s ../scripts .git/hooks`, `hook scripts/pre-commit`, ""},
		"hooks by two links":            {`mkdir b && ln -s b a && ln -s ../a .git/hooks`, `hook b/pre-commit`, ""},
		"hooks by two links, replaced":  {`mkdir b && ln -s b a && ln -s ../a .git/hooks`, `rm a; hook a/pre-commit`, ""},
		"hooks below a link":            {`mkdir -p b/c && ln -s b a && ln -s ../a/c .git/hooks`, `hook a/c/pre-commit`, ""},
		"hooks below a link, replaced":  {`mkdir -p b/c && ln -s b a && ln -s ../a/c .git/hooks`, `rm a; hook a/c/pre-commit`, ""},
		"an absolute link":              {`mkdir scripts && ln -s "$PWD/scripts" .git/hooks`, `hook scripts/pre-commit`, ""},
		"a hook":                        {hook, `hook scripts/h`, ""},
		"a hook, tracked":               {hook + tracked, `hook scripts/h`, ".git/hooks/pre-commit"},
		"a hook, tracked and renamed":   {hook + tracked, `hook new; mv new scripts/h`, ".git/hooks/pre-commit"},
		"a hook, tracked, below moved":  {hook + tracked, `mv scripts s; hook scripts/h`, ".git/hooks/pre-commit"},
		"the config":                    {config, `settings gitconfig`, ""},
		"the config, tracked":           {config + tracked, `settings gitconfig`, ".git/config"},
		"the config, replaced":          {config, `cp gitconfig new; settings new; mv new .git/config`, ""},
		"the config, what it names":     {config + ` && mkdir hooks && echo > hooks/sample && git config core.hooksPath hooks`, `hook hooks/pre-commit`, ""},
		".git":                          {`mv .git store && ln -s store .git`, `settings store/config; hook store/hooks/pre-commit`, ""},
		".git, replaced":                {`mv .git store && ln -s store .git`, `rm .git; cp -r store .git; settings .git/config`, ""},
		".git, moved":                   {`mv .git store && ln -s store .git`, `mv store s; cp -r s store; settings store/config`, ""},
		"core.hooksPath":                {husky, `hook tools/husky/pre-commit`, ""},
		"core.hooksPath, replaced":      {husky, `rm .husky; hook .husky/pre-commit`, ""},
		"core.hooksPath, above it":      {`mkdir -p b/c && ln -s b a && git config core.hooksPath a/c`, `rm a; hook a/c/pre-commit`, ""},
		"include.path":                  {team, `settings tools/team`, ""},
		"include.path, replaced":        {team, `cp team new; settings new; mv new team`, ""},
		"what an included file names":   {`mkdir hooks && echo > hooks/sample && git config -f team core.hooksPath hooks && git config include.path ../team`, `hook hooks/pre-commit`, ""},
		"what an included one includes": {`echo > more && git config -f team include.path more && git config include.path ../team`, `settings more`, ""},
		"an include that is not there":  {`git config include.path local.cfg`, `settings .git/local.cfg`, ""},
		"hooks that are named in .git":  {`git config core.hooksPath .git/mine`, `hook .git/mine/pre-commit`, ""},
		"hooksPath is _":                {`mkdir _ && echo > _/sample && git config core.hooksPath _`, `hook _/pre-commit`, ""},
		"a repository moved into .git":  {`mkdir src && echo > src/x`, `mv src .git/src; ln -s .git/src src; cd .git/src; git init -q .; settings .git/config`, ""},
		"a name from the home":          {`mkdir hooks && echo > hooks/sample && git config core.hooksPath '~/../work/hooks'`, `hook hooks/pre-commit`, ""},
		"a name in two lines":           {`mkdir hooks && echo > hooks/sample && printf '[core]\n\thooksPath = ho\\\nok\\\ns\n' >> .git/config`, `hook hooks/pre-commit`, ""},
		"a config that begins oddly":    {`mkdir hooks && echo > hooks/sample && printf '\357\273\277[core]\n\thooksPath = hooks\n' > new && cat .git/config >> new && mv new .git/config`, `hook hooks/pre-commit`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s stage) {
				v := newVictim(t, s, c.before)
				v.attack(`true`)
				before := controlled(v.work)
				told := v.attack(c.line)
				ran := v.ran(".")
				switch {
				case c.link == "" && ran && told.loud+told.appeared == "":
					t.Errorf("what it put there runs, and is not told; it %v", changes(before, controlled(v.work)))
				case c.link != "" && !ran:
					t.Errorf("a file that git writes cannot be written: %q", told)
				case c.link != "" && !strings.Contains(told.appeared, c.link):
					t.Errorf("it is told without the name of the link: %q", told)
				}
			})
		})
	}
}

// A link in place of .wf leads to what wf acts on.
func TestF404ALinkInPlaceOfWF(t *testing.T) {
	for name, line := range map[string]string{
		"written":  `echo evil > settings/config.yaml`,
		"moved":    `mv settings s; mkdir settings; echo evil > settings/config.yaml`,
		"replaced": `rm .wf; mkdir .wf; echo evil > .wf/config.yaml`,
		// Numbers of inodes come again on most file systems.
		"replaced by one of its number": `n=$(stat -c %i .wf); rm .wf; mkdir $(seq -f x%g 1 500); d=$(ls -di x* | sed -n "s/^ *$n //p"); mv ${d:-x1} .wf; rmdir x*; echo evil > .wf/config.yaml`,
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s stage) {
				v := newVictim(t, s, `mkdir settings && echo "model: x" > settings/config.yaml && ln -s settings .wf`)
				v.attack(`true`)
				told := v.attack(line)
				if b, err := os.ReadFile(filepath.Join(v.work, ".wf/config.yaml")); (err != nil || string(b) != "model: x\n") && told.loud+told.appeared == "" {
					t.Errorf("the config is %q (%v), and that is not told", b, err)
				}
			})
		})
	}
}

// git works across a hook that it has in its index and that a link leads to, and which differs between branches; each change of it
// is told.
func TestGitWorksAcrossALinkedHook(t *testing.T) {
	const same = `test -z "$(git status --porcelain)" && test -x "$(git rev-parse --git-path hooks)/pre-commit"`
	onEach(t, func(t *testing.T, s stage) {
		v := newVictim(t, s,
			`mkdir .git/hooks scripts && printf '#!/bin/sh\nexit 0\n# one\n' > scripts/pre-commit && chmod 755 scripts/pre-commit && ln -s ../../scripts/pre-commit .git/hooks/pre-commit`,
			`git init -q --bare origin && git clone -q origin ../seed 2>/dev/null && git -C ../seed commit -q --allow-empty -m o && git -C ../seed push -q && git submodule add -q ./origin lib`,
			`printf 'tree\norigin\n' > .gitignore && git add -A . && git commit -q -m hook && git submodule deinit -q -f lib && rm -rf .git/modules && git submodule init -q`,
			`git switch -q -c other && sed -i 's/one/two/' scripts/pre-commit && git commit -q -a -m two && git switch -q main && echo y > file && git commit -q -a -m three`)
		v.policy.Environ = append(v.policy.Environ, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=protocol.file.allow", "GIT_CONFIG_VALUE_0=always")
		for _, c := range []struct{ line, link string }{
			{`git switch -q other && grep -q two scripts/pre-commit`, ".git/hooks/pre-commit"},
			{`git switch -q main && grep -q one scripts/pre-commit`, ".git/hooks/pre-commit"},
			{`echo '# more' >> scripts/pre-commit && git stash push -q && ! grep -q more scripts/pre-commit`, ""},
			{`git stash pop -q && grep -q more scripts/pre-commit && git checkout -q scripts/pre-commit`, ""},
			{`echo '# more' >> scripts/pre-commit && git stash push -q && git stash pop -q && git commit -q -a -m more`, ".git/hooks/pre-commit"},
			{`git reset -q --hard HEAD~1 && ! grep -q more scripts/pre-commit`, ".git/hooks/pre-commit"},
			{`git worktree add -q tree other && grep -q two tree/scripts/pre-commit && git -C tree commit -q --allow-empty -m tree`, ""},
			{`git switch -q -c copy && git merge -q -m merged other && grep -q two scripts/pre-commit`, ".git/hooks/pre-commit"},
			{`git switch -q main && git rebase -q other && grep -q two scripts/pre-commit && git checkout -q HEAD~1 -- scripts/pre-commit && git checkout -q HEAD -- scripts/pre-commit`, ""},
			{`git submodule update -q && test -e lib/.git && git -C lib log -1 --format=%s`, ""},
		} {
			told := v.told(c.line + ` && ` + same)
			if !strings.Contains(told.String(), c.link) {
				t.Errorf("%s: it is told %q, want the name of %s", c.line, told, c.link)
			}
		}
	})
}

// What sets up hooks ends: it has, or it says why not.
func TestInstallersOfHooksEnd(t *testing.T) {
	for name, line := range map[string]string{
		"husky":    `git config core.hooksPath .husky/_ && mkdir -p .husky/_ && echo 'exit 0' > .husky/_/h && echo 'true' > .husky/pre-commit`,
		"lefthook": `d=$(git rev-parse --git-path hooks) && mkdir -p "$d" && printf '#!/bin/sh\nexit 0\n' > "$d/pre-commit" && chmod 755 "$d/pre-commit"`,
		"again":    `git config core.hooksPath .husky/_ && echo 'exit 1' > .husky/_/h; rm -f .git/hooks/pre-commit && ln -s ../../h .git/hooks/pre-commit`,
	} {
		for _, before := range []string{`true`, `mkdir .git/hooks && echo > .git/hooks/sample`, `git config core.hooksPath .husky/_ && mkdir -p .husky/_ && echo > .husky/_/h`, `mkdir h && ln -s ../h .git/hooks`} {
			t.Run(name, func(t *testing.T) {
				onEach(t, func(t *testing.T, s stage) {
					v := newVictim(t, s, before)
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					var errs bytes.Buffer
					code, err := v.run(ctx, v.policy, []string{"sh", "-c", line}, nil, &errs)
					if err != nil || code != 0 && strings.TrimSpace(errs.String()) == "" {
						t.Errorf("after %s: exit %d, %v, without a word", before, code, err)
					}
					v.works(`git status`)
				})
			})
		}
	}
}

// Tests leave directories that nobody can read or write. They disturb no later command, and are theirs to remove.
func TestDirectoriesWithoutModesDisturbNobody(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		v := newVictim(t, s, `git init -q vendor/x`)
		for _, mode := range []string{"0", "111", "555", "444", "311"} {
			left := v.attack(fmt.Sprintf(`mkdir -p out/d/e out/empty cache/v && echo x > out/d/f && echo x > cache/v/f && chmod %s out/d/f out/d out/empty cache/v`, mode))
			if left.loud != "" || left.appeared != "" {
				t.Errorf("mode %s: it is told %q", mode, left)
			}
			v.works(`test -d out/d && git status >/dev/null && git commit -q --allow-empty -m more && git -C vendor/x status >/dev/null`)
			v.works(`rmdir out/empty && mv out moved && chmod 755 moved/d && rm -rf moved && chmod 755 cache/v && rm -r cache && test ! -e moved`)
		}
		v.works(`i=0; while [ $i -lt 300 ]; do mkdir -p many/$i; chmod 0 many/$i; i=$((i+1)); done`)
		v.works(`rmdir many/* && rmdir many`)
	})
}
