package sandbox_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"wf/agentkit/sandbox"
	"wf/protocol"
	"wf/roles/workspace/workspacetest"
)

// What a command of an agent leaves behind acts when the user works on: git runs hooks and what its settings name. The cases
// here are what a command can put into each place of control, or do to what the user has there, with modes that keep others
// from looking.

// The kinds of what lies at a place.
const (
	aDirectory = "directory"
	aFile      = "file"
	aFileLink  = "link to a file"
	aDirLink   = "link to a directory"
	aFifo      = "fifo"
	aSocket    = "socket" // on which nobody listens any more
	nothing    = "nothing"
)

// Who acts behind the first command.
const (
	byCommit = "a commit of the user"             // with the modes that the command has set
	byStatus = "git status and commit"            // once the user has given modes back
	byNext   = "the next command, then git again" // which gives modes back, and takes the place over
)

// A control is a place that says what git or wf do.
type control struct {
	path string // from the workspace
	top  string // where the user works
	puts string // the function of attackTools that makes it act
	// What a user may well have there, and what a command could put there where there is nothing.
	users, commands []string
}

var controls = []control{
	{".git", ".", "whole", []string{aDirectory, aFile, aDirLink, aFileLink}, []string{aDirectory, aFile, aDirLink, aFifo, aSocket}},
	{".git/hooks", ".", "hooks", []string{aDirectory, aDirLink, nothing}, []string{aDirectory, aFile, aDirLink, aFifo, aSocket}},
	{".git/hooks/pre-commit", ".", "hook", []string{aFile, aFileLink, nothing}, []string{aDirectory, aFile, aFileLink, aFifo, aSocket}},
	{".git/config", ".", "config", []string{aFile, aFileLink, nothing}, []string{aDirectory, aFile, aFileLink, aFifo, aSocket}},
	{".git/commondir", ".", "common", []string{nothing}, []string{aDirectory, aFile, aFileLink, aFifo, aSocket}},
	{".wf", ".", "store", []string{aDirectory, aDirLink, nothing}, []string{aDirectory, aFile, aDirLink, aFifo, aSocket}},
	{".wf/config.yaml", ".", "yaml", []string{aFile, aFileLink, nothing}, []string{aDirectory, aFile, aFileLink, aFifo, aSocket}},
	{"vendor/x/.git/config", "vendor/x", "config", []string{aFile, aFileLink, nothing}, []string{aFile, aFileLink, aFifo}},
	{".git/modules/sub/hooks", "sub", "hooks", []string{aDirectory, aDirLink, nothing}, []string{aDirectory, aFile, aDirLink, aFifo}},
	{"tools/husky/pre-commit", ".", "hook", []string{aFile, aFileLink, nothing}, []string{aDirectory, aFile, aFileLink, aFifo}},
	{".vscode", ".", "vscode", []string{aDirectory, aDirLink, nothing}, []string{aDirectory, aDirLink}},
	{".idea/runConfigurations", ".", "idea", []string{aDirectory, aDirLink, nothing}, []string{aDirectory, aDirLink}},
	{".vscode/tasks.json", ".", "acts", []string{aFile, aFileLink, nothing}, []string{aDirectory, aFile, aFileLink, aFifo}},
	{".idea/runConfigurations/all.xml", ".", "acts", []string{aFile, aFileLink, nothing}, []string{aFile, aFileLink}},
	{".envrc", ".", "acts", []string{aFile, aFileLink, nothing}, []string{aDirectory, aFile, aFileLink, aFifo, aSocket}},
	{"nightly.yaml", ".", "acts", []string{aFile, aFileLink, nothing}, []string{aDirectory, aFile, aFileLink, aFifo}},
	{"workflows", ".", "flows", []string{aDirectory, aDirLink, nothing}, []string{aDirectory, aDirLink}},
	{"workflows/nightly.yaml", ".", "acts", []string{aFile, aFileLink, nothing}, []string{aDirectory, aFile, aFileLink, aFifo, aSocket}},
}

