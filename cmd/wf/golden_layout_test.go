package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/api"
	"wf/cas"
	"wf/protocol"
)

// A layoutGolden is a store of one layout, and what it holds: testdata/README.md says what lies there.
type layoutGolden struct {
	dir  string
	w    *goldenPlace
	Runs map[string]protocol.RunID `json:"runs"` // by their names in the commands
	layoutHeld
	Pinned cas.PinnedHeads `json:"pinned"` // outside of the store
}

// layoutHeld is what a store holds, as the program tells it.
type layoutHeld struct {
	Heads     map[string]string     `json:"heads"` // all there are
	Concluded map[string]*goldenRun `json:"concluded"`
	Deleted   []api.Deletion        `json:"deleted"`
	Artifacts []api.Artifact        `json:"artifacts"` // of the run BUILD
	Notes     []string              `json:"notes"`     // of the memory
	Delivered map[string]int64      `json:"delivered"` // notifications, by sink
}

// A store as it was written is opened, proved, listed, gone on with, backed up, exported and collected, with the CIDs that
// were written down beside it.
func TestAStoreOfEachLayoutIsReadAsItWasWritten(t *testing.T) {
	oneAfterAnother(t)
	dirs, err := filepath.Glob("../../testdata/layouts/*/commands")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no stores: %v", err)
	}
	for _, commands := range dirs {
		dir, err := filepath.Abs(filepath.Dir(commands))
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(dir), func(t *testing.T) {
			g := &layoutGolden{dir: dir}
			if _, err := os.Stat(filepath.Join(dir, "expected.json")); errors.Is(err, os.ErrNotExist) && *addGolden == "stores" {
				g.add(t)
			}
			if err := json.Unmarshal(readGolden(t, filepath.Join(dir, "expected.json")), g); err != nil {
				t.Fatal(err)
			}
			g.holds(t)
		})
	}
}

func (g *layoutGolden) holds(t *testing.T) {
	store := g.open(t)
	if err := os.CopyFS(store, os.DirFS(filepath.Join(g.dir, "store"))); err != nil {
		t.Fatal(err)
	}
	// The pinned heads of a store are in a file that is named by its path.
	g.Pinned.Store = store
	b, err := json.Marshal(g.Pinned)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(store))
	pinned := filepath.Join(os.Getenv("HOME"), ".local", "state", "wf", "heads")
	if err := os.MkdirAll(pinned, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, pinned, hex.EncodeToString(sum[:8])+".json", string(b))

	g.w.must(t, "verify", "--all")
	g.same(t, "the store", g.layoutHeld, g.held(t, store, g.Runs))
	if got := g.w.must(t, "artifact", string(g.Runs["BUILD"]), "out/report.txt", "--cat"); got != "a report\n" {
		t.Errorf("the artifact is %q", got)
	}
	for name := range g.Concluded {
		g.w.must(t, "replay", string(g.Runs[name]), "--check")
	}
	if out, said, exit := g.w.wf("run", "gone.yaml", "--request-id", "gone"); exit == 0 || !strings.Contains(said, "was deleted") {
		t.Errorf("the run that was deleted begins again: %d %s%s", exit, out, said)
	}

	g.w.must(t, "store", "backup", "../backup")
	g.w.must(t, "store", "restore", "../backup", "../restored")
	g.w.must(t, "verify", "--all", "--store", "../restored")
	g.same(t, "the store that was restored", g.layoutHeld, g.held(t, filepath.Join(filepath.Dir(g.w.dir), "restored"), g.Runs, "--store", "../restored"))

	imported := &goldenPlace{dir: g.w.dir, wf: func(args ...string) (string, string, int) {
		return g.w.wf(append(args, "--store", "../imported")...)
	}}
	for name, want := range g.Concluded {
		g.w.must(t, "export", want.Run, "-o", "../run.car")
		imported.must(t, "import", "../run.car")
		g.same(t, name+" from an archive", want, imported.concluded(t, want.Run, true))
	}
	imported.must(t, "verify", "--all")

	g.w.must(t, "gc", "--yes")
	g.w.must(t, "verify", "--all")
	g.same(t, "the store, collected", g.layoutHeld, g.held(t, store, g.Runs))
	deploy := string(g.Runs["DEPLOY"])
	g.w.must(t, "answer", deploy, "--choice", "yes")
	if got := g.w.concluded(t, deploy, true); got.Status != protocol.Done || fmt.Sprint(got.Outputs) != "map[deployed:true]" {
		t.Errorf("the run that waited ends as %s with %v", got.Status, got.Outputs)
	}
	g.w.must(t, "verify", "--all")
}

