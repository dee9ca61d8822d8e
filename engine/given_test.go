package engine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/engine"
	"wf/protocol"
)

// textOf is what a step said.
func textOf(b *bench, id protocol.RunID, step string) string {
	b.t.Helper()
	for _, s := range b.view(id).Steps {
		if s.ID == step {
			return s.Text
		}
	}
	b.t.Fatalf("no step %s", step)
	return ""
}

// leftInTemp are the directories of Given that are there.
func leftInTemp(t *testing.T) []string {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "wf-artifacts.*"))
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// A later role has the files of the roles that it names, as they were kept, whatever became of the workspace, and nothing is
// left behind. Expressions see them.
func TestO06bALaterRoleIsGivenTheFiles(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	b := newBench(t)
	id, v := b.run(`
wf: 1
name: given
roles:
  build: {run: 'mkdir -p dist/sub; printf one > dist/a; printf two > "dist/sub/b é"; printf "#!/bin/sh\necho ran" > dist/x; chmod +x dist/x; ln -s a dist/l; ln -s /etc/passwd dist/out', artifacts: [dist/**]}
  test: {run: 'rm -rf dist; echo report > report; exit 1', artifacts: [report]}
  none: {run: "true", artifacts: [nothing]}
  use:
    run: 'cd "$WF_ARTIFACTS"; find . | LC_ALL=C sort; cat build/dist/a "build/dist/sub/b é" build/dist/l test/report; build/dist/x; stat -c "%a %n" build build/dist/a build/dist/x'
    artifacts: {from: [test, build, none], paths: [mine]}
  see:
    set:
      files: "${{ steps.build.artifacts }}"
      n: "${{ steps.build.artifacts_count + steps.none.artifacts_count }}"
      some: "${{ map(filter(steps.build.artifacts, .mode != 'link'), .path) }}"
      whole: "${{ toJSON(steps.test) }}"
edges:
  - {from: build, to: test}
  - {from: test, to: none, on: failure}
  - {from: none, to: use, when: "len(steps.test.artifacts) == 1 && steps.test.artifacts[0].path == 'report'"}
  - {from: none, to: FAIL}
  - {from: use, to: see}
  - {from: see, to: END}
outputs: {all: "${{ steps.see.output }}"}
`, nil)
	if v.Status != done {
		t.Fatalf("%s: %s", v.Status, v.Reason)
	}
	want := `.
./build
./build/dist
./build/dist/a
./build/dist/l
./build/dist/sub
./build/dist/sub/b é
./build/dist/x
./none
./test
./test/report
onetwoonereport
ran
500 build
444 build/dist/a
555 build/dist/x`
	if got := textOf(b, id, "use#1"); got != want {
		t.Errorf("it sees\n%s", got)
	}
	for _, want := range []string{`"n":5`, `"some":["dist/a","dist/sub/b é","dist/x"]`, `"mode":"exec","path":"dist/x","size":18`, `"hash":"bafkrei`} {
		if !strings.Contains(string(v.Outputs), want) {
			t.Errorf("no %s in %s", want, v.Outputs)
		}
	}
	if strings.Contains(string(v.Outputs), `artifacts\"`) {
		t.Errorf("a step as a whole has its files: %s", v.Outputs)
	}
	if left := leftInTemp(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	b.sound(id)
}

// Of a fan-out each item has a directory, and its index stands before the path; of a sub-workflow all files count, those of
// its own sub-workflows too, of each path the newest.
func TestO06bFilesOfItemsAndSubWorkflowsAreGiven(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	b := newBench(t)
	b.child("wf: 1\nname: child\nroles:\n  a: {run: 'mkdir -p o; echo 1 > o/a; echo 1 > o/both', artifacts: [o/a, o/both]}\n  b: {run: 'echo 2 > o/both; echo 2 > o/b', artifacts: [o/b*]}\n" +
		"edges:\n  - {from: START, to: a}\n  - {from: a, to: b}\n  - {from: b, to: END}\n")
	id, v := b.run(`
wf: 1
name: parent
roles:
  list: {set: {all: "${{ 1..3 }}"}}
  item: {run: 'rm -rf i?; test "$N" = 2 || { mkdir -p "i$N"; echo "$N" > "i$N/f"; }', env: {N: "${{ item }}"}, artifacts: ["i*/f"]}
  sub: {workflow: ./child.yaml}
  use: {run: 'cd "$WF_ARTIFACTS"; find . -type f -o -type d -empty | LC_ALL=C sort; cat sub/o/both', artifacts: {from: [item, sub]}}
edges:
  - {from: START, to: list}
  - {from: list, to: item, for_each: output.all, max_parallel: 1}
  - {from: item, to: sub}
  - {from: sub, to: use}
  - {from: use, to: END}
outputs: {items: "${{ map(steps.item.artifacts, .path) }}", sub: "${{ map(steps.sub.artifacts, .path) }}"}
`, nil)
	if v.Status != done {
		t.Fatalf("%s: %s", v.Status, v.Reason)
	}
	if got, want := textOf(b, id, "use#1"), "./item/0/i1/f\n./item/1\n./item/2/i3/f\n./sub/o/a\n./sub/o/b\n./sub/o/both\n2"; got != want {
		t.Errorf("it sees\n%s", got)
	}
	if got := string(v.Outputs); !strings.Contains(got, `"sub":["o/a","o/b","o/both"]`) || !strings.Contains(got, `"items":["0/i1/f","2/i3/f"]`) {
		t.Errorf("%s", got)
	}
	b.sound(id)
}

// A role that has not run before is no empty directory but a failure; where it ran in an earlier round, that counts.
func TestO06bARoleThatHasNotRunGivesNoFiles(t *testing.T) {
	b := newBench(t)
	_, v := b.run(`
wf: 1
name: missing
roles:
  first: {set: {n: 1}}
  build: {run: "echo > f", artifacts: [f]}
  use: {run: "true", artifacts: {from: [build]}}
  after: {set: {n: 1}}
edges:
  - {from: START, to: first}
  - {from: first, to: build, when: output.n == 2}
  - {from: first, to: use}
  - {from: build, to: use}
  - {from: use, to: after, on: failure}
  - {from: use, to: END}
  - {from: after, to: END}
`, nil)
	use := v.Steps[1]
	if v.Status != done || use.Error == nil || use.Error.Code != "artifacts_missing" || use.Error.Message != "there are no files of build: it has not run before use on this branch" {
		t.Errorf("%s (%s): %+v", v.Status, v.Reason, use.Error)
	}
}

// An expression sees 1,000 files at most, and how many there are.
func TestO06bAnExpressionSeesAThousandFiles(t *testing.T) {
	for _, n := range []int{999, 1000, 1001} {
		b := newBench(t)
		_, v := b.run(fmt.Sprintf(`
wf: 1
name: many
roles:
  build: {run: 'mkdir d; cd d; for i in $(seq 10000 %d); do : > $i; done', artifacts: [d]}
  see: {set: {seen: "${{ len(steps.build.artifacts) }}", n: "${{ steps.build.artifacts_count }}", last: "${{ steps.build.artifacts[len(steps.build.artifacts)-1].path }}"}}
edges: [{from: START, to: build}, {from: build, to: see}, {from: see, to: END}]
outputs: {all: "${{ steps.see.output }}"}
`, 9999+n), nil)
		if want := fmt.Sprintf(`{"all":{"last":"d/%d","n":%d,"seen":%d}}`, 9999+min(n, 1000), n, min(n, 1000)); string(v.Outputs) != want {
			t.Errorf("%s: %s, want %s", v.Status, v.Outputs, want)
		}
	}
}

// A fork goes on with the files of the steps that it shares, also when the workspace has none of them any more; so does the
// attempt behind one that was interrupted, in a directory of its own.
func TestO06bForksAndFurtherAttemptsAreGivenTheFiles(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	b := newBench(t)
	const yaml = `
wf: 1
name: again
roles:
  build: {run: 'echo first > f', artifacts: [f]}
  use: {run: 'rm -f f; cat "$WF_ARTIFACTS/build/f"; echo "$WF_ARTIFACTS" >> dirs; test -e go || { touch go; exit 1; }', retry: {attempts: 2, delay: 1ms}, artifacts: {from: [build]}}
edges: [{from: START, to: build}, {from: build, to: use}, {from: use, to: END}]
`
	id, v := b.run(yaml, nil)
	if v.Status != done || textOf(b, id, "use#1") != "first" {
		t.Fatalf("%s: %s", v.Status, v.Reason)
	}
	dirs, err := os.ReadFile(filepath.Join(b.dir, "dirs"))
	if lines := strings.Fields(string(dirs)); err != nil || len(lines) != 2 || lines[0] == lines[1] {
		t.Errorf("the attempts have %q, %v", dirs, err)
	}
	fork, err := b.e.Fork(t.Context(), id, engine.ForkOptions{At: b.seqOf(id, "use#1", protocol.EvStepStarted) - 1})
	if err != nil {
		t.Fatal(err)
	}
	if v = b.drive(fork); v.Status != done || textOf(b, fork, "use#1") != "first" {
		t.Errorf("the fork: %s: %s", v.Status, v.Reason)
	}
	b.sound(fork)
	if left := leftInTemp(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// An agent may write in the workspace: nothing that is given lies there.
func TestO06bNothingIsGivenWithinTheWorkspace(t *testing.T) {
	b := newBench(t)
	t.Setenv("TMPDIR", filepath.Join(b.dir, "tmp"))
	if err := os.Mkdir(filepath.Join(b.dir, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, v := b.run(`
wf: 1
roles:
  build: {run: 'echo one > a', artifacts: [a]}
  use: {run: 'cat "$WF_ARTIFACTS/build/a"', artifacts: {from: [build]}}
edges:
  - {from: build, to: use}
  - {from: use, to: END}
`, nil)
	if v.Status != protocol.Suspended || !strings.Contains(v.Reason, "lies in the workspace") {
		t.Errorf("%s: %s", v.Status, v.Reason)
	}
}