// told are those of them that git does not act on: editors, shells and the clock of wf serve do. They can be written, and are told.
func (at control) told() bool {
	return slices.Contains([]string{"vscode", "idea", "flows", "acts"}, at.puts)
}

// holdsOthers reports whether a directory there holds what acts.
func (at control) holdsOthers() bool {
	return slices.Contains([]string{"hooks", "store", "vscode", "idea", "flows"}, at.puts)
}

// A leftBehind is one case.
type leftBehind struct {
	control
	kind string
	own  bool   // the user has it there, and no command has put it there
	mode string // that the first command sets
	of   string // the path whose mode it is; "" is none
	then string
}

func (c leftBehind) String() string {
	who, mode := "a command's", "modes as they are"
	if c.own {
		who = "the user's"
	}
	if c.of != "" {
		mode = c.mode + " on " + c.of
	}
	return fmt.Sprintf("%s: %s %s, %s, then %s", c.path, who, c.kind, mode, c.then)
}

// leftBehinds are the cases. Left out is what shares its way through the code with another one:
//   - links, fifos and sockets have no mode that anybody asks for, and what a command puts in place of a file and that can do
//     nothing, such as a directory, is of interest to the next command alone
//   - with 0111 and 0555 git works, so that no user gives them back
//   - without modes a second command does to what is the user's what the first could do
//   - all modes are one to root
func leftBehinds() (all []leftBehind) {
	root := os.Geteuid() == 0
	for _, at := range controls {
		around, top := filepath.Dir(at.path), strings.Split(at.path, "/")[0]
		add := func(kind string, own bool, mode, of string, thens ...string) {
			idle := kind == nothing || kind == aFifo || kind == aSocket || kind == aDirectory && at.puts != "whole" && !at.holdsOthers()
			for _, then := range thens {
				if idle && then != byNext || root && mode != "0755" && (mode != "0000" || of != around) {
					continue
				}
				all = append(all, leftBehind{at, kind, own, mode, of, then})
			}
		}
		for _, kind := range at.users {
			if kind != nothing {
				add(kind, true, "0755", "", byCommit)
			}
			add(kind, true, "0000", around, byStatus, byNext)
			add(kind, true, "0111", around, byCommit, byNext)
			add(kind, true, "0555", around, byNext)
			if kind == aDirectory || kind == aFile {
				add(kind, true, "0000", at.path, byStatus, byNext)
				add(kind, true, "0555", at.path, byNext)
			}
			if top != around && around != "." {
				add(kind, true, "0000", top, byNext)
			}
			if around != "." {
				add(kind, true, "0000", ".", byNext)
			}
		}
		for _, kind := range at.commands {
			add(kind, false, "0755", "", byCommit, byNext)
			add(kind, false, "0000", around, byStatus, byNext)
			if kind == aFifo || kind == aSocket {
				continue
			}
			add(kind, false, "0111", around, byCommit)
			add(kind, false, "0555", around, byCommit, byNext)
			if kind == aDirectory || kind == aFile {
				add(kind, false, "0000", at.path, byStatus, byNext)
				add(kind, false, "0111", at.path, byCommit)
				add(kind, false, "0555", at.path, byCommit)
			}
		}
	}
	return all
}

// keeps reports whether it is not enough that Policy.Appeared tells of it: what the user has stays as it is, and what a command puts
// into a repository or a .wf of the user is gone. Told are a new repository, a new .wf, new hooks where a config names some, a
// config where there was none, and a link that is replaced, since there are no mounts on links.
func (c leftBehind) keeps() bool {
	switch {
	case c.told():
		return false
	case c.own && (c.kind == aDirLink || c.kind == aFileLink):
		return c.puts == "hook" || c.puts == "yaml" // it lies in a directory that is read-only
	case c.own && c.kind != nothing:
		return true
	}
	return c.path != ".git" && c.path != ".wf" && c.puts != "config" && !strings.HasPrefix(c.path, "tools/")
}

