package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/api"
	"wf/engine"
	"wf/protocol"
)

// kindsOfPaths is a run whose second step makes of each kind of path each other one, alone and within a directory, with the state
// behind its first step and the paths. Links lead nowhere, so that nothing is found behind them.
func (b *bench) kindsOfPaths() (run protocol.RunID, to protocol.Link, paths []string) {
	b.t.Helper()
	kinds := map[string]string{"none": "", "file": "echo %d > P", "link": "ln -s nowhere%d P", "exec": "echo %d > P; chmod +x P", "dir": "mkdir P; echo %d > P/x; mkdir P/in; echo 1 > P/in/y"}
	var steps [2]strings.Builder
	for was, lay := range kinds {
		for is, relay := range kinds {
			for _, p := range []string{was + "-" + is, "n/" + was + "-" + is} {
				if was != "none" || is != "none" {
					paths = append(paths, p)
				}
				for i, make := range []string{lay, relay} {
					if make != "" {
						make = strings.ReplaceAll(fmt.Sprintf(make, i+1), "P", p)
					}
					fmt.Fprintf(&steps[i], "rm -rf %s; %s\n", p, make)
				}
			}
		}
	}
	slices.Sort(paths)
	b.lay(map[string]string{"one.sh": steps[0].String(), "two.sh": steps[1].String()})
	run, v := b.run(`
wf: 1
workspace: {track: true}
roles: {one: {run: 'mkdir n; . ./one.sh'}, two: {run: '. ./two.sh'}}
edges: [{from: one, to: two}, {from: two, to: END}]
`, nil)
	if v.Status != protocol.Done {
		b.t.Fatal(v.Reason)
	}
	_, trees := b.looks(run)
	return run, trees[2], paths
}

