package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What released programs wrote is read by this one, and the same definitions come to the same
// conclusions: testdata/README.md says what lies there, and how to add to it.
func TestGolden(t *testing.T) {
	oneAfterAnother(t)
	dirs, err := filepath.Glob("../../testdata/golden/*/commands")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no goldens: %v", err)
	}
	for _, commands := range dirs {
		g := openGolden(t, filepath.Dir(commands))
		t.Run(g.name, func(t *testing.T) {
			if *addGolden != "" {
				g.add(t)
			}
			for _, version := range g.versions(t) {
				t.Run(version, func(t *testing.T) { g.reads(t, version) })
			}
			t.Run("anew", g.performsAnew)
		})
	}
}

// A golden is a definition, the commands that perform it, and what they led to in the versions
// of the formats that there were.
type golden struct {
	name, dir string
	commands  []string // exit status and arguments; or keep
}

// keepStore is the line among the commands at which the store is kept.
const keepStore = "keep"

func openGolden(t *testing.T, dir string) *golden {
	t.Helper()
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	g := &golden{name: filepath.Base(dir), dir: dir}
	for line := range strings.Lines(string(readGolden(t, filepath.Join(dir, "commands")))) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			g.commands = append(g.commands, line)
		}
	}
	return g
}

// versions are the names of the directories that hold what was written: f1s1 and the like.
func (g *golden) versions(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(g.dir, "f*", "expected.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: nothing is expected of it: %s", g.name, howToAdd)
	}
	for i, file := range files {
		files[i] = filepath.Base(filepath.Dir(file))
	}
	return files
}

// newest is the directory that new runs of these versions are held against: the last one, f1s1-2
// being later than f1s1.
func (g *golden) newest(t *testing.T, version string) string {
	t.Helper()
	found := ""
	for _, dir := range g.versions(t) {
		if dir == version || strings.HasPrefix(dir, version+"-") {
			found = dir
		}
	}
	if found == "" {
		t.Fatalf("%s: a new run pins %s, and there is no testdata/golden/%s/%s: %s", g.name, version, g.name, version, howToAdd)
	}
	return found
}

func (g *golden) expected(t *testing.T, version string) goldenExpected {
	t.Helper()
	var x goldenExpected
	if err := json.Unmarshal(readGolden(t, filepath.Join(g.dir, version, "expected.json")), &x); err != nil {
		t.Fatalf("%s/%s: %v", g.name, version, err)
	}
	return x
}

// reads holds that an archive, and the store where one was kept, are as they were.
func (g *golden) reads(t *testing.T, version string) {
	want := g.expected(t, version)
	t.Run("archive", func(t *testing.T) {
		w := g.workspace(t)
		run := g.imported(t, w, version)
		w.must(t, "verify", "run.car")
		w.must(t, "verify", "--all")
		w.must(t, "replay", run, "--check")
		got := w.concluded(t, run, false)
		got.Run = want.End.Run // an archive need not hold the name of its run
		g.same(t, "the archive of "+version, want.End.withoutChildren(), got, nil)
	})
	if want.Kept == nil {
		return
	}
	if _, err := os.Stat(filepath.Join(g.dir, version, "store")); os.IsNotExist(err) {
		return
	}
	t.Run("store", func(t *testing.T) {
		w := g.workspace(t)
		if err := os.CopyFS(filepath.Join(w.dir, ".wf"), os.DirFS(filepath.Join(g.dir, version, "store"))); err != nil {
			t.Fatal(err)
		}
		w.must(t, "verify", "--all")
		w.must(t, "replay", want.End.Run, "--check")
		w.must(t, "store", "adopt", "--yes") // its runs were begun elsewhere
		g.same(t, "the store of "+version, want.Kept, w.concluded(t, want.End.Run, true), nil)
		w.perform(t, g.commands[slices.Index(g.commands, keepStore)+1:], nil)
		got := w.concluded(t, want.End.Run, true)
		got.Head = want.End.Head // the journal tells the time
		g.same(t, "the store of "+version+", gone on with", want.End, got, nil)
		w.must(t, "verify", "--all")
		w.must(t, "replay", want.End.Run, "--check")
	})
}