// attackTools are functions of a shell. Each makes a path act on the user's next git; what stands in its way is written to, put
// aside or removed. Nothing of it is told as something else: ../aside/common would be a repository if it had a HEAD.
const attackTools = `
cd "$WORK" 2>/dev/null
replace() { # NEW PATH
	mkdir -p "$(dirname "$2")"
	[ -f "$2" ] && cat "$1" > "$2" && return
	[ ! -d "$2" ] && mv -f "$1" "$2" && return
	rm -rf "$2"; mv -T "$1" "$2" && return
	d=$(dirname "$2"); cp -r "$d" aside/was && mv "$d" aside/old && mv -T aside/was "$d" && rm -rf "$2" && mv -T "$1" "$2"
	rm -rf aside/was aside/old
}
new() { mkdir -p aside; rm -rf aside/new; echo aside/new; }
hook() { n=$(new); printf '#!/bin/sh\necho > "%s"\n' "$CANARY" > $n; chmod 755 $n; replace $n "$1"; }
hooks() { [ -d "$1" ] || rm -f "$1"; mkdir -p "$1"; hook "$1/pre-commit"; }
lines() { printf '\n[core]\n\tfsmonitor = "echo > \\"%s\\";:"\n' "$CANARY"; }
config() { n=$(new); [ -f "$1" ] && cat "$1" > $n; lines >> $n; replace $n "$1"; }
common() {
	mkdir -p aside/common; cp -r .git/objects .git/refs .git/config aside/common/; lines >> aside/common/config
	n=$(new); echo ../aside/common > $n; replace $n "$1"
}
whole() { # also by a repository where nobody looks
	if [ -d "$1" ]; then config "$1/config"; hooks "$1/hooks"; fi
	[ -d "$1" ] && [ ! -L "$1" ] && return
	git init -q --template= "$HOME/whole"; config "$HOME/whole/.git/config"
	n=$(new); echo "gitdir: $HOME/whole/.git" > $n; rm -f "$1"; replace $n "$1"
}
yaml() { n=$(new); echo 'model: evil' > $n; replace $n "$1"; }
acts() { n=$(new); printf '# evil\nwf: 1\nname: nightly\non: {schedule: "* * * * *"}\nroles: {a: {set: {x: 1}}}\n' > $n; replace $n "$1"; }
vscode() { [ -d "$1" ] || rm -f "$1"; mkdir -p "$1"; acts "$1/tasks.json"; }
idea() { [ -d "$1" ] || rm -f "$1"; mkdir -p "$1"; acts "$1/all.xml"; }
flows() { [ -d "$1" ] || rm -f "$1"; mkdir -p "$1"; acts "$1/nightly.yaml"; }
store() { [ -d "$1" ] && yaml "$1/config.yaml"; [ -d "$1" ] && [ ! -L "$1" ] || rm -f "$1"; mkdir -p "$1"; yaml "$1/config.yaml"; }
`

// aside is a path beside all that controls, from the directory of the place.
func (c leftBehind) aside(name string) string {
	return strings.Repeat("../", strings.Count(c.path, "/")) + "aside/" + name
}

// first is the first command: it puts something there, unless the user has, and sets a mode.
func (c leftBehind) first() string {
	line := attackTools + `mkdir -p "$(dirname "$P")"; `
	act := c.puts + ` "$P"; `
	switch {
	case c.own && c.then == byNext:
	case c.own:
		line += act
	case c.kind == aDirectory && c.path == ".git":
		line += `git init -q --template= .; ` + act
	case c.kind == aDirectory:
		line += `mkdir -p "$P"; `
		if c.holdsOthers() {
			line += act
		}
	case c.kind == aFile && c.holdsOthers():
		line += `echo > "$P"; `
	case c.kind == aFile:
		line += act
	case c.kind == aDirLink && c.path == ".git":
		line += `git init -q --template= aside/x; mv aside/x/.git aside/linked; config aside/linked/config; ln -s aside/linked .git; `
	case c.kind == aDirLink, c.kind == aFileLink:
		line += c.puts + ` aside/linked; ln -s ` + c.aside("linked") + ` "$P"; `
	case c.kind == aFifo:
		line += `mkfifo "$P"; `
	case c.kind == aSocket:
		line += `mv ended "$P"; `
	}
	if c.of != "" {
		line += fmt.Sprintf(`chmod %s "$WORK/%s"; `, c.mode, c.of)
	}
	return line
}

