package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const askOnce = `
wf: 1
name: ask
roles: {gate: {ask: Which database?}}
`

func TestCtrlCAtAQuestionSuspendsTheRunAndLeavesTheTerminalAsItWas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "ask.yaml", askOnce)
	p := atTerminal(t, dir, "wf", "run", "ask.yaml")
	p.shows("gate#1 asks: Which database?\r\n> ")
	p.press("\x03")
	if got := p.ends(); got != 130 {
		t.Errorf("exit %d, want 130:\n%s", got, p.all())
	}
	p.shows("waits, nothing is lost\r\nfix:   wf answer")
	if all := p.all(); strings.Contains(all, "\x1b") {
		t.Errorf("the terminal was asked something, or coloured: %q", all)
	}
	if d := cmp.Diff(p.found, p.left); d != "" {
		t.Errorf("the terminal has other settings than before:\n%s", d)
	}
}

func TestAWrongCommandLineDoesNotAskTheTerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := atTerminal(t, dir, "wf", "run", "--no-such-flag")
	if got := p.ends(); got != 2 {
		t.Errorf("exit %d, want 2:\n%s", got, p.all())
	}
	p.shows("--no-such-flag")
	if all := p.all(); strings.Contains(all, "\x1b") {
		t.Errorf("the terminal was asked something: %q", all)
	}
}

const askForm = `
wf: 1
name: join
roles:
  who:
    ask: Who are you?
    form:
      type: object
      required: [zip, name, age, size]
      properties:
        zip: {type: string}
        name: {type: string, minLength: 2, description: As on your passport}
        age: {type: integer, minimum: 18, default: 36}
        size: {enum: [small, large]}
        tea: {type: boolean}
        motto: {type: string}
outputs: {zip: "${{ steps.who.output.zip }}", name: "${{ steps.who.output.name }}", age: "${{ steps.who.output.age }}", size: "${{ steps.who.output.size }}", tea: "${{ steps.who.output.tea }}"}
`

func TestAFormIsFilledInAtTheTerminalFieldByField(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "join.yaml", askForm)
	p := atTerminal(t, dir, "wf", "run", "join.yaml")
	p.shows("who#1 asks: Who are you?\r\n  zip string, required\r\n> ")
	p.press("\r")
	p.shows("zip: a value is required")
	p.shows("\r\n> ")
	p.press("01234\r")
	p.shows("  name string, required\r\n    As on your passport\r\n> ")
	p.press("A\r")
	p.shows("    name: minLength: got 1, want 2\r\n> ")
	p.press("Ada\r")
	p.shows("  age integer, Enter is 36\r\n> ")
	p.press("old\r")
	p.shows("    age: got string, want integer\r\n> ")
	p.press("\r")
	p.shows("  size one of them, required\r\n    1  small\r\n    2  large\r\n> ")
	p.press("3\r")
	p.shows("    size: value must be one of 'small', 'large'\r\n> ")
	p.press("2\r")
	p.shows("  tea yes or no, may be left empty\r\n> ")
	p.press("yes\r")
	p.shows("  motto string, may be left empty\r\n> ")
	p.press("\r")
	if got := p.ends(); got != 0 {
		t.Fatalf("exit %d:\n%s", got, p.all())
	}
	for _, field := range []string{"zip: 01234", "name: Ada", "age: 36", "size: large", "tea: true"} {
		if !strings.Contains(p.all(), field+"\r\n") {
			t.Errorf("the outputs lack %q:\n%s", field, p.all())
		}
	}
}

func TestTheEndOfInputLeavesAFormOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "join.yaml", askForm)
	p := atTerminal(t, dir, "wf", "run", "join.yaml")
	p.shows("zip string, required\r\n> ")
	p.press("01234\r")
	p.shows("As on your passport\r\n> ")
	p.press("\x04")
	if got := p.ends(); got != 8 {
		t.Fatalf("exit %d:\n%s", got, p.all())
	}
	p.shows("--field zip=… --field name=…")
}

// F-38: a tool call that is asked for at the terminal is shown to its end, Enter answers nothing, and the
// reason of a denial reaches the model.
func TestAToolCallIsAskedForAtTheTerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "danger.yaml", "wf: 1\nname: danger\nlimits: {cost_usd: 1}\nroles: {a: {prompt: Work., tools: [write_file: ask], model: script/replies.yaml, timeout: 1m}}\n")
	write(t, dir, "replies.yaml", "a#1:\n  - {tool: write_file, args: {path: out.txt, content: \""+strings.Repeat("building ", 1_990)+"\\nthe last line\\n\"}}\n  - {text: Done.}\n")
	p := atTerminal(t, dir, "wf", "run", "danger.yaml")
	p.shows("a#1 asks:")
	p.shows("+the last line")
	p.shows("1  Allow once\r\n  2  Allow exactly this for the whole run\r\n  3  Deny\r\n")
	p.shows("> ")
	p.press("3 not in this directory\r")
	if got := p.ends(); got != 0 {
		t.Errorf("exit %d:\n%s", got, p.all())
	}
	if said, err := wfIn(dir, "replay", "-1", "-o", "jsonl").Output(); err != nil || !strings.Contains(string(said), "a person denied this call: not in this directory") {
		t.Errorf("the model did not read why: %v", err)
	}

	p = atTerminal(t, dir, "wf", "run", "danger.yaml")
	p.shows("3  Deny\r\n")
	p.shows("> ")
	p.press("\r")
	if got := p.ends(); got != 8 {
		t.Errorf("Enter alone: exit %d:\n%s", got, p.all())
	}
}
