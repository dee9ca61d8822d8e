package control

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A stage is a workspace.
type stage struct {
	t    testing.TB
	root string
}

func newStage(t testing.TB) stage {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return stage{t, root}
}

func (s stage) path(name string) string { return filepath.Join(s.root, name) }

func (s stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s stage) write(name, content string) {
	s.t.Helper()
	s.must(os.MkdirAll(filepath.Dir(s.path(name)), 0o755))
	s.must(os.WriteFile(s.path(name), []byte(content), 0o644))
}

func (s stage) link(name, to string) {
	s.t.Helper()
	s.must(os.MkdirAll(filepath.Dir(s.path(name)), 0o755))
	s.must(os.Symlink(to, s.path(name)))
}

// git runs git as it is installed, without the settings of whoever runs the test.
func (s stage) git(args ...string) string {
	s.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = s.root
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.root, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func needsGit(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
}

// The way of a path is the one that the kernel goes.
func TestTheWayByLinksIsThatOfTheKernel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		top, err := os.MkdirTemp("", "wf-control-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(top)
		if top, err = filepath.EvalSymlinks(top); err != nil {
			t.Fatal(err)
		}
		names := []string{"a", "b", "c", "d"}
		path := rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(append(names, "..", ".")), 1, 4).Draw(t, "path"), "/")
		})
		for range rapid.IntRange(1, 12).Draw(t, "things") { // some of which cannot be made
			at := filepath.Join(top, path.Draw(t, "at"))
			if !strings.HasPrefix(at, top+"/") {
				continue
			}
			switch rapid.IntRange(0, 3).Draw(t, "thing") {
			case 0:
				_ = os.MkdirAll(at, 0o755)
			case 1:
				_ = os.WriteFile(at, nil, 0o644)
			case 2:
				_ = os.Symlink(path.Draw(t, "to"), at)
			case 3:
				_ = os.Symlink(filepath.Join(top, path.Draw(t, "to")), at)
			}
		}
		asked := top + "/" + path.Draw(t, "asked")
		want, err := filepath.EvalSymlinks(asked)
		got, failed := At(top).Follow(asked)
		if failed != nil {
			t.Fatalf("%s: %v", asked, failed)
		}
		if (err == nil) != got.There || got.There && got.Path != want {
			t.Fatalf("%s leads to %q (there: %t), by the kernel to %q, %v", asked, got.Path, got.There, want, err)
		}
		for _, l := range got.Links {
			if real, err := filepath.EvalSymlinks(filepath.Dir(l.Path)); err != nil || real != filepath.Dir(l.Path) {
				t.Fatalf("the link %s lies behind a link: %q, %v", l.Path, real, err)
			}
		}
	})
}

// Whatever a mode keeps from its owner is found, and what cannot be looked at is an error, never nothing.
func TestWhatAModeHidesIsLookedAt(t *testing.T) {
	for _, mode := range []os.FileMode{0, 0o111, 0o222, 0o444, 0o555, 0o755} {
		s := newStage(t)
		s.write("d/e/file", "text")
		for _, name := range []string{"d/e/file", "d/e", "d"} {
			s.must(os.Chmod(s.path(name), mode))
		}
		e := At(s.root)
		if b, err := e.read(s.path("d/e/file"), 10); err != nil || string(b) != "text" {
			t.Errorf("%o: read %q, %v", mode, b, err)
		}
		if names, all, err := e.Names(s.path("d/e"), 1); err != nil || !all || len(names) != 1 {
			t.Errorf("%o: names %v, %t, %v", mode, names, all, err)
		}
		if _, there, err := e.Lstat(s.path("d/e/none")); there || err != nil {
			t.Errorf("%o: what is not there: %t, %v", mode, there, err)
		}
		s.must(os.Chmod(s.path("d"), 0o700))
		s.must(os.Chmod(s.path("d/e"), 0o700))
		for _, aside := range []string{"e.removed", "e.removed-2"} {
			s.write("d/e/again", "")
			s.must(os.Chmod(s.path("d/e"), mode))
			spot, err := e.Spot(s.path("d/e"))
			s.must(err)
			s.must(os.Chmod(s.path("d"), mode))
			if to, err := e.PutAside(spot); to != aside || err != nil {
				t.Errorf("%o: put aside: %q, %v", mode, to, err)
			}
			if to, err := e.PutAside(spot); to != "" || err != nil {
				t.Errorf("%o: it is there: %q, %v", mode, to, err)
			}
			s.must(os.Chmod(s.path("d"), 0o700))
			e.give(s.path("d/"+aside), true)
		}
	}
}