func (g *layoutGolden) same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.FilterPath(isOrder, cmp.Ignore())); diff != "" {
		t.Errorf("layout %s: %s is not as it was written (-want +got):\n%s", filepath.Base(g.dir), what, diff)
	}
}

// open makes a user with the files of the golden, and gives the directory of the store.
func (g *layoutGolden) open(t *testing.T) (store string) {
	t.Helper()
	of := &golden{name: "work", dir: g.dir}
	g.w = of.workspace(t)
	return filepath.Join(g.w.dir, ".wf")
}

// held is what a store holds.
func (g *layoutGolden) held(t *testing.T, store string, runs map[string]protocol.RunID, args ...string) (h layoutHeld) {
	t.Helper()
	s, err := cas.Open(t.Context(), store, cas.Options{MustExist: true, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	heads, err := s.Heads(t.Context(), "")
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	h.Heads, h.Concluded, h.Delivered = map[string]string{}, map[string]*goldenRun{}, map[string]int64{}
	for _, head := range heads {
		h.Heads[head.Name] = head.Link.String()
	}
	w := &goldenPlace{dir: g.w.dir, wf: func(given ...string) (string, string, int) { return g.w.wf(append(given, args...)...) }}
	for name, run := range runs {
		if h.Heads[protocol.RunHead(run)] != "" {
			h.Concluded[name] = w.concluded(t, string(run), true)
		}
	}
	var deleted struct{ Items []api.Deletion }
	w.json(t, &deleted, "ls", "--deleted", "-o", "json")
	h.Deleted = deleted.Items
	var artifacts api.Artifacts
	w.json(t, &artifacts, "artifact", string(runs["BUILD"]), "-o", "json")
	h.Artifacts = artifacts.Artifacts
	var memory struct{ Items []struct{ Content string } }
	w.json(t, &memory, "memory", "ls", "-o", "json")
	for _, m := range memory.Items {
		h.Notes = append(h.Notes, m.Content)
	}
	var hooks api.Hooks
	w.json(t, &hooks, "hook", "ls", "-o", "json")
	for _, x := range hooks.Sinks {
		h.Delivered[x.Name] = x.Delivered
	}
	return h
}

// add performs the commands, with the notifications of notify.yaml, and keeps the store that they lead to.
func (g *layoutGolden) add(t *testing.T) {
	store := g.open(t)
	config := filepath.Join(os.Getenv("HOME"), ".config", "wf")
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, config, "config.yaml", string(readGolden(t, filepath.Join(g.dir, "notify.yaml"))))
	g.Runs = map[string]protocol.RunID{}
	for line := range strings.Lines(string(readGolden(t, filepath.Join(g.dir, "commands")))) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		want, err := strconv.Atoi(words[1])
		if err != nil {
			t.Fatalf("%q has no exit status", line)
		}
		for i, word := range words {
			words[i] = os.Expand(word, func(name string) string { return string(g.Runs[name]) })
		}
		if out, said, exit := g.w.wf(words[2:]...); exit != want {
			t.Fatalf("%s: exit %d\n%s%s", line, exit, out, said)
		}
		if words[0] != "-" {
			var v api.Run
			g.w.json(t, &v, "show", "-1", "-o", "json")
			g.Runs[words[0]] = v.ID
		}
	}
	g.layoutHeld = g.held(t, store, g.Runs)
	var err error
	if g.Pinned, err = cas.LoadPinnedHeads(cas.StateDir(os.Getenv), store); err != nil {
		t.Fatal(err)
	}
	g.Pinned.Store = ""
	b, err := json.MarshalIndent(g, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(g.dir, "store"), os.DirFS(store)); err != nil {
		t.Fatal(err)
	}
	write(t, g.dir, "expected.json", string(append(b, '\n')))
	t.Logf("added %s with %d heads", g.dir, len(g.Heads))
}
