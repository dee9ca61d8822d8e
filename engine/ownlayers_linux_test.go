package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wf/agentkit/sandbox"
	"wf/protocol"
	"wf/roles"
	"wf/roles/workspace"
	"wf/roles/workspace/workspacetest"
)

// walls confine as those of wf do. Copies lie in layers where they can, unless whole is set.
type walls struct {
	whole  bool
	mu     *sync.Mutex
	mounts *int // of copies, those that were tried and closed included
}

func newWalls(t testing.TB, whole bool) walls {
	t.Helper()
	if tier := sandbox.Probe(); !tier.Namespaces {
		t.Skip("this machine has no namespaces: ", tier.Reasons)
	}
	return walls{whole: whole, mu: &sync.Mutex{}, mounts: new(int)}
}

func (w walls) Tier(roles.Command) protocol.SandboxTier {
	return protocol.SandboxTier{Tier: sandbox.Probe().Name}
}

func (w walls) Run(ctx context.Context, c roles.Command) (int, error) {
	return sandbox.Run(ctx, sandbox.Policy{Workspace: c.Workspace, At: c.At, Private: c.Private, Dir: c.Dir, Appeared: c.Appeared, Environ: c.Env, Stdin: c.Stdin, Grace: c.Grace}, []string{"sh", "-c", c.Line}, c.Stdout, c.Stderr)
}

func (w walls) Met(roles.Command, string) string { return "" }

func (w walls) Hides() (string, error) { return "", nil }

func (w walls) Overlay(lower, upper, work string) (*workspace.View, error) {
	w.mu.Lock()
	*w.mounts++
	w.mu.Unlock()
	if w.whole {
		return nil, errors.New("a test wants whole copies")
	}
	return sandbox.Overlay(lower, upper, work)
}

// layeredCoders is coders with commands that are confined.
var layeredCoders = strings.Replace(coders, "workspace: own}", "workspace: own, sandbox: on}", 1)

func newLayerBench(t testing.TB, whole bool) (*bench, walls) {
	t.Helper()
	b := newOwnBench(t)
	w := newWalls(t, whole)
	b.e.Performers[protocol.ActRun] = &roles.Run{Walls: w}
	return b, w
}

// C-4: the copies of a fan-out share one copy of the workspace, over which each has a layer of its own; what comes of it is the same.
func TestC04CopiesInLayersAreMerged(t *testing.T) {
	var trees []string
	for _, whole := range []bool{false, true} {
		b, w := newLayerBench(t, whole)
		b.lay(map[string]string{"a": "1\n2\n3\n4\n5\n6\n7\n", "gone": "x", "d/keep": "k", ".gitignore": "out\n", "out/big": "ignored", "whole/x/y": "z", ".wh.a": "no whiteout", "with:colon,and\\": "odd"})
		id, v := b.run(layeredCoders, map[string]any{"items": []any{
			"sed -i s/1/one/ a; rm gone; mkdir out; echo o > out/new; pwd; rm -r whole; mkdir whole; echo new > whole/new",
			"sed -i s/4/four/ a; echo n > d/new; test ! -e out; test -e gone",
			"sed -i s/7/seven/ a; ln -s a link; chmod +x d/keep; mv d/keep d/kept; mv d/kept d/keep",
		}})
		b.done(v)
		got := b.merged(v, "merge#1")
		if got.Status != "ok" || len(got.Conflicts) > 0 || got.Base == got.Tree {
			t.Errorf("%+v", got)
		}
		trees = append(trees, got.Base+got.Tree)
		want := map[string]string{"a": "one\n2\n3\nfour\n5\n6\nseven\n", "d/keep": "k", "d/new": "n\n", ".gitignore": "out\n", "out/big": "ignored",
			"link": "one\n2\n3\nfour\n5\n6\nseven\n", "whole/new": "new\n", ".wh.a": "no whiteout", "with:colon,and\\": "odd"}
		if d := cmp.Diff(want, b.tree()); d != "" {
			t.Error(d)
		}
		if got := b.copies(); len(got) > 0 {
			t.Errorf("copies are left of a run whose merge is recorded: %s", got)
		}
		written := 0
		for _, d := range b.has(id, protocol.EvOwnCopy) {
			if d.(protocol.OwnCopy).Bytes > 0 {
				written++
			}
		}
		if want := map[bool]int{false: 1, true: 3}[whole]; written != want {
			t.Errorf("whole %v: %d copies were written, want %d", whole, written, want)
		}
		if *w.mounts == 0 {
			t.Error("no layers were tried")
		}
		for _, s := range v.Steps {
			if strings.HasPrefix(s.ID, "coder#1[0]") && !strings.HasPrefix(s.Text, b.dir) {
				t.Errorf("it works in %s", s.Text)
			}
		}
		b.sound(v.ID)
	}
	if trees[0] != trees[1] {
		t.Errorf("the trees differ between layers and whole copies: %s", trees)
	}
}