// However often something is put aside, the first of it stays, and the newest is there.
func TestWhatIsPutAsideHasABound(t *testing.T) {
	s := newStage(t)
	s.write("x/file", "")
	e := At(s.root)
	spot, err := e.Spot(s.path("x/hooks"))
	s.must(err)
	for n := 1; n <= asideMax+50; n++ {
		s.write("x/hooks/n", fmt.Sprint(n))
		to, err := e.PutAside(spot)
		s.must(err)
		if b, err := os.ReadFile(s.path("x/" + to + "/n")); err != nil || string(b) != fmt.Sprint(n) || !IsAside(to) {
			t.Fatalf("%d is in %s: %q, %v", n, to, b, err)
		}
	}
	entries, err := os.ReadDir(s.path("x"))
	s.must(err)
	if len(entries) != asideMax+1 {
		t.Errorf("%d entries", len(entries))
	}
	if b, err := os.ReadFile(s.path("x/hooks.removed/n")); string(b) != "1" {
		t.Errorf("the first is %q, %v", b, err)
	}
	for _, name := range []string{"hooks", "hooks.removedx", "src.removed", "removed", ""} {
		if IsAside(name) {
			t.Errorf("%q is one", name)
		}
	}
}

// What another user keeps from this one, no command changes.
func TestWhatAnotherUserKeepsIsNothing(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root looks at everything")
	}
	s := newStage(t)
	s.link("d", "/root/x")
	if p, err := At(s.root).Follow(s.path("d/y")); err != nil || p.There {
		t.Errorf("%+v, %v", p, err)
	}
	if _, there, err := At("/root").Lstat("/root/x"); there || err != nil { // as if it were a workspace
		t.Errorf("%t, %v", there, err)
	}
}

// A link that a command removed, or put something else in place of, is there again; whatever else happened stays.
func TestALinkIsPutBack(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(s stage, path string)
		did  bool
		gone bool
	}{
		"nothing":      {func(stage, string) {}, false, false},
		"removed":      {func(s stage, path string) { s.must(os.Remove(path)) }, true, false},
		"another link": {func(s stage, path string) { s.must(os.Remove(path)); s.must(os.Symlink("other", path)) }, true, false},
		"a file":       {func(s stage, path string) { s.must(os.Remove(path)); s.must(os.WriteFile(path, nil, 0)) }, true, false},
		"a closed directory": {func(s stage, path string) {
			s.must(os.Remove(path))
			s.must(os.MkdirAll(path+"/a/b", 0o755))
			s.must(os.Chmod(path+"/a", 0))
			s.must(os.Chmod(path, 0o111))
		}, true, false},
		"its directory is closed": {func(s stage, path string) {
			s.must(os.Remove(path))
			s.must(os.Chmod(filepath.Dir(path), 0o555))
		}, true, false},
		"its directory is gone": {func(s stage, path string) { s.must(os.Rename(filepath.Dir(path), s.path("away"))) }, false, true},
		"its directory is a link": {func(s stage, path string) {
			s.must(os.Rename(filepath.Dir(path), s.path("away")))
			s.link(".git", "away")
		}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.link(".git/hooks", "../scripts")
			e := At(s.root)
			spot, err := e.Spot(s.path(".git/hooks"))
			s.must(err)
			c.do(s, s.path(".git/hooks"))
			did, err := e.PutBack(Link{Path: s.path(".git/hooks"), To: "../scripts", at: spot})
			if did != c.did || err != nil {
				t.Errorf("put back: %t, %v", did, err)
			}
			if to, err := os.Readlink(s.path(".git/hooks")); to != "../scripts" && !c.gone {
				t.Errorf("the link is %q, %v", to, err)
			}
			_, err = os.Lstat(s.path(".git/hooks.removed"))
			if kept := strings.HasPrefix(name, "a "); kept != (err == nil) {
				t.Errorf("what was there instead: %v", err)
			}
			e.give(s.path(".git/hooks.removed/a/b"), true)
		})
	}
}