// second is the second command: it gives modes back, from the top, and has the place act.
func (c leftBehind) second() string {
	line := ""
	for at := c.path; at != "."; at = filepath.Dir(at) {
		line = fmt.Sprintf(`chmod u+rwx "$WORK/%s"; `, at) + line
	}
	return `chmod u+rwx "$WORK"; ` + line + attackTools + `rm -f ended; ` + c.puts + ` "$P"; true`
}

// before is how the user has made the workspace, from a copy of a template.
func (c leftBehind) before() string {
	line := `set -e; cd "$WORK"; mkdir -p "$(dirname "$P")"; `
	switch c.puts {
	case "store":
		line += `mkdir .wf; echo "model: x" > .wf/config.yaml; `
	case "yaml":
		line += `echo "model: x" > .wf/config.yaml; echo > .wf/other; `
	case "vscode":
		line += `mkdir .vscode; echo {} > .vscode/tasks.json; `
	case "idea":
		line += `mkdir -p "$P"; echo "<component/>" > "$P/all.xml"; `
	case "flows":
		line += `mkdir workflows; echo "wf: 1" > workflows/nightly.yaml; `
	case "acts":
		line += `printf 'wf: 1\nname: nightly\n' > "$P"; `
	case "hook":
		line += `printf '#!/bin/sh\nexit 0\n' > "$P"; chmod 755 "$P"; `
	}
	if strings.HasPrefix(c.path, "tools/") {
		line += `git config core.hooksPath tools/husky; `
	}
	link := fmt.Sprintf(`ln -s %s "$P"; `, c.aside("of-the-user"))
	switch {
	case !c.own || c.kind == nothing:
		line += `rm -rf "$P"; [ "$P" != tools/husky/pre-commit ] || rm -r tools; `
	case c.path == ".git" && c.kind == aFile:
		line += `mkdir aside; mv .git aside/git; echo "gitdir: aside/git" > .git; `
	case c.path == ".git" && c.kind == aFileLink:
		line += `mkdir aside; mv .git aside/git; echo "gitdir: $WORK/aside/git" > aside/of-the-user; ` + link
	case c.kind == aDirLink, c.kind == aFileLink:
		line += `mkdir aside; mv "$P" aside/of-the-user; ` + link
	}
	return line
}

// told is what a command told: loudly by an error or a line of its output, else by Policy.Appeared; and that output.
type told struct{ loud, appeared, out string }

// A confine runs a command line in a workspace.
type confine func(ctx context.Context, env []string, work, line string) told