// Many visits at once, and what they leave in the way of those who clean up.
func TestC04ManyCopiesInLayers(t *testing.T) {
	b, _ := newLayerBench(t, false)
	files := map[string]string{}
	for i := range 200 {
		files[fmt.Sprintf("d%d/f%d", i%10, i)] = fmt.Sprint(i)
	}
	b.lay(files)
	var items []any
	for i := range 16 {
		items = append(items, fmt.Sprintf("echo %d > d%d/new%d; rm d%d/f%d; mkdir -p closed%d/in; touch closed%d/in/x; chmod 0 closed%d/in; mkfifo pipe%d", i, i%10, i, i%10, i, i, i, i, i))
	}
	_, v := b.run(layeredCoders, map[string]any{"items": items})
	b.done(v)
	got := b.tree()
	for i := range 16 {
		if got[fmt.Sprintf("d%d/new%d", i%10, i)] != fmt.Sprintf("%d\n", i) {
			t.Errorf("visit %d is missing", i)
		}
		if _, there := got[fmt.Sprintf("d%d/f%d", i%10, i)]; there {
			t.Errorf("what visit %d removed is there", i)
		}
	}
	if got := b.copies(); len(got) > 0 {
		t.Errorf("left: %s", got)
	}
	b.sound(v.ID)
}

// C-4, a property: the tree of a copy in layers is that of a whole copy in which the same was done.
func TestC04ATreeInLayersIsThatOfAWholeCopy(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 4 {
		files := map[string]string{".gitignore": "ignored\n"}
		for i := range 60 {
			files[fmt.Sprintf("d%d/e%d/f%d", i%3, i%5, i)] = strings.Repeat(fmt.Sprintln(i), r.IntN(200))
		}
		var script strings.Builder
		path := func() string { i := r.IntN(70); return fmt.Sprintf("d%d/e%d/f%d", i%3, i%5, i) }
		for range 60 { // a pipe that nothing reads would hold what writes to it
			p, q := path(), path()
			script.WriteString([]string{
				"mkdir -p $(dirname P); [ -p P ] || echo NUM >> P", "rm -rf P", "rm -rf $(dirname P)", "rm -rf $(dirname P); mkdir -p $(dirname P); echo again > P", "chmod +x P", "chmod -x P",
				"mv P Q", "mv -T $(dirname P) $(dirname Q)", "rm -rf P; ln -s Q P", "[ -p P ] || [ -p Q ] || cp -p P Q", "touch P", "rm -rf P; mkdir -p P/sub; echo x > P/sub/y", "ln P Q", "mkdir -p ignored; echo x > ignored/x",
				"rm -rf P; mkfifo P", "truncate -s 3 P", "mv -f P Q.tmp; mv Q.tmp P"}[r.IntN(17)] + " 2>/dev/null\n")
			s := strings.NewReplacer("P", p, "Q", q, "NUM", fmt.Sprint(r.IntN(1e6))).Replace(script.String())
			script.Reset()
			script.WriteString(s)
		}
		script.WriteString("true\n")
		var trees []string
		for _, whole := range []bool{false, true} {
			b, _ := newLayerBench(t, whole)
			b.lay(files)
			_, v := b.run(layeredCoders, map[string]any{"items": []any{script.String(), "true"}})
			b.done(v)
			got := b.merged(v, "merge#1")
			trees = append(trees, got.Base+" "+got.Tree)
			b.sound(v.ID)
		}
		if trees[0] != trees[1] {
			t.Errorf("the trees are %s after\n%s", trees, script.String())
		}
	}
}

// A base that an earlier process has made is used by the next one; one that is gone is made anew, and so are the copies over it.
func TestC04KillsWhileCopiesLieInLayers(t *testing.T) {
	if drivenToBeKilled(t, func(b *bench) { b.e.Performers[protocol.ActRun] = &roles.Run{Walls: newWalls(t, false)} }) {
		return
	}
	b, _ := newLayerBench(t, false)
	// What the attempts before this one have made is not there. It ends at the sixth.
	id, want := b.beginEdits(layeredCoders, "for i in d*/f*; do sed -i s/two/zwei/ $i; done; echo $WF_ATTEMPT >> tries; while [ $WF_ATTEMPT -lt 6 ]; do sleep 0.01; done; wc -l < tries > d1/tries; rm tries")
	want["d1/tries"] = "1\n"
	last := 0
	tried := func() bool {
		all, _ := filepath.Glob(filepath.Join(b.e.Copies, "*/*/upper/tries"))
		return slices.ContainsFunc(all, func(name string) bool {
			text, err := os.ReadFile(name)
			n, _ := strconv.Atoi(strings.TrimSpace(string(text))) // 0 of one that is not whole
			found := err == nil && n > last
			last = max(last, n)
			return found
		})
	}
	stages := []func() bool{
		found(b.e.Copies, "*/base-*/files", 1),      // the base has begun
		found(b.e.Copies, "*/base-*/files/d1/*", 1), // its files come
		found(b.e.Copies, "*/base-*/ready", 1),      // it is whole
		found(b.e.Copies, "*/*/ready", 2),           // and there is a copy over it
	}
	for range 5 {
		stages = append(stages, tried)
	}
	kills := b.killedAt(id, append(stages, found(b.dir, "d*/.wf-new-*", 1))...) // files of the merge are written
	if b.editsMerged(id, want); kills < 5 {
		t.Errorf("the process was killed %d times", kills)
	}
}