// What lies elsewhere by then is not moved: behind a link, or in another directory of that name.
func TestNothingElsewhereIsMoved(t *testing.T) {
	for name, do := range map[string]func(s, outside stage){
		"a link outside": func(s, outside stage) { s.must(os.Rename(s.path("x"), s.path("y"))); s.link("x", outside.root) },
		"a link inside":  func(s, _ stage) { s.must(os.Rename(s.path("x"), s.path("y"))); s.link("x", "other") },
		"another one": func(s, _ stage) {
			s.must(os.Rename(s.path("x"), s.path("y")))
			s.must(os.Rename(s.path("other"), s.path("x")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, outside := newStage(t), newStage(t)
			outside.write(".git/hooks/pre-commit", "of the user")
			s.write("other/.git/hooks/pre-commit", "of the user")
			s.write("x/.git/HEAD", "ref: refs/heads/main")
			e := At(s.root)
			parts, err := e.Repository(s.path("x"))
			s.must(err)
			do(s, outside)
			for _, spot := range parts.Absent {
				if to, err := e.PutAside(spot); to != "" || err != nil {
					t.Errorf("%s was moved to %q, %v", spot.Path, to, err)
				}
			}
			if _, err := os.Stat(s.path("x/.git/hooks/pre-commit")); err != nil {
				t.Error(err)
			}
		})
	}
}

// A directory that has names as git has, and none that git made, is the project's: nothing in it is moved.
func TestNothingOfAProjectIsAbsent(t *testing.T) {
	s := newStage(t)
	for _, name := range []string{"src/head/x", "src/objects/x", "src/refs/x", "bare/HEAD", "bare/objects/x", "bare/refs/x"} {
		s.write(name, "ref: refs/heads/main\n")
	}
	s.write("bait/.git", "gitdir: ../src\n")
	e := At(s.root)
	for name, look := range map[string]func() (Parts, error){"src": func() (Parts, error) { return e.Bare(s.path("src")) }, "bait": func() (Parts, error) { return e.Repository(s.path("bait")) }} {
		if parts, err := look(); err != nil || len(parts.Absent) > 0 {
			t.Errorf("%s: %+v, %v", name, parts.Absent, err)
		}
	}
	if parts, err := e.Bare(s.path("bare")); err != nil || len(parts.Absent) == 0 {
		t.Errorf("bare: %+v, %v", parts.Absent, err)
	}
}

// What git tracks is read from its index as git itself does, in all of its versions.
func TestWhatIsTrackedIsThatOfGit(t *testing.T) {
	needsGit(t)
	for _, version := range []string{"2", "3", "4"} {
		for _, format := range []string{"sha1", "sha256"} {
			t.Run(version+" "+format, func(t *testing.T) {
				s := newStage(t)
				s.git("init", "-q", "--object-format="+format)
				s.git("config", "index.version", version)
				for i := range 300 {
					s.write(fmt.Sprintf("dir%d/%s/f%d", i%7, strings.Repeat("x", i%40+1), i), "x")
				}
				long := strings.Repeat("d/", 60) + strings.Repeat("n", 200)
				for _, name := range []string{"a", "a b", "ä", "hooks.d/x", "hooks/pre-commit", "hooks-x", long} {
					s.write(name, "x")
				}
				s.git("add", ".")
				s.write("later", "x")
				s.git("add", "-N", "later") // extended flags, in versions from 3
				s.write("untracked/file", "x")
				e := At(s.root)
				listed := strings.Split(strings.TrimSuffix(s.git("ls-files", "-z"), "\x00"), "\x00")
				for _, name := range listed {
					if !e.Tracked(s.path(name)) {
						t.Errorf("%s is tracked", name)
					}
				}
				paths := e.index(s.path(".git/index"))
				if slices.Sort(listed); !slices.Equal(listed, paths) {
					t.Errorf("the index has %d paths, by git %d", len(paths), len(listed))
				}
				for name, want := range map[string]bool{"hooks": true, "dir1": true, "untracked": false, "untracked/file": false, "hook": false, "a/b": false, "d": true, "none": false} {
					if got := e.Tracked(s.path(name)); got != want {
						t.Errorf("%s: tracked: %t", name, got)
					}
				}
			})
		}
	}
	s := newStage(t)
	s.git("init", "-q")
	s.write("file", "x")
	for _, content := range []string{"", "DIRC", "DIRC\x00\x00\x00\x02\xff\xff\xff\xff", "DIRC\x00\x00\x00\x04\x00\x00\x00\x01" + strings.Repeat("\xff", 80)} {
		s.write(".git/index", content)
		if At(s.root).Tracked(s.path("file")) {
			t.Errorf("by the index %q the file is tracked", content)
		}
	}
}

// Whatever git itself says that it reads as settings, and where it looks for hooks, is among the places: of any layout with links, includes and
// worktrees.
func TestPlacesAreWhereGitLooks(t *testing.T) {
	needsGit(t)
	for name, make := range map[string]func(s stage){
		"as git makes it": func(stage) {},
		"hooks are a link": func(s stage) {
			s.write("tools/hooks/pre-commit", "x")
			s.must(os.RemoveAll(s.path(".git/hooks")))
			s.link(".git/hooks", "../tools/hooks")
		},
		"links to links": func(s stage) {
			s.write("t/h/pre-commit", "x")
			s.link("u", "t")
			s.must(os.RemoveAll(s.path(".git/hooks")))
			s.link(".git/hooks", s.path("u/h"))
		},
		"a hook is a link": func(s stage) { s.write("scripts/check", "x"); s.link(".git/hooks/pre-commit", "../../scripts/check") },
		"the config is a link": func(s stage) {
			s.must(os.Rename(s.path(".git/config"), s.path("shared.config")))
			s.link(".git/config", "../shared.config")
		},
		"hooksPath":           func(s stage) { s.write("h/pre-commit", "x"); s.git("config", "core.hooksPath", "h") },
		"hooksPath is a link": func(s stage) { s.write("h/pre-commit", "x"); s.link("l", "h"); s.git("config", "core.hooksPath", "l") },
		"husky": func(s stage) {
			s.write(".husky/_/pre-commit", "x")
			s.write(".husky/pre-commit", "x")
			s.git("config", "core.hooksPath", ".husky/_")
		},
		"includes in a row": func(s stage) {
			s.git("config", "include.path", "../one")
			s.write("one", "[include]\n\tpath = two/three\n")
			s.link("two", "deep/er")
			s.write("deep/er/three", "[core]\n\thooksPath = found\n[include]\n\tpath = ../four\n")
			s.write("deep/four", "[a]\n\tb = c\n")
			s.write("found/pre-commit", "x")
		},
		"the directory is a link": func(s stage) { s.must(os.Rename(s.path(".git"), s.path("store"))); s.link(".git", "store") },
		"a file names it":         func(s stage) { s.must(os.Rename(s.path(".git"), s.path("store"))); s.write(".git", "gitdir: store\n") },
		"a link to a file names it": func(s stage) {
			s.must(os.Rename(s.path(".git"), s.path("store")))
			s.write("named", "gitdir: ./store\n")
			s.link(".git", "named")
		},
		"an include of a linked config": func(s stage) {
			s.write("shared/cfg", "[include]\n\tpath = inc\n")
			s.must(os.Remove(s.path(".git/config")))
			s.link(".git/config", "../shared/cfg")
			s.write(".git/inc", "[a]\n\tb = c\n")
			s.write("shared/inc", "[a]\n\tb = d\n")
		},
		"settings of a worktree": func(s stage) {
			s.git("config", "extensions.worktreeConfig", "true")
			s.git("config", "--worktree", "a.b", "c")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.git("init", "-q", ".")
			make(s)
			parts, err := At(s.root).Repository(s.root)
			if err != nil {
				t.Fatal(err)
			}
			covered := func(path string) bool {
				return slices.ContainsFunc(parts.Places, func(p Place) bool { return p.There && (path == p.Path || strings.HasPrefix(path, p.Path+"/")) })
			}
			for line := range strings.Lines(s.git("config", "--list", "--show-origin")) {
				file, _, _ := strings.Cut(strings.TrimPrefix(line, "file:"), "\t")
				if !filepath.IsAbs(file) {
					file = s.root + "/" + file // not cleaned: a link may lie before ..
				}
				if real, err := filepath.EvalSymlinks(file); err != nil || !covered(real) {
					t.Errorf("git reads %s, %v: it is not among %+v", real, err, parts.Places)
				}
			}
			hooks := strings.TrimSpace(s.git("rev-parse", "--git-path", "hooks"))
			if !filepath.IsAbs(hooks) {
				hooks = s.path(hooks)
			}
			entries, err := os.ReadDir(hooks)
			s.must(err)
			for _, e := range entries {
				if real, err := filepath.EvalSymlinks(filepath.Join(hooks, e.Name())); err != nil || !covered(real) {
					t.Errorf("git runs %s, %v: it is not among %+v", real, err, parts.Places)
				}
			}
		})
	}
}

// What the walls know of control files they know by an Eye alone: a look of another kind has an error that is easily taken for nothing.
func TestTheWallsLookByAnEye(t *testing.T) {
	other := regexp.MustCompile(`\b(?:os\.(?:Lstat|Stat|ReadDir|Readlink|ReadFile|Open)|filepath\.(?:EvalSymlinks|Walk|WalkDir|Glob))\(`)
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Skip("skipped: the sources are not here: ", err)
	}
	for _, file := range append(files, "../../../agentkit/sandbox/protect.go", "../appear/control.go", "../appear/target.go", "../appear/sockets.go") {
		if file == "eye.go" || strings.HasSuffix(file, "_test.go") {
			continue
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if m := other.Find(b); m != nil {
			t.Errorf("%s looks by %s", file, m)
		}
	}
}
