package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

const manyYAML = `
wf: 1
name: many
limits: {steps: 100000}
roles:
  each: {set: {v: "${{ [1, 2][item % 1500 == 7 ? 9 : 0] }}"}, continue_on_error: true}
  done: {set: {ok: "yes"}}
edges:
  - {from: START, to: each, for_each: "0..9999"}
  - {from: each, to: done}
  - {from: done, to: END}
`

// F-23: 10,000 items are a line wherever a run is shown, with the failed ones below it.
func TestTenThousandItemsAreOneLine(t *testing.T) {
	if testing.Short() {
		t.Skip("two runs of 10,000 items")
	}
	t.Parallel()
	p := newPlace(t)
	write(t, p.dir, "many.yaml", manyYAML)
	out, err := wfIn(p.dir, "run", "many.yaml").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	has := func(what string, out []byte, lines int, wants ...string) {
		t.Helper()
		if n := strings.Count(string(out), "\n"); n > lines {
			t.Errorf("%s has %d lines, at most %d are wanted", what, n, lines)
		}
		for _, want := range wants {
			if !regexp.MustCompile(want).Match(out) {
				t.Errorf("%s has no %s:\n%s", what, want, out)
			}
		}
	}
	total := `10,000 items: 9,993 ok, 7 failed in \d`
	has("wf run", out, 40, `each#1  10,000 items started\n`, `each#1\[9007\]  completed failed`, `each#1  `+total)
	has("wf show", p.wf(0, "show", "-1"), 20, `(?m)✗  each#1 +\S+  10,000 items: 9,993 ok, 7 failed$`, `✗  each#1\[9007\] .*index out of range|✗  each#1\[9007\] .*expression`, `done#1`)
	has("wf log", p.wf(0, "log", "-1"), 40, `each#1  `+total)
	has("wf watch", p.wf(0, "watch", "-1"), 40, `each#1  `+total)

	c := atTerminal(t, p.dir, "wf", "run", "many.yaml")
	if got := c.ends(); got != 0 {
		t.Fatalf("exit %d:\n%s", got, c.screen())
	}
	shown := c.all()
	if n := strings.Count(c.screen(), "each#1[") + strings.Count(shown, "each#1 "); !strings.Contains(shown, "items: ") || n == 0 {
		t.Errorf("nothing is told of the items:\n%s", shown)
	}
	if named := len(regexp.MustCompile(`each#1\[\d+\]`).FindAllString(shown, -1)); named != 14 { // an attempt and an end of each that failed
		t.Errorf("%d lines are of single items", named)
	}
	if !regexp.MustCompile(`✗ each#1 +`+total).MatchString(c.screen()) || !strings.Contains(shown, "Ctrl-C suspends safely") {
		t.Errorf("the end is not told:\n%s", c.screen())
	}
}

// A command that exits with another code than 0 is seen in a fan-out, below, at and beyond what is folded.
func TestRedItemsAreNotGreen(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	write(t, p.dir, "red.yaml", `
wf: 1
name: red
inputs: {n: {type: integer, required: true}}
defaults: {timeout: 1m}
roles:
  few: {set: {list: "${{ 0..(inputs.n - 1) }}"}}
  each: {run: 'test "$N" != 7', env: {N: "${{ item }}"}, continue_on_error: true}
edges:
  - {from: START, to: few}
  - {from: few, to: each, for_each: output.list, max_parallel: 8}
  - {from: each, to: END}
`)
	for n, want := range map[string]string{
		"10": `(?m)^  !  each#1\[7\]  +\S+ +exit 1 `,
		"11": `(?m)^  !  each#1  +\S+  11 items: 10 ok, 1 exit 1\n  !  each#1\[7\] .* exit 1 `,
		"50": `(?m)^  !  each#1  +\S+  50 items: 49 ok, 1 exit 1\n  !  each#1\[7\] .* exit 1 `,
	} {
		p.wf(0, "run", "red.yaml", "-q", "-i", "n="+n)
		if out := p.wf(0, "show", "-1"); !regexp.MustCompile(want).Match(out) {
			t.Errorf("%s items:\n%s", n, out)
		}
	}
}

// Items that are sub-workflows fold as others do, a failed one says which run it is, and what ended before a run went on counts.
func TestItemsThatAreSubWorkflowsFold(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	write(t, p.dir, "part.yaml", `
wf: 1
name: part
inputs: {n: {type: integer, required: true}}
defaults: {timeout: 1m}
roles:
  each: {run: 'test "$N" != 3 || test -e mended', env: {N: "${{ inputs.n }}"}}
edges:
  - {from: START, to: each, for_each: "0..11"}
  - {from: each, to: END}
`)
	write(t, p.dir, "whole.yaml", `
wf: 1
name: whole
roles:
  sub: {workflow: part.yaml, with: {n: "${{ item }}"}}
edges:
  - {from: START, to: sub, for_each: "0..19"}
  - {from: sub, to: END}
`)
	has := func(out []byte, want string) {
		t.Helper()
		if !regexp.MustCompile(want).Match(out) {
			t.Errorf("there is no %s:\n%s", want, out)
		}
	}
	out, _ := wfIn(p.dir, "run", "whole.yaml").CombinedOutput()
	has(out, `sub#1  20 items: 19 ok, 1 not over in `)
	has(p.wf(0, "show", "-1"), `(?m)!  sub#1  +\S+  20 items: 19 ok, 1 parked\n  !  sub#1\[3\] .* its run [0-9A-Z]+ is suspended`)
	write(t, p.dir, "mended", "")
	out, err := wfIn(p.dir, "resume", "-1").CombinedOutput()
	has(out, `sub#1  20 items: 20 ok in `)
	if strings.Contains(string(out), "sub#1[") || err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
	has(p.wf(0, "show", "-1"), `(?m)✓  sub#1  \S+  20 items: 20 ok$`)
	child := regexp.MustCompile(`its run ([0-9A-Z]+) is`).FindSubmatch(p.wf(0, "log", "-1"))
	if child == nil {
		t.Fatal("the log does not name the run of the item")
	}
	has(p.wf(0, "show", string(child[1])), `(?m)✓  each#1  \S+  12 items: 12 ok$`)
}

// What a run goes on with that was answered at the terminal counts with what had ended before.
func TestAnItemThatIsAnsweredAtTheTerminalCounts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "ask.yaml", `
wf: 1
name: ask
roles:
  each: {set: {v: "${{ item }}"}}
  gate: {ask: "May item ${{ item }} go?"}
edges:
  - {from: START, to: each, for_each: "0..29"}
  - {from: each, to: gate, for_each: "0..10", max_parallel: 11}
  - {from: gate, to: END}
`)
	p := atTerminal(t, dir, "wf", "run", "ask.yaml")
	for i := range 11 {
		p.shows(fmt.Sprintf("gate#1[%d] asks: May item %d go?", i, i))
		p.shows("Enter takes it")
		p.press("yes\r")
	}
	if got := p.ends(); got != 0 {
		t.Fatalf("exit %d:\n%s", got, p.all())
	}
	for _, want := range []string{`✓ each#1 +30 items: 30 ok in `, `✓ gate#1 +11 items: 11 ok in `} {
		if n := len(regexp.MustCompile(want).FindAllString(p.all(), -1)); n != 1 {
			t.Errorf("%s is there %d times:\n%s", want, n, p.all())
		}
	}
}