// lies is what the workspace holds at a path and below; links are read, and not followed.
func (b *bench) lies(below string) map[string]string {
	b.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(filepath.Join(b.dir, below), func(at string, d os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		s, err := d.Info()
		what := s.Mode().String()
		if d.Type()&os.ModeSymlink != 0 {
			to, rerr := os.Readlink(at)
			what, err = what+" "+to, errors.Join(err, rerr)
		} else if d.Name() == ".wf" {
			return filepath.SkipDir
		} else if !d.IsDir() {
			text, rerr := os.ReadFile(at)
			what, err = what+" "+string(text), errors.Join(err, rerr)
		}
		p, rerr := filepath.Rel(b.dir, at)
		out[p] = what
		return errors.Join(err, rerr)
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

func (b *bench) stays(what string, want map[string]string) {
	b.t.Helper()
	if d := cmp.Diff(want, b.lies(".")); d != "" {
		b.t.Fatalf("%s: the files, − as they should be, + as they are:\n%s", what, d)
	}
}

// F503: where a step made another kind of a path, the files go back and forth, all of them or the path alone; a dry one tells what
// becomes of each; what was begun and has changed nothing yet goes back to that.
func TestF503WhatAStepMadeAnotherKindOfIsRestored(t *testing.T) {
	b := newBench(t)
	run, to, paths := b.kindsOfPaths()
	two := b.lies(".")
	restore := func(o engine.Restoration) *api.FilesRestored {
		t.Helper()
		o.DryRun = true
		dry := b.restores(run, o)
		o.DryRun = false
		v := b.restores(run, o)
		slices.Sort(dry.Changed)
		slices.Sort(v.Changed)
		if d := cmp.Diff(dry.Changed, v.Changed); d != "" || len(dry.Conflicts)+len(v.Conflicts) > 0 {
			t.Fatalf("%q: left alone %v and %v\n− foretold, + changed:\n%s", o.Paths, dry.Conflicts, v.Conflicts, d)
		}
		return v
	}
	back := restore(engine.Restoration{To: to})
	one := b.lies(".")
	restore(engine.Restoration{To: link(t, back.Undo)})
	b.stays("undone", two)
	for _, p := range paths {
		v := restore(engine.Restoration{To: to, Paths: []string{p}})
		want := map[string]string{}
		for at, what := range two {
			if at != p && !strings.HasPrefix(at, p+"/") {
				want[at] = what
			}
		}
		for at, what := range one {
			if at == p || strings.HasPrefix(at, p+"/") {
				want[at] = what
			}
		}
		b.stays(p, want)
		if v.State == protocol.RestoreDone {
			restore(engine.Restoration{To: link(t, v.Undo)})
		}
		b.stays(p+" undone", two)
	}

	for _, c := range []struct {
		cut             int
		untouched, back bool
	}{{1, true, true}, {1, true, false}, {1, false, true}, {30, false, true}, {30, false, false}, {70, false, true}} {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := b.e.RestoreFiles(ctx, run, engine.Restoration{To: to, Each: func(done, _ int) {
			if done == c.cut {
				cancel()
			}
		}})
		if _, open := errors.AsType[*engine.RestoreOpenError](err); !open {
			t.Fatalf("%+v: it was not interrupted: %v", c, err)
		}
		if c.untouched {
			again := exec.Command("sh", "-c", ". ./two.sh")
			again.Dir = b.dir
			if out, err := again.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v", out, err)
			}
			b.stays("as if nothing had changed yet", two)
		}
		v, err := b.e.GoOnRestoring(t.Context(), b.dir, c.back, nil)
		if err != nil || len(v.Conflicts) > 0 || c.untouched && c.back && len(v.Changed) > 0 {
			t.Fatalf("%+v: %+v, %v", c, v, err)
		}
		if !c.back {
			b.stays("gone on", one)
			restore(engine.Restoration{To: link(t, v.Undo)})
		}
		b.stays("back", two)
	}
}

// F508: what lies at a path that is named is looked at, also where the run has recorded nothing else since: it is restored, or
// a conflict that is told.
func TestF508ANamedPathIsLookedAt(t *testing.T) {
	const removed, changed, gone = "it was removed since it was recorded", "it was changed since it was recorded", "its directory is not there: no such file or directory"
	for _, c := range []struct {
		name, spoil string
		paths       []string
		left        []api.LeftAlone // without Force
		forced      []api.LeftAlone
	}{
		{"as it was", "true", []string{"d/f", "e", "link"}, nil, nil},
		{"a file that was changed", "echo person > d/f", []string{"d/f"}, []api.LeftAlone{{Path: "d/f", Why: changed}}, nil},
		{"one that is executable now", "chmod +x d/f", []string{"d/f"}, []api.LeftAlone{{Path: "d/f", Why: changed}}, nil},
		{"one that was removed", "rm d/f", []string{"d/f"}, []api.LeftAlone{{Path: "d/f", Why: removed}}, nil},
		{"within a directory that is named, twice", "echo person > d/f; rm d/in/g", []string{"d", "d/f"}, []api.LeftAlone{{Path: "d/f", Why: changed}, {Path: "d/in/g", Why: removed}}, nil},
		{"a directory that was removed", "rm -r d", []string{"d"}, []api.LeftAlone{{Path: "d/f", Why: gone}, {Path: "d/in/g", Why: gone}}, nil},
		{"a link that was changed", "ln -sfn elsewhere link", []string{"link"}, []api.LeftAlone{{Path: "link", Why: changed}}, nil},
		{"a link in the place of a file", "rm d/f; ln -s in/g d/f", []string{"d/f"}, []api.LeftAlone{{Path: "d/f", Why: changed}}, nil},
		{"a directory in the place of a file", "rm d/f; mkdir d/f", []string{"d/f"}, []api.LeftAlone{{Path: "d/f", Why: "a directory lies there"}}, []api.LeftAlone{{Path: "d/f", Why: "a directory lies there"}}},
		{"beside what the step has changed", "echo person > d/f; echo person > s", []string{"d", "s"}, []api.LeftAlone{{Path: "d/f", Why: changed}, {Path: "s", Why: changed}}, nil},
		{"what is not named", "echo person > d/f", []string{"e"}, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			run, _ := b.run(`
wf: 1
workspace: {track: true}
roles: {one: {run: 'mkdir -p d/in; echo 1 > d/f; echo 1 > d/in/g; echo 1 > e; echo 1 > s; ln -s d link'}, two: {run: 'echo 2 > s'}}
edges: [{from: one, to: two}, {from: two, to: END}]
`, nil)
			_, trees := b.looks(run)
			b.restores(run, engine.Restoration{To: trees[2], Paths: []string{"s"}})
			one := b.lies(".")
			b.restores(run, engine.Restoration{To: trees[4]})
			spoil := exec.Command("sh", "-c", c.spoil)
			if spoil.Dir = b.dir; spoil.Run() != nil {
				t.Fatal(c.spoil)
			}
			spoilt := b.lies(".")
			for _, force := range []bool{false, true} {
				want := c.left
				if force {
					want = c.forced
				}
				for _, dry := range []bool{true, false} {
					v := b.restores(run, engine.Restoration{To: trees[2], Paths: c.paths, Force: force, DryRun: dry})
					slices.SortFunc(v.Conflicts, func(a, b api.LeftAlone) int { return strings.Compare(a.Path, b.Path) })
					if d := cmp.Diff(append([]api.LeftAlone{}, want...), v.Conflicts); d != "" {
						t.Fatalf("force %t, dry %t: %s", force, dry, d)
					}
					if dry || !force {
						b.stays(fmt.Sprintf("force %t, dry %t", force, dry), spoilt)
						continue
					}
					for p, is := range b.lies(".") {
						named := slices.ContainsFunc(c.paths, func(n string) bool { return p == n || strings.HasPrefix(p, n+"/") })
						if named && len(want) == 0 && is != one[p] {
							t.Errorf("%s is %s, want %s", p, is, one[p])
						}
					}
					if v.State == protocol.RestoreDone {
						b.restores(run, engine.Restoration{To: link(t, v.Undo)})
					}
					b.stays("undone", spoilt)
				}
			}
		})
	}
}
