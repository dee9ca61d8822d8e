package appear_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wf/protocol"
	"wf/roles/workspace/appear"
	"wf/roles/workspace/control"
)

// A place is a workspace in which things appear.
type place struct {
	t    testing.TB
	root string
}

func newPlace(t testing.TB) place {
	t.Helper()
	return place{t: t, root: t.TempDir()}
}

func (p place) watch() *appear.Watch {
	p.t.Helper()
	w, err := appear.Of(p.root)
	if err != nil {
		p.t.Fatal(err)
	}
	return w
}

func (p place) write(path, content string) {
	p.t.Helper()
	path = filepath.Join(p.root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p place) mkdir(paths ...string) {
	p.t.Helper()
	for _, path := range paths {
		if err := os.MkdirAll(filepath.Join(p.root, path), 0o755); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p place) repository(dir, config string) {
	p.t.Helper()
	p.mkdir(dir+"/objects", dir+"/refs")
	p.write(dir+"/HEAD", "ref: refs/heads/main\n")
	p.write(dir+"/config", config)
}

// during is what appears while do runs.
func (p place) during(do func()) []string {
	p.t.Helper()
	s := p.watch().Begin()
	do()
	return lines(s.End())
}

func lines(a *protocol.Appeared) []string {
	if a == nil {
		return nil
	}
	var out []string
	for _, f := range a.Found {
		text := string(f.Kind) + " " + f.Path
		if f.Changed {
			text += " changed"
		}
		out = append(out, text)
	}
	if a.More > 0 {
		out = append(out, fmt.Sprint(a.More, " more"))
	}
	if a.Partial {
		out = append(out, "partial")
	}
	return out
}

func (p place) want(got []string, want ...string) {
	p.t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		p.t.Errorf("-want +got\n%s", d)
	}
}

func TestWhatProgramsActOnIsFound(t *testing.T) {
	p := newPlace(t)
	p.repository(".git", "[core]\n\tbare = false\n")
	p.write("a/b/file", "x")
	p.want(p.during(func() {}))
	p.want(p.during(func() { p.write("a/b/other", "x") }))
	p.want(p.during(func() {
		p.repository("a/b/.git", "")
		p.write("a/link/.git", "gitdir: ../../x")
		p.repository("c/d/store", "")
		p.write("c/.envrc", "")
		p.write("e/.wf/config.yaml", "")
		p.write(".vscode/tasks.json", "{}")
		p.write(".idea/runConfigurations/all.xml", "")
		p.write(".vscode/settings.json", "{}")
		p.write("c/linked/HEAD", "ref: refs/heads/main")
		p.write("c/linked/commondir", "../../x")
		p.mkdir("f/.GIT", "g/git~1")
	}), "tasks .idea/runConfigurations/all.xml", "tasks .vscode/tasks.json", "repository a/b/", "gitlink a/link/",
		"envrc c/", "bare c/d/store/", "bare c/linked/", "store e/", "repository f/", "repository g/")
	p.want(p.during(func() {}))
}

func TestAChangeOfAWatchedFileIsFound(t *testing.T) {
	p := newPlace(t)
	p.write("a/.envrc", "x")
	p.write(".vscode/tasks.json", "{}")
	p.want(p.during(func() {}))
	p.want(p.during(func() { p.write("a/.envrc", "y") }), "envrc a/ changed")
	p.want(p.during(func() { p.write(".vscode/tasks.json", "[]") }), "tasks .vscode/tasks.json changed")
}

// mtime can be set by the owner of a directory; its ctime cannot.
func TestATimeThatIsSetBackHidesNothing(t *testing.T) {
	p := newPlace(t)
	p.mkdir("a/b")
	old := time.Now().Add(-time.Hour)
	p.want(p.during(func() {}))
	p.want(p.during(func() {
		p.repository("a/b/.git", "")
		for _, dir := range []string{"a/b/.git", "a/b", "a"} {
			if err := os.Chtimes(filepath.Join(p.root, dir), old, old); err != nil {
				t.Fatal(err)
			}
		}
	}), "repository a/b/")
}

func TestADirectoryInPlaceOfAnotherIsReadAnew(t *testing.T) {
	p := newPlace(t)
	p.repository("a/.git", "")
	p.mkdir("b/deep/er")
	p.want(p.during(func() {}))
	p.want(p.during(func() {
		for _, m := range [][2]string{{"a", "x"}, {"b", "a"}, {"x", "b"}} {
			if err := os.Rename(filepath.Join(p.root, m[0]), filepath.Join(p.root, m[1])); err != nil {
				t.Fatal(err)
			}
		}
		p.write("a/deep/er/.envrc", "")
	}), "envrc a/deep/er/", "repository b/")
}

// What lies behind a link is not looked at, and a link in place of a directory is one.
func TestNoLinkIsFollowed(t *testing.T) {
	p := newPlace(t)
	outside := newPlace(t)
	outside.mkdir("a")
	p.mkdir("dir")
	p.want(p.during(func() {}))
	p.want(p.during(func() {
		outside.repository("a/.git", "")
		outside.repository("bare", "")
		if err := os.Remove(filepath.Join(p.root, "dir")); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"dir", "new", "b/.git", ".vscode"} {
			p.mkdir(filepath.Dir(name))
			if err := os.Symlink(outside.root, filepath.Join(p.root, name)); err != nil {
				t.Fatal(err)
			}
		}
	}), "tasks .vscode", "gitlink b/")
}