// performsAnew holds that the definition comes to the conclusions that the versions it pins
// have had since they are there.
func (g *golden) performsAnew(t *testing.T) {
	w := g.workspace(t)
	var kept *goldenRun
	w.perform(t, g.commands, func() { kept = w.concluded(t, "-1", true) })
	version := g.newest(t, w.version(t))
	want := g.expected(t, version)
	old := g.workspace(t)
	g.imported(t, old, version)
	t.Chdir(w.dir)
	for _, at := range []struct {
		name      string
		want, got *goldenRun
	}{{"performed anew until it is kept", want.Kept, kept}, {"performed anew", want.End, w.concluded(t, "-1", true)}} {
		if at.want != nil && at.got != nil {
			at.got.Run, at.got.Head = at.want.Run, at.want.Head // ids are by chance, the journal tells the time
		}
		g.same(t, fmt.Sprintf("%s (%s)", at.name, version), at.want, at.got, func(want, got string) string {
			return cmp.Diff(old.block(t, want), w.block(t, got))
		})
	}
	w.must(t, "verify", "--all")
	w.must(t, "replay", "-1", "--check")
}

// same names the golden and what differs: of steps the first one alone, since all that come
// after it have other CIDs for that.
func (g *golden) same(t *testing.T, what string, want, got *goldenRun, blocks func(want, got string) string) {
	t.Helper()
	if cmp.Equal(want, got, cmp.FilterPath(isOrder, cmp.Ignore())) {
		return
	}
	if want == nil || got == nil {
		t.Fatalf("%s: %s: have %v, want %v", g.name, what, got, want)
	}
	for _, id := range got.order {
		w, x := want.Steps[id], got.Steps[id]
		if w == nil || cmp.Equal(w, x, cmp.FilterPath(isOrder, cmp.Ignore())) {
			continue
		}
		t.Errorf("%s: %s: the first step that differs is %s (-want +got):\n%s", g.name, what, id, cmp.Diff(w, x, cmp.FilterPath(isOrder, cmp.Ignore())))
		if blocks != nil && w.CID != x.CID && w.CID != "" && x.CID != "" {
			t.Errorf("its records:\n%s", blocks(w.CID, x.CID))
		}
		break
	}
	w, x := *want, *got
	w.Steps, x.Steps = statuses(want), statuses(got)
	t.Errorf("%s: %s differs beyond its steps, or in which there are (-want +got):\n%s", g.name, what, cmp.Diff(w, x, cmp.FilterPath(isOrder, cmp.Ignore())))
}

func isOrder(p cmp.Path) bool { return p.Last().String() == ".order" }

func statuses(o *goldenRun) map[string]*goldenStep {
	out := map[string]*goldenStep{}
	for id, s := range o.Steps {
		out[id] = &goldenStep{Status: s.Status}
	}
	return out
}

// imported reads the archive of a version into the store of w, and gives its run.
func (g *golden) imported(t *testing.T, w *goldenPlace, version string) string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(readGolden(t, filepath.Join(g.dir, version, "run.car.gz"))))
	if err != nil {
		t.Fatal(err)
	}
	car, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	write(t, w.dir, "run.car", string(car))
	var got struct{ Runs []string }
	w.json(t, &got, "import", "run.car", "-o", "json")
	if len(got.Runs) == 0 {
		t.Fatalf("%s/%s: the archive holds no run", g.name, version)
	}
	return got.Runs[0]
}

// workspace is a new directory with the files of the golden and a store, and the current one.
func (g *golden) workspace(t *testing.T) *goldenPlace {
	t.Helper()
	top := t.TempDir()
	w := &goldenPlace{dir: filepath.Join(top, g.name), wf: wfHere}
	for name, value := range map[string]string{
		"HOME": top, "USER": "golden", "WF_STORE": "", "XDG_DATA_HOME": "", "XDG_STATE_HOME": "", "XDG_CONFIG_HOME": "",
	} {
		t.Setenv(name, value)
	}
	entries, err := os.ReadDir(g.dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(w.dir, ".wf"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			write(t, w.dir, e.Name(), string(readGolden(t, filepath.Join(g.dir, e.Name()))))
		}
	}
	t.Chdir(w.dir)
	return w
}

func readGolden(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// perform runs the commands, each of which must exit as it is said; kept is called at keep.
func (w *goldenPlace) perform(t *testing.T, commands []string, kept func()) {
	t.Helper()
	for _, line := range commands {
		if line == keepStore {
			if kept != nil {
				kept()
			}
			continue
		}
		exit, rest, _ := strings.Cut(line, " ")
		want, err := strconv.Atoi(exit)
		if err != nil {
			t.Fatalf("%q does not begin with an exit status", line)
		}
		if stdout, stderr, got := w.wf(strings.Fields(rest)...); got != want {
			t.Fatalf("wf %s: exit %d, want %d\n%s%s", rest, got, want, stdout, stderr)
		}
	}
}
