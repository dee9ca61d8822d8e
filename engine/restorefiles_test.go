package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/protocol"
)

// restores restores the files of a run.
func (b *bench) restores(run protocol.RunID, o engine.Restoration) *api.FilesRestored {
	b.t.Helper()
	v, err := b.e.RestoreFiles(context.Background(), run, o)
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

// there are the files of the workspace with what is in them.
func (b *bench) there() map[string]string {
	b.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(b.dir, func(path string, d os.DirEntry, err error) error {
		if d != nil && d.Name() == ".wf" {
			return filepath.SkipDir
		}
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		rel, rerr := filepath.Rel(b.dir, path)
		out[rel] = string(text)
		return errors.Join(err, rerr)
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

func (b *bench) same(want map[string]string) {
	b.t.Helper()
	if d := cmp.Diff(want, b.there()); d != "" {
		b.t.Errorf("the files, − as they should be, + as they are:\n%s", d)
	}
}

func (b *bench) collect() {
	b.t.Helper()
	if _, err := cas.GC(context.Background(), inDir(b.e), cas.GCOptions{Grace: time.Nanosecond}); err != nil {
		b.t.Fatal(err)
	}
	r, err := cas.Verify(context.Background(), inDir(b.e), cas.VerifyOptions{})
	if err != nil || len(r.Findings) > 0 {
		b.t.Fatalf("%v %+v", err, r.Findings)
	}
}

func link(t testing.TB, text string) protocol.Link {
	t.Helper()
	l, err := protocol.ParseLink(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

const twoSteps = `
wf: 1
workspace: {track: true}
roles:
  one: {run: 'echo 1 > a; echo 1 > b; mkdir -p d; echo 1 > d/x'}
  two: {run: 'echo 2 > a; rm b; rm -r d; echo 2 > c'}
edges: [{from: one, to: two}, {from: two, to: END}]
`

// Files go back to what a step left, and forth again by the tree that is told; what nothing has recorded is left alone, or
// kept. The run itself stays as it was, and what is kept outlives collections.
func TestC03FilesAreRestored(t *testing.T) {
	b := newBench(t)
	b.lay(map[string]string{"mine": "1\n", "ignored.log": "1", ".gitignore": "*.log\n"})
	run, _ := b.run(twoSteps, nil)
	head, _, err := b.e.Store.Tip(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	_, trees := b.looks(run) // start, one before, one after, two before, two after
	first := map[string]string{"mine": "1\n", "ignored.log": "1", ".gitignore": "*.log\n"}
	one := map[string]string{"mine": "1\n", "ignored.log": "1", ".gitignore": "*.log\n", "a": "1\n", "b": "1\n", "d/x": "1\n"}
	two := map[string]string{"mine": "1\n", "ignored.log": "1", ".gitignore": "*.log\n", "a": "2\n", "c": "2\n"}

	if v := b.restores(run, engine.Restoration{To: trees[2], DryRun: true}); len(v.Changed) != 5 || v.State != api.RestorePlanned {
		t.Errorf("%+v", v)
	}
	b.same(two)
	v := b.restores(run, engine.Restoration{To: trees[2]})
	b.same(one)
	if slices.Sort(v.Changed); !slices.Equal(v.Changed, []string{"a", "b", "c", "d", "d/x"}) || len(v.Conflicts)+len(v.Kept) > 0 {
		t.Errorf("%+v", v)
	}
	b.collect()
	b.restores(run, engine.Restoration{To: link(t, v.Undo)})
	b.same(two)
	b.restores(run, engine.Restoration{To: trees[0]})
	b.same(first)
	if again := b.restores(run, engine.Restoration{To: trees[0]}); again.State != api.RestorePlanned || len(again.Changed)+len(again.Conflicts) > 0 {
		t.Errorf("once more: %+v", again)
	}
	b.restores(run, engine.Restoration{To: trees[2], Paths: []string{"d/x"}})
	part := map[string]string{"mine": "1\n", "ignored.log": "1", ".gitignore": "*.log\n", "d/x": "1\n"}
	b.same(part)
	b.restores(run, engine.Restoration{To: trees[4]})
	b.same(two)

	// a conflict is left alone, and kept by Force with what was removed
	b.lay(map[string]string{"a": "person", "b": "person"})
	if err := os.Remove(filepath.Join(b.dir, "c")); err != nil {
		t.Fatal(err)
	}
	v = b.restores(run, engine.Restoration{To: trees[2]})
	if d := cmp.Diff([]api.LeftAlone{{Path: "a", Why: "it was changed since it was recorded"}, {Path: "b", Why: "it was changed since it was recorded"}}, v.Conflicts); d != "" {
		t.Error(d)
	}
	b.restores(run, engine.Restoration{To: link(t, v.Undo), Paths: []string{"d"}})
	v = b.restores(run, engine.Restoration{To: trees[2], Force: true})
	b.same(one)
	if slices.Sort(v.Kept); !slices.Equal(v.Kept, []string{"a", "b"}) || len(v.Conflicts) > 0 {
		t.Errorf("%+v", v)
	}
	b.collect()
	b.restores(run, engine.Restoration{To: link(t, v.Undo)})
	b.same(map[string]string{"mine": "1\n", "ignored.log": "1", ".gitignore": "*.log\n", "a": "person", "b": "person"})

	if now, _, err := b.e.Store.Tip(t.Context(), run); now != head || err != nil {
		t.Errorf("the run has moved: %v", err)
	}
	if _, err := b.e.RestoreFiles(t.Context(), run, engine.Restoration{To: trees[2], Paths: []string{"none"}}); !errors.Is(err, protocol.ErrUnknownArtifact) {
		t.Errorf("a path that was never recorded: %v", err)
	}
}

// What is omitted is neither touched nor removed, and a secret is not kept, also by Force.
func TestC03WhatWasOmittedStays(t *testing.T) {
	t.Setenv("TOKEN_OF_TEST", "hunter2-hunter2")
	b := newBench(t)
	b.lay(map[string]string{"key": "hunter2-hunter2", "long": strings.Repeat("x", 70_000), "a": "1", "e/key": "hunter2-hunter2"})
	run, v := b.run(`
wf: 1
secrets: [TOKEN_OF_TEST]
workspace: {track: true, max_size: 64KB}
roles: {one: {run: 'echo 2 > a; echo more >> key; echo more >> long; echo new > b; echo hunter2-hunter2 > late; rm e/key; echo 1 > e/x'}}
`, nil)
	if v.Status != protocol.Done {
		t.Fatal(v.Reason)
	}
	_, trees := b.looks(run)
	b.lay(map[string]string{"b": "with hunter2-hunter2 in it"})
	was := b.there()
	out := b.restores(run, engine.Restoration{To: trees[0], Force: true})
	var left []string
	for _, c := range out.Conflicts {
		left = append(left, c.Path+": "+c.Why)
	}
	slices.Sort(left)
	want := []string{"b: it was changed since it was recorded, and holds a secret, which is not kept", "e/key: it was not recorded: secret", "key: it was not recorded: secret",
		"late: it was not recorded: secret", "long: it was not recorded: size"}
	if d := cmp.Diff(want, left); d != "" {
		t.Error(d)
	}
	was["a"] = "1"
	delete(was, "e/x")
	b.same(was)
}

// A restoring is refused while the run is driven, where another one is open, and for a run whose files are not kept.
func TestC03WhenFilesAreNotRestored(t *testing.T) {
	b := newBench(t)
	run, _ := b.run(twoSteps, nil)
	other, _ := b.run(twoSteps, nil)
	_, trees := b.looks(run)
	_, trees2 := b.looks(other)
	ctx, cancel := context.WithCancel(t.Context())
	claim, err := b.e.Store.Claim(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.e.RestoreFiles(ctx, run, engine.Restoration{To: trees[2]}); !errors.Is(err, protocol.ErrRunLive) {
		t.Errorf("while it is driven: %v", err)
	}
	if err := claim.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.e.GoOnRestoring(ctx, b.dir, false, nil); !errors.Is(err, protocol.ErrNotFound) {
		t.Errorf("nothing to go on with: %v", err)
	}
	begun := b.there()
	_, err = b.e.RestoreFiles(ctx, run, engine.Restoration{To: trees[2], Each: func(done, of int) {
		if done == 2 {
			cancel()
		}
	}})
	if open, ok := errors.AsType[*engine.RestoreOpenError](err); !ok || !errors.Is(open, context.Canceled) {
		t.Fatalf("interrupted: %v", err)
	}
	if _, err := b.e.RestoreFiles(t.Context(), other, engine.Restoration{To: trees2[2]}); !errors.Is(err, protocol.ErrRestoreOpen) {
		t.Errorf("while another is open: %v", err)
	}
	if err := os.Mkdir(filepath.Join(b.dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if dir, err := b.e.RestoresIn(t.Context(), filepath.Join(b.dir, "sub")); dir != b.dir || err != nil {
		t.Errorf("it is open in %q, %v", dir, err)
	}
	v, err := b.e.GoOnRestoring(t.Context(), b.dir, true, nil)
	if err != nil || v.State != protocol.RestoreAborted || len(v.Conflicts) > 0 {
		t.Errorf("back: %+v, %v", v, err)
	}
	b.same(begun)

	// one whose run is deleted can be ended still
	ctx, cancel = context.WithCancel(t.Context())
	if _, err := b.e.RestoreFiles(ctx, run, engine.Restoration{To: trees[2], Each: func(int, int) { cancel() }}); err == nil {
		t.Fatal("it was not interrupted")
	}
	if _, _, err := b.e.Delete(t.Context(), run, engine.Burial{}); err != nil {
		t.Fatal(err)
	}
	b.collect()
	if _, err := b.e.GoOnRestoring(t.Context(), b.dir, false, nil); !errors.Is(err, protocol.ErrRunDeleted) {
		t.Errorf("of a run that was deleted: %v", err)
	}
	if v, err := b.e.GoOnRestoring(t.Context(), b.dir, true, nil); err != nil || v.State != protocol.RestoreAborted {
		t.Errorf("%+v, %v", v, err)
	}
	b.restores(other, engine.Restoration{To: trees2[2]})

	if err := b.e.Store.Commit(t.Context(), cas.Batch{}); err != nil {
		t.Fatal(err)
	}
	untracked, _ := b.run("wf: 1\nroles: {one: {run: 'true'}}", nil)
	if _, err := b.e.RestoreFiles(t.Context(), untracked, engine.Restoration{To: trees2[2]}); !errors.Is(err, protocol.ErrNotFound) {
		t.Errorf("a run without files: %v", err)
	}
}

// A process that is killed while it restores leaves the old or the new state of each file; then it goes on, or back, and what
// Force replaced is there again.
func TestC03AKilledRestoringGoesOnOrBack(t *testing.T) {
	if dir := os.Getenv("WF_TEST_RESTORING"); dir != "" { // the process that is killed
		b := &bench{t: t, dir: dir}
		b.open()
		run, to := protocol.RunID(os.Getenv("WF_TEST_RUN")), link(t, os.Getenv("WF_TEST_TREE"))
		b.restores(run, engine.Restoration{To: to, Force: true, Each: func(int, int) { fmt.Fprint(os.Stderr, ".") }})
		return
	}
	rounds := 4
	if testing.Short() {
		rounds = 2
	}
	b := newBench(t)
	run, _ := b.run(`
wf: 1
workspace: {track: true}
roles:
  one: {run: 'for i in $(seq 400); do mkdir -p $((i%7)); echo 1 $i > $((i%7))/$i; done'}
  two: {run: 'for i in $(seq 300); do echo 2 $i > $((i%7))/$i; done; rm -r 3; for i in $(seq 50); do mkdir -p n/$i; echo 2 > n/$i/x; done'}
edges: [{from: one, to: two}, {from: two, to: END}]
`, nil)
	_, trees := b.looks(run)
	two := b.there()
	changes := 0
	b.restores(run, engine.Restoration{To: trees[2], Each: func(_, of int) { changes = of }})
	one := b.there()
	b.restores(run, engine.Restoration{To: trees[4]})
	caught := 0
	for round := range rounds {
		b.lay(map[string]string{"0/7": "person", "1/1": "person", "1/8": "person"}) // replaced by Force
		mine := b.there()
		cmd := exec.Command(os.Args[0], "-test.run=^TestC03AKilledRestoringGoesOnOrBack$")
		cmd.Env = append(os.Environ(), "WF_TEST_RESTORING="+b.dir, "WF_TEST_RUN="+string(run), "WF_TEST_TREE="+trees[2].String())
		said, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(said, make([]byte, 1+rand.IntN(changes))); err != nil { // a byte for each change
			t.Fatal(err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
		for path, text := range mine {
			now, err := os.ReadFile(filepath.Join(b.dir, path))
			if after, there := one[path]; errors.Is(err, os.ErrNotExist) && there || err == nil && string(now) != text && string(now) != after {
				t.Fatalf("round %d: %s is %q, %v", round, path, now, err)
			}
		}
		back := round%2 == 1
		v, err := b.e.GoOnRestoring(t.Context(), b.dir, back, nil)
		if errors.Is(err, protocol.ErrNotFound) { // it had ended
			b.same(one)
			b.restores(run, engine.Restoration{To: trees[4]})
			b.same(two)
			continue
		}
		if err != nil || len(v.Conflicts) > 0 {
			t.Fatalf("round %d: %+v, %v", round, v, err)
		}
		caught++
		if back {
			b.same(mine)
			b.restores(run, engine.Restoration{To: trees[2]})
		} else {
			b.same(one)
			b.restores(run, engine.Restoration{To: link(t, v.Undo)})
			b.same(mine)
			b.restores(run, engine.Restoration{To: trees[2]})
		}
		b.restores(run, engine.Restoration{To: trees[4]})
		b.same(two)
	}
	t.Logf("%d of %d were killed between", caught, rounds)
}

// A fork restores what it shares with its base, and goes on from it.
func TestC03AForkRestoresWhatItShares(t *testing.T) {
	b := newBench(t)
	run, _ := b.run(twoSteps, nil)
	_, trees := b.looks(run)
	fork, err := b.e.Fork(t.Context(), run, engine.ForkOptions{At: 3})
	if err != nil {
		t.Fatal(err)
	}
	b.drive(fork)
	if _, _, err := b.e.Delete(t.Context(), run, engine.Burial{}); err != nil {
		t.Fatal(err)
	}
	b.collect()
	b.restores(fork, engine.Restoration{To: trees[0]})
	b.same(map[string]string{})
	_, all := b.looks(fork)
	b.restores(fork, engine.Restoration{To: all[len(all)-1]})
	b.same(map[string]string{"a": "2\n", "c": "2\n"})
}

// Names that act on screens or paths are names.
func TestC03HostileNamesAreRestored(t *testing.T) {
	b := newBench(t)
	names := []string{"a\nb", "\x1b[31m", "ü/é", "é", "-rf", " ", "*", "a\\b", "\u202egpj", strings.Repeat("n", 200)}
	files := map[string]string{}
	for _, n := range names {
		files[n] = n
	}
	b.lay(files)
	run, _ := b.run("wf: 1\nworkspace: {track: true}\nroles: {one: {run: 'find . -path ./.wf -prune -o -type f -print0 | xargs -0 rm --'}}", nil)
	_, trees := b.looks(run)
	b.same(map[string]string{})
	v := b.restores(run, engine.Restoration{To: trees[0]})
	b.same(files)
	if len(v.Conflicts) > 0 {
		t.Error(v.Conflicts)
	}
}

// BenchmarkC03Restore restores 5,000 files that differ, and copies as many by cp -r: ns/cp is the time of one to the other.
func BenchmarkC03Restore(t *testing.B) {
	b := newBench(t)
	run, _ := b.run(`
wf: 1
workspace: {track: true}
roles:
  one: {run: 'for d in $(seq 50); do mkdir -p p/$d; for f in $(seq 100); do seq $d $((d+f*4)) > p/$d/$f; done; done'}
  two: {run: 'for d in $(seq 50); do for f in $(seq 100); do echo x >> p/$d/$f; done; done'}
edges: [{from: one, to: two}, {from: two, to: END}]
`, nil)
	_, trees := b.looks(run)
	var copying time.Duration
	for i := 0; t.Loop(); i++ {
		b.restores(run, engine.Restoration{To: trees[2+2*(i%2)]})
		t.StopTimer()
		begun := time.Now()
		if out, err := exec.Command("cp", "-r", filepath.Join(b.dir, "p"), filepath.Join(t.TempDir(), "p")).CombinedOutput(); err != nil {
			t.Fatal(err, string(out))
		}
		copying += time.Since(begun)
		t.StartTimer()
	}
	t.ReportMetric(float64(t.Elapsed())/float64(copying), "restore/cp")
}