func TestWhatAConfigNamesIsFound(t *testing.T) {
	p := newPlace(t)
	p.repository(".git", "[core]\n\thooksPath = .husky/_\n[include]\n\tpath = ../team.gitconfig\n")
	p.write(".husky/_/h", "x")
	p.write(".husky/pre-commit", "x")
	p.repository("sub/.git", "[core]\n\thooksPath = .githooks\n")
	p.want(p.during(func() {}))
	p.want(p.during(func() { p.write(".husky/pre-commit", "evil") }), "hooks .husky changed")
	p.want(p.during(func() { p.write(".husky/pre-push", "evil") }), "hooks .husky changed")
	p.want(p.during(func() { p.write(".husky/_/pre-push", "evil") }), "hooks .husky changed")
	p.want(p.during(func() { p.write("sub/.githooks/pre-commit", "evil") }), "hooks sub/.githooks")
	p.want(p.during(func() { p.write("team.gitconfig", "evil") }), "hooks team.gitconfig")
	p.want(p.during(func() { p.write("sub/.git/config", "[core]\n\thooksPath = here\n") }), "repository sub/ changed")
	p.want(p.during(func() { p.write("sub/here/pre-commit", "evil") }), "hooks sub/here")
	p.want(p.during(func() { p.write("sub/.git/index", "x") }))
}

// What a hook calls git runs as well.
func TestWhatAHookCallsIsFound(t *testing.T) {
	p := newPlace(t)
	p.repository(".git", "[core]\n\thooksPath = .githooks\n")
	p.write("scripts/check.sh", "x")
	p.write("lib/common.sh", "x")
	p.write("tools/run", "x")
	p.write("other.sh", "x")
	p.write(".githooks/pre-commit", "#!/bin/sh\n. \"$(dirname \"$0\")/../lib/common.sh\"\nexec \"$(git rev-parse --show-toplevel)/scripts/check.sh\" --all && ./tools/run;\n")
	p.want(p.during(func() {}))
	p.want(p.during(func() { p.write("scripts/check.sh", "evil") }), "hooks scripts/check.sh changed")
	p.want(p.during(func() { p.write("lib/common.sh", "evil"); p.write("tools/run", "evil") }), "hooks lib/common.sh changed", "hooks tools/run changed")
	p.want(p.during(func() { p.write("other.sh", "evil") }))
	p.want(p.during(func() { p.write("scripts/check.sh", "evil") })) // as it was
	p.repository("x/.git", "")
	p.write("x/tools/hook", "#!/bin/sh\n./tools/called.sh\n")
	p.write("x/tools/called.sh", "x")
	p.mkdir("x/.git/hooks")
	if err := os.Symlink("../../tools/hook", filepath.Join(p.root, "x/.git/hooks/pre-commit")); err != nil {
		t.Fatal(err)
	}
	p.want(p.during(func() {}))
	p.want(p.during(func() { p.write("x/tools/called.sh", "evil") }), "hooks x/tools/called.sh changed")
}