// A command that fails and is tried again begins in a layer of its own.
func TestC04ACommandBeginsAnewInItsLayer(t *testing.T) {
	b, _ := newLayerBench(t, false)
	b.lay(map[string]string{"a": "one\n"})
	yaml := strings.Replace(layeredCoders, "sandbox: on}", "sandbox: on, retry: {attempts: 3, delay: 1ms}}", 1)
	_, v := b.run(yaml, map[string]any{"items": []any{"echo $WF_ATTEMPT >> a; test $WF_ATTEMPT -ge 3", "true"}})
	b.done(v)
	if got := b.tree()["a"]; got != "one\n3\n" {
		t.Errorf("after three attempts: %q", got)
	}
	b.sound(v.ID)
}

// In layers a directory that was there before has no other name by rename(2): a role can have whole copies.
func TestC04WholeCopiesAreAskedFor(t *testing.T) {
	for _, whole := range []bool{false, true} {
		b, w := newLayerBench(t, false)
		b.lay(map[string]string{"d/a": "one"})
		yaml := strings.Replace(layeredCoders, "workspace: own,", fmt.Sprintf("workspace: {own: true, whole: %v},", whole), 1)
		_, v := b.run(yaml, map[string]any{"items": []any{"mv d e", "true"}})
		b.done(v)
		if d := cmp.Diff(map[string]string{"e/a": "one"}, b.tree()); d != "" {
			t.Error(d)
		}
		if whole != (*w.mounts == 0) {
			t.Errorf("whole %v: %d mounts", whole, *w.mounts)
		}
		b.sound(v.ID)
	}
}

// The tests of layers once more, as a user who may do nothing.
func TestC04LayersWithoutRoot(t *testing.T) {
	if testing.Short() {
		t.Skip("the same tests once more")
	}
	workspacetest.Unprivileged(t, "TestC04CopiesInLayersAreMerged", "-test.run=^TestC04(Copies|ManyCopies|ATree|Kills)", "-test.short")
}

// BenchmarkC04OwnCopy makes the copies of a fan-out of 50,000 files, but for the first one, of which the others take nothing or all.
func BenchmarkC04OwnCopy(b *testing.B) {
	for _, kind := range []string{"overlay", "copy"} {
		b.Run(kind, func(b *testing.B) {
			x, _ := newLayerBench(b, kind == "copy")
			x.e.Parallel = 1
			for i := range 50_000 {
				dir := filepath.Join(x.dir, fmt.Sprintf("d%d/e%d", i%50, i%500))
				if i < 500 {
					if err := os.MkdirAll(dir, 0o755); err != nil {
						b.Fatal(err)
					}
				}
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), []byte(strings.Repeat(fmt.Sprintln(i), 20)), 0o644); err != nil {
					b.Fatal(err)
				}
			}
			var each, taken time.Duration
			n := 0
			for b.Loop() {
				id, v := x.run(layeredCoders, map[string]any{"items": []any{"echo 1 > n1", "echo 2 > n2", "echo 3 > n3"}})
				x.done(v)
				e, k := x.ownTimes(id)
				each, taken, n = each+e, taken+k, n+1
			}
			b.ReportMetric(float64(each.Microseconds())/1e3/float64(n), "ms/copy")
			b.ReportMetric(float64(taken.Microseconds())/1e3/float64(n), "ms/visit")
		})
	}
}

// ownTimes are what a copy but the first one took, and what its command and its tree did, on the average of the visits of a run.
func (b *bench) ownTimes(id protocol.RunID) (each, taken time.Duration) {
	b.t.Helper()
	var before int64
	copies := 0
	for x, err := range b.e.Store.After(context.Background(), id, 0) {
		if err != nil {
			b.t.Fatal(err)
		}
		since := time.Duration(x.TS-before) * time.Microsecond
		switch before = x.TS; {
		case x.Type == protocol.EvOwnCopy:
			if copies++; copies > 1 {
				each += since
			}
		case x.Type == protocol.EvStepCompleted && copies > 1 && x.Step != nil && strings.HasPrefix(*x.Step, "coder"):
			taken += since
		}
	}
	return each / time.Duration(copies-1), taken / time.Duration(copies-1)
}