// play plays a case, and says what is wrong; "" is nothing.
func (c leftBehind) play(ctx context.Context, dir, template string, run confine) string {
	work, canary := filepath.Join(dir, "work"), filepath.Join(dir, "canary")
	env := append(slices.Clone(gitUser), "WORK="+work, "CANARY="+canary, "P="+c.path)
	if err := os.CopyFS(work, os.DirFS(template)); err != nil {
		return err.Error()
	}
	if out, err := unconfined(ctx, env, work, "sh", "-c", c.before()); err != nil {
		return fmt.Sprintf("prepare: %v: %s", err, out)
	}
	if c.kind == aSocket {
		if err := endedSocket(filepath.Join(work, "ended")); err != nil {
			return err.Error()
		}
	}
	before := controlled(work)
	all := run(ctx, env, work, c.first())
	if c.then == byNext {
		also := run(ctx, env, work, c.second())
		all.loud, all.appeared = all.loud+also.loud, all.appeared+also.appeared
	}
	switch {
	case ctx.Err() != nil:
		return "a command hangs"
	case all.loud != "" || all.appeared != "" && !c.keeps():
		return ""
	}
	if c.then != byCommit {
		giveBack(work)
		_, _ = unconfined(ctx, env, filepath.Join(work, c.top), "git", "status") // what it does counts, and not whether it can
	}
	_, _ = unconfined(ctx, env, filepath.Join(work, c.top), "git", "commit", "-q", "--allow-empty", "-m", "two")
	giveBack(work)
	wrong := changes(before, controlled(work))
	if _, err := os.Lstat(canary); err == nil {
		wrong = append(wrong, "what it left runs")
	}
	if ctx.Err() != nil {
		wrong = append(wrong, "git of the user hangs")
	}
	if all.appeared != "" && len(wrong) > 0 {
		wrong = append(wrong, "told: "+all.appeared)
	}
	return strings.Join(wrong, ", ")
}

// changes tells how what controls a workspace has changed.
func changes(before, after map[string]string) (wrong []string) {
	for path, was := range before {
		if after[path] != was {
			wrong = append(wrong, "changed "+path)
		}
	}
	for path, is := range after {
		if _, there := before[path]; !there && is != aDirectory && !strings.HasPrefix(path, "aside/") {
			wrong = append(wrong, "left "+path)
		}
	}
	slices.Sort(wrong)
	return wrong
}

func unconfined(ctx context.Context, env []string, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, append(os.Environ(), env...), time.Second
	return cmd.CombinedOutput()
}

func endedSocket(path string) error {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false)
	return l.Close()
}

// giveBack gives modes back, as a user does who cannot read files of his own.
func giveBack(dir string) {
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && (e.IsDir() || e.Type().IsRegular()) {
			_ = os.Chmod(path, 0o755) // an error shows as a difference
		}
		return nil
	})
}