func TestAnUnfinishedRebaseWithCommandsIsFound(t *testing.T) {
	p := newPlace(t)
	p.repository(".git", "")
	p.write(".git/rebase-merge/git-rebase-todo", "pick 1 x\n")
	p.want(p.during(func() {}))
	p.want(p.during(func() { p.write(".git/rebase-merge/git-rebase-todo", "pick 2 exec\n# exec\n") }))
	p.want(p.during(func() { p.write(".git/rebase-merge/git-rebase-todo", "pick 2\n  exec evil\n") }), "rebase the workspace")
	p.want(p.during(func() { p.write(".git/rebase-merge/git-rebase-todo", "pick 2\nexec\tworse\n") }), "rebase the workspace")
	p.want(p.during(func() {
		p.write(".git/rebase-merge/git-rebase-todo", strings.Repeat("# a comment\n", 100_000)+"exec evil\n")
	}), "rebase the workspace")
	p.want(p.during(func() { p.write(".git/worktrees/w/rebase-merge/git-rebase-todo", "x evil\n") }), "rebase the workspace")
}

// One step tells what was found; that others ran at the same time is told with it.
func TestStepsBesideEachOther(t *testing.T) {
	p := newPlace(t)
	w := p.watch()
	a := w.Begin()
	p.repository("a/.git", "")
	b := w.Begin()
	got := b.End()
	p.want(lines(got), "repository a/")
	if got == nil || !got.Beside {
		t.Errorf("it does not say that another step ran: %+v", got)
	}
	p.want(lines(a.End()))
	p.want(lines(a.End()))
	p.want(p.during(func() {}))
}

// Between commands a person works, too.
func TestWhatIsMadeBetweenCommandsIsNotToldOfThem(t *testing.T) {
	p := newPlace(t)
	p.want(p.during(func() {}))
	p.repository("a/.git", "")
	p.want(p.during(func() {}))
	if got := p.watch().Repositories(); len(got) != 1 || got[0].Path != filepath.Join(p.root, "a/.git") {
		t.Errorf("the repositories are %v", got)
	}
	p.want(p.during(func() { p.repository("b/.git", "") }), "repository b/")
	if got := p.watch().Repositories(); len(got) != 1 {
		t.Errorf("one that a command made counts: %v", got)
	}
}

func TestAFloodIsBound(t *testing.T) {
	p := newPlace(t)
	p.want(p.during(func() {}))
	p.want(p.during(func() {
		for i := range 50 {
			p.mkdir(fmt.Sprintf("x/%02d/.git", i))
		}
	})[protocol.FoundMax:], "30 more")
	p.want(p.during(func() { p.mkdir(strings.Repeat("d/", 200) + ".git") }), "partial")
	p.want(p.during(func() { p.mkdir("y/.git") }), "repository y/")
}

// Shallow directories are read before deep ones, so that a flood hides nothing that was made above it.
func TestAFloodOfNamesIsBound(t *testing.T) {
	for name, bound := range map[string][2]int{"directories": {30, 10_000}, "names": {10_000, 100}} {
		appear.Forget()
		p := newPlace(t)
		p.mkdir("a/b", "z")
		appear.Bound(p.watch(), bound[0], bound[1])
		p.want(p.during(func() {}))
		p.want(p.during(func() {
			for i := range 200 {
				p.mkdir(fmt.Sprintf("a/b/%03d", i))
			}
			p.repository("z/.git", "")
		}), "repository z/", "partial")
		if err := os.RemoveAll(filepath.Join(p.root, "a/b")); err != nil {
			t.Fatal(name, err)
		}
		p.want(p.during(func() {}))
		p.want(p.during(func() { p.mkdir("a/c/.git") }), "repository a/c/")
	}
}

// A workspace that is larger than the bound from the start is told once. What is read of it later was there before.
func TestAWorkspaceBeyondTheBound(t *testing.T) {
	p := newPlace(t)
	for i := range 20 {
		p.mkdir(fmt.Sprintf("%02d/.git", i))
	}
	appear.Bound(p.watch(), 1_000, 15)
	p.want(p.during(func() {}), "partial")
	appear.Bound(p.watch(), 1_000, 1_000)
	p.want(p.during(func() {}))
	p.want(p.during(func() { p.mkdir("19/x/.git") }), "repository 19/x/")
}