// controlled is what says in a workspace what git and wf do, by its path.
func controlled(work string) map[string]string {
	out := map[string]string{}
	_ = filepath.WalkDir(work, func(path string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(work, path) // both are absolute
		top := strings.Split(rel, "/")[0]
		if err != nil || !strings.Contains(rel, ".git") && !slices.Contains([]string{".wf", "tools", "aside", ".vscode", ".idea", ".envrc", "workflows", "nightly.yaml"}, top) {
			return nil
		}
		if strings.Contains(filepath.Base(path), ".removed") { // moved aside, under a name that git does not know
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		switch filepath.Base(path) { // what changes with each commit
		case "objects", "refs", "logs":
			return fs.SkipDir
		case "index", "HEAD", "COMMIT_EDITMSG":
			return nil
		}
		var content string
		switch {
		case e.IsDir():
			content = aDirectory
		case e.Type().IsRegular():
			b, _ := os.ReadFile(path) // modes are given back
			content = string(b)
		default:
			to, _ := os.Readlink(path) // of a link
			content = e.Type().String() + to
		}
		out[rel] = content
		return nil
	})
	return out
}

// A bench is where cases are played, one beside the other.
type bench struct {
	stage
	templates map[string]string // by where the user works
}

// newBench makes a workspace to copy for each directory in which users work.
func newBench(t *testing.T) bench {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	if tier := sandbox.Probe(); !tier.Namespaces {
		t.Skip("no namespaces here: ", tier)
	}
	b := bench{newStage(t, sandbox.Run, true), map[string]string{}}
	for i, top := range []string{".", "vendor/x", "sub"} {
		s := b.stage
		s.work = filepath.Join(b.outside, fmt.Sprint(i))
		s.write(filepath.Join(s.work, "file"), "x")
		s.git("", "init", "-q", "--template=", ".")
		s.git("", "add", "file")
		switch top {
		case "vendor/x":
			s.git("", "init", "-q", "--template=", top)
			s.git(top, "commit", "-q", "--allow-empty", "-m", "one")
		case "sub":
			s.git("", "init", "-q", "--template=", "../origin")
			s.git("../origin", "commit", "-q", "--allow-empty", "-m", "one")
			s.git("", "-c", "init.templateDir=", "submodule", "add", "-q", "../origin", "sub")
		}
		s.git("", "commit", "-q", "-m", "one")
		for _, git := range []string{".git", "vendor/x/.git", ".git/modules/sub"} {
			if s.exists(filepath.Join(s.work, git)) {
				s.write(filepath.Join(s.work, git, "hooks/sample"), "#")
			}
		}
		b.templates[top] = s.work
	}
	return b
}

// confined runs a command of an agent, which may well be refused.
func (s stage) confined(ctx context.Context, env []string, work, line string) (said told) {
	p := s.policy
	p.Workspace, p.Environ = work, slices.Concat(p.Environ, env)
	p.Appeared = func(a *protocol.Appeared) {
		if len(a.Found) > 0 || a.Unprotected > 0 { // that not all was looked at says nothing of it
			said.appeared += a.String() + "\n"
		}
	}
	var out bytes.Buffer
	if _, err := s.run(ctx, p, []string{"sh", "-c", line}, &out, &out); err != nil {
		said.loud = err.Error() + "\n"
	}
	said.out = out.String()
	for text := range strings.Lines(said.out) {
		if strings.HasPrefix(text, "[sandbox:") {
			said.loud += text
		}
	}
	return said
}

// playAll plays cases, some at a time, and says what is wrong with each.
func (b bench) playAll(t *testing.T, cases []leftBehind, run confine) []string {
	wrong := make([]string, len(cases))
	todo := make(chan int)
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for i := range todo {
				dir := filepath.Join(b.work, fmt.Sprint(i))
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				ended := make(chan string, 1)
				go func() { ended <- cases[i].play(ctx, dir, b.templates[cases[i].top], run) }()
				select {
				case wrong[i] = <-ended:
				case <-ctx.Done():
					wrong[i] = "it hangs"
				}
				cancel()
				giveBack(dir)
				_ = os.RemoveAll(dir) // the stage tells of what is left
			}
		})
	}
	for i := range cases {
		todo <- i
	}
	close(todo)
	wait.Wait()
	return wrong
}

// Nothing that commands leave behind acts when the user works on, and nothing of the user's is changed, unless that is told.
func TestNothingThatActsIsLeftBehind(t *testing.T) {
	b := newBench(t)
	cases := leftBehinds()
	if testing.Short() {
		n := 0
		cases = slices.DeleteFunc(cases, func(leftBehind) bool { n++; return n%10 != 1 })
	}
	t.Log(len(cases), " cases")
	for i, wrong := range b.playAll(t, cases, b.confined) {
		if wrong != "" {
			t.Errorf("%s: %s", cases[i], wrong)
		}
	}
}

// The same as a user, whom modes keep from looking.
func TestNothingThatActsIsLeftBehindByAUser(t *testing.T) {
	if testing.Short() {
		t.Skip("the same cases once more")
	}
	workspacetest.Unprivileged(t, "TestNothingThatActsIsLeftBehind", "-test.run=^TestNothingThatActsIsLeftBehind$")
}

// Without walls the attacks of these cases do harm.
func TestWhatIsLeftBehindHarmsWithoutWalls(t *testing.T) {
	b := newBench(t)
	cases := slices.DeleteFunc(leftBehinds(), func(c leftBehind) bool {
		return c.of != ""
	})
	for i, wrong := range b.playAll(t, cases, func(ctx context.Context, env []string, work, line string) told {
		_, _ = unconfined(ctx, env, filepath.Dir(work), "sh", "-c", line) // what it does counts, and not whether it can
		return told{}
	}) {
		if wrong == "" {
			t.Errorf("%s: it does nothing", cases[i])
		}
	}
}