// A directory that its owner cannot read is opened: its mode would be given back by who hid something in there. Root reads all.
func TestADirectoryThatCannotBeReadIsOpened(t *testing.T) {
	for _, mode := range []os.FileMode{0, 0o111, 0o444, 0o666} {
		appear.Forget()
		p := newPlace(t)
		p.mkdir("a/known")
		p.want(p.during(func() {}))
		p.want(p.during(func() {
			p.mkdir("a/known/.git", "b/.git")
			for _, dir := range []string{"a", "b"} {
				if err := os.Chmod(filepath.Join(p.root, dir), mode); err != nil {
					t.Fatal(err)
				}
			}
		}), "repository a/known/", "repository b/")
		p.want(p.during(func() {}))
		for _, dir := range []string{"a", "b"} {
			if err := os.Chmod(filepath.Join(p.root, dir), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A server works between its calls, too: what appears then is told with the next one.
func TestWhatAppearsWhileSomethingLastsIsTold(t *testing.T) {
	p := newPlace(t)
	w := p.watch()
	leave := w.Enter()
	w.Begin().End()
	p.repository("a/.git", "")
	p.want(p.during(func() {}), "repository a/")
	p.repository("b/.git", "")
	leave()
	p.want(p.during(func() {}))
	if got := w.Repositories(); len(got) != 2 {
		t.Errorf("the repositories are %v: a person may have made them", got)
	}
}

// Git does not look at such a directory; the user does, by a link.
func TestARepositoryWithinAGitDirectoryIsFound(t *testing.T) {
	p := newPlace(t)
	p.repository(".git", "")
	p.mkdir("src")
	p.want(p.during(func() {}))
	p.want(p.during(func() {
		if err := os.Rename(filepath.Join(p.root, "src"), filepath.Join(p.root, ".git/src")); err != nil {
			t.Fatal(err)
		}
	}), "repository the workspace changed")
	p.want(p.during(func() { p.mkdir(".git/objects/ab", ".git/rebase-merge"); p.write(".git/COMMIT_EDITMSG", "x") }))
}

func TestAConfigThatNamesAFloodOfPathsIsBound(t *testing.T) {
	p := newPlace(t)
	var config strings.Builder
	config.WriteString("[include]\n")
	for i := range 5_000 {
		fmt.Fprintf(&config, "path = ../../files/%d\n", i)
	}
	p.mkdir("sub/.git")
	p.write("sub/.git/config", config.String())
	parts, err := control.At(p.root).Repository(filepath.Join(p.root, "sub"))
	named := slices.DeleteFunc(parts.Places, func(p control.Place) bool { return p.Inner })
	if err != nil || len(named) != 100 || !parts.Cut {
		t.Errorf("%d places, %v, want 100 of more", len(named), err)
	}
	p.write("sub/.git/config", "")
	s := p.watch().Begin()
	p.write("sub/.git/config", config.String())
	if a := s.End(); a == nil || !a.Partial {
		t.Errorf("told: %+v, want that not all was looked at", a)
	}
}

func TestAWorkflowWhereADaemonLooksIsFound(t *testing.T) {
	p := newPlace(t)
	const flow = "wf: 1\nname: x\nroles: {a: {set: {n: 1}}}\n"
	p.write("old.yaml", "kind: Service\n")
	p.write("deep/workflows/old.yml", flow)
	p.want(p.during(func() {}))
	p.want(p.during(func() {
		p.write("nightly.yaml", flow)
		p.write("service.yaml", "kind: Service\n")
		p.write("sub/nightly.yaml", flow) // no daemon looks there unasked
		p.write(".hidden.yaml", flow)
		p.write("workflows/quoted.yml", "# later\n'wf' : 1\n")
		p.write(".github/workflows/ci.yml", "on: push\n")
		p.mkdir("dir.yaml")
	}), "workflow nightly.yaml", "workflow workflows/quoted.yml")
	p.want(p.during(func() {
		p.write("old.yaml", flow)
		p.write("service.yaml", "kind: Deployment\n")
		p.write("deep/workflows/old.yml", flow+"# other\n")
	}), "workflow deep/workflows/old.yml changed", "workflow old.yaml changed")
	p.want(p.during(func() {
		if err := os.Symlink("sub/nightly.yaml", filepath.Join(p.root, "link.yaml")); err != nil {
			t.Fatal(err)
		}
	}), "workflow link.yaml")
	p.want(p.during(func() { // what lies there is served, by names that say nothing of it
		if err := os.Symlink("../sub", filepath.Join(p.root, "deep/elsewhere")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("../sub", filepath.Join(p.root, "sub/workflows")); err != nil {
			t.Fatal(err)
		}
	}), "workflow sub/workflows")
	p.want(p.during(func() {
		for i := range 300 {
			p.write(fmt.Sprintf("workflows/%03d.yaml", i), "a: 1\n")
		}
	}))
}

// What a link of the user leads to is looked at as a whole, up to 10,000 files; that there are more is told.
func TestWhatALinkLeadsToIsLookedAtAsAWhole(t *testing.T) {
	p, there := newPlace(t), 0
	file := func(i int) string { return filepath.Join(p.root, fmt.Sprintf("flows/%05d.yaml", i)) }
	fill := func(path string, n int) {
		if err := os.WriteFile(path, fmt.Appendf(nil, "wf: %d\n", n), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p.mkdir("flows")
	if err := os.Symlink("flows", filepath.Join(p.root, "workflows")); err != nil {
		t.Fatal(err)
	}
	for _, files := range []int{1, 301, 10_000, 10_001} {
		for ; there < files; there++ {
			fill(file(there), 0)
		}
		p.watch().Look()
		want := []string{"workflow workflows changed"}
		if files > 10_000 {
			want = []string{"partial"}
		}
		for n, i := range []int{0, files / 2, files - 1} {
			p.want(p.during(func() { fill(file(i), files+n) }), want...)
			if files > 10_000 {
				want = nil // it is told once
			}
		}
	}
}

// More than 500 links are not followed, and that is told.
func TestManyLinksOfEditorsAreTold(t *testing.T) {
	p := newPlace(t)
	p.write("real", "wf: 1\n")
	for i := range 501 {
		if err := os.Symlink("real", filepath.Join(p.root, fmt.Sprintf("%03d.yaml", i))); err != nil {
			t.Fatal(err)
		}
		if i < 499 {
			continue
		}
		if p.watch().Look(); p.watch().Partial() != (i == 500) {
			t.Errorf("%d links: %v", i+1, p.watch().Partial())
		}
	}
}

// Many links can lead to the same files: what one look reads of all of them has a bound, and beyond it that is told.
func TestWhatAllLinksLeadToHasABound(t *testing.T) {
	for _, test := range []struct {
		name           string
		files, size    int // of what the links lead to
		links, tooMany int
	}{
		{"names", 9_000, 1, 3, 4},
		{"bytes", 1, 1 << 20, 256, 257},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPlace(t)
			p.mkdir("real")
			text := strings.Repeat("x", test.size)
			for i := range test.files {
				p.write(fmt.Sprintf("real/%05d", i), text)
			}
			for i := range test.tooMany {
				if err := os.Symlink("real", filepath.Join(p.root, fmt.Sprintf("%03d.yaml", i))); err != nil {
					t.Fatal(err)
				}
				if n := i + 1; n < test.links {
					continue
				}
				if p.watch().Look(); p.watch().Partial() != (i+1 == test.tooMany) {
					t.Errorf("%d links: %v", i+1, p.watch().Partial())
				}
			}
		})
	}
}

// A rebase is found in each of 1,000 worktrees of a repository; that there are more is told.
func TestManyWorktreesAreTold(t *testing.T) {
	p := newPlace(t)
	p.mkdir(".git/objects")
	p.mkdir(".git/refs")
	p.write(".git/HEAD", "ref: refs/heads/main\n")
	for i := range 1_001 {
		p.mkdir(fmt.Sprintf(".git/worktrees/%04d", i))
		if i < 999 {
			continue
		}
		if p.watch().Look(); p.watch().Partial() != (i == 1_000) {
			t.Errorf("%d worktrees: %v", i+1, p.watch().Partial())
		}
	}
}
