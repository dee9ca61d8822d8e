package main

import (
	"os/exec"
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
	p.onScreen("gate#1 asks: Which database?\n  >")
	p.press("not this\x03")
	if got := p.ends(); got != 130 {
		t.Errorf("exit %d, want 130:\n%s", got, p.screen())
	}
	p.onScreen("waits, nothing is lost\nfix:   wf answer")
	if d := cmp.Diff(p.found, p.left); d != "" {
		t.Errorf("the terminal has other settings than before:\n%s", d)
	}
}

const askTwice = `
wf: 1
name: twice
roles:
  think: {run: "sleep 0.3"}
  gate: {ask: Which database?}
  sure: {ask: Sure?}
edges: [{from: START, to: think}, {from: think, to: gate}, {from: gate, to: sure}, {from: sure, to: END}]
outputs: {gate: "${{ steps.gate.output.text }}", size: "${{ len(steps.gate.output.text) }}", sure: "${{ steps.sure.output.text }}"}
`

// An answer may have several lines, pasted or written. What is pasted answers one question and no other, and what was
// typed before it was asked is no answer.
func TestAPlainQuestionTakesSeveralLines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "twice.yaml", askTwice)
	p := atTerminal(t, dir, "wf", "run", "twice.yaml")
	p.onScreen("think#1")
	p.press("yes\ryes\r") // nothing was asked yet
	p.onScreen("gate#1 asks: Which database?\n  >")
	p.press("\r")
	p.onScreen("an answer is required")
	p.press("one\x1b\rtwo\ntwo and a half\x1b[200~\nthree\nfour\x1b[201~\r") // Alt+Enter, Ctrl+J, pasted
	p.onScreen("sure#1 asks: Sure?\n  >")
	p.press("yes\r")
	if got := p.ends(); got != 0 || !strings.Contains(p.screen(), "gate: one\n    two\n    two and a half\n    three\n    four\n") || !strings.Contains(p.screen(), "sure: yes\n") {
		t.Errorf("exit %d:\n%s", got, p.screen())
	}
	if d := cmp.Diff(p.found, p.left); d != "" {
		t.Errorf("the terminal has other settings than before:\n%s", d)
	}

	p = atTerminal(t, dir, "wf", "run", "twice.yaml")
	p.onScreen("gate#1 asks: Which database?\n  >")
	p.press("\x1b[200~" + strings.Repeat("0123456789abcde\r", 200<<10/16) + "\x1b[201~")
	p.onScreen("[pasted 1: 12800 lines, 204800 bytes]")
	p.press("\r")
	p.onScreen("sure#1 asks: Sure?\n  >")
	p.press("\x04")
	if got := p.ends(); got != 8 {
		t.Errorf("exit %d, want 8:\n%s", got, p.screen())
	}
	out, err := wfIn(dir, "show", "-1:gate#1", "-o", "json").Output()
	if n := strings.Count(string(out), "0123456789abcde"); err != nil || n < 200<<10/16 {
		t.Errorf("%d of the lines are in the answer, %v", n, err)
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
outputs: {zip: "${{ steps.who.output.zip }}", name: "${{ steps.who.output.name }}", age: "${{ steps.who.output.age }}", size: "${{ steps.who.output.size }}", tea: "${{ steps.who.output.tea }}", motto: "${{ steps.who.output.motto }}"}
`

// F-07: a form is filled in field by field as it was written, and what does not fit is asked for again beside its field.
func TestAFormIsFilledInAtTheTerminalFieldByField(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "join.yaml", askForm)
	p := atTerminal(t, dir, "wf", "run", "join.yaml")
	p.onScreen("who#1 asks: Who are you?\n")
	p.onScreen("zip  string, required  (1 of 6)")
	p.press("\r")
	p.onScreen("zip: a value is required")
	p.press("01234\r")
	p.onScreen("  zip: 01234\n  name  string, required  (2 of 6)\n    As on your passport\n")
	p.press("A\r")
	p.onScreen("    name: minLength: got 1, want 2")
	p.press("da\r")
	p.onScreen("age  integer, Enter is 36")
	p.press("old\r")
	p.onScreen("    age: got string, want integer")
	p.press("\x15\r") // Ctrl-U
	p.onScreen("size  one of them, required  (4 of 6)\n    1  small\n    2  large\n")
	p.press("3\r")
	p.onScreen("    size: value must be one of 'small', 'large'")
	p.press("\x7f2\r")
	p.onScreen("tea  yes or no, may be left empty")
	p.press("yes\r")
	p.onScreen("motto  string, may be left empty")
	p.press("one\x1b\rtwo\x1b[200~\nthr\x1b[31mee\x1b[201~\r") // Alt+Enter, then pasted
	if got := p.ends(); got != 0 {
		t.Fatalf("exit %d:\n%s", got, p.screen())
	}
	for _, field := range []string{"zip: 01234", "name: Ada", "age: 36", "size: large", "tea: true", "motto: one\n    two\n    three"} {
		if !strings.Contains(p.screen(), field+"\n") {
			t.Errorf("the outputs lack %q:\n%s", field, p.screen())
		}
	}
	for _, field := range []string{"zip: 01234", "age: 36", "size: large"} { // in the form that is left, and in the outputs
		if n := strings.Count(p.screen(), field+"\n"); n != 2 {
			t.Errorf("%q is there %d times:\n%s", field, n, p.screen())
		}
	}
	if d := cmp.Diff(p.found, p.left); d != "" {
		t.Errorf("the terminal has other settings than before:\n%s", d)
	}
}

// A form that is left stays open: the run waits, and what is shown then fills it in, at the terminal or by a command that is copied.
func TestAFormThatIsLeftIsAnsweredLater(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{"Esc": "\x1b", "Ctrl-C": "\x03", "Ctrl-D": "\x04"} {
		exit := 8
		if name == "Ctrl-C" {
			exit = 130
		}
		dir := t.TempDir()
		write(t, dir, "join.yaml", askForm)
		p := atTerminal(t, dir, "wf", "run", "join.yaml")
		p.onScreen("zip  string, required")
		p.press("01234\r")
		p.onScreen("As on your passport")
		p.press(key)
		if got := p.ends(); got != exit {
			t.Fatalf("%s: exit %d:\n%s", name, got, p.screen())
		}
		_, next, found := strings.Cut(p.screen(), "next   ")
		if !found || !strings.Contains(p.screen(), "name   string, required       As on your passport") {
			t.Fatalf("%s: the fields, and how they are answered, are not told:\n%s", name, p.screen())
		}
		next, more, _ := strings.Cut(next, "\n")
		if len(next) >= 100-len("  next   ") { // as long as a line of the terminal
			next += strings.SplitN(more, "\n", 2)[0]
		}
		cmd := exec.Command("sh", "-c", next)
		cmd.Dir, cmd.Env = dir, p.cmd.Env
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "name: ……") {
			t.Errorf("%s: %s: %v\n%s", name, next, err, out)
		}
	}
}

// Where no value is known that a form takes, the command that is shown asks for the fields at the terminal.
func TestWfAnswerAsksForTheFieldsOfAForm(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "code.yaml", "wf: 1\nname: code\nroles:\n  gate:\n    ask: Which one?\n    choices: [yes, no]\n    form: {type: object, required: [code], properties: {code: {type: string, pattern: '^[A-Z]{3}-[0-9]$'}, wide: {type: string}}}\n"+
		"outputs: {code: \"${{ steps.gate.output.code }}\", wide: \"${{ steps.gate.output.wide }}\", choice: \"${{ steps.gate.output.choice }}\"}\n")
	if out, err := wfIn(dir, "run", "code.yaml", "--no-input").CombinedOutput(); err == nil || !strings.Contains(string(out), "wf answer") || strings.Contains(string(out), "--field") {
		t.Fatalf("%v\n%s", err, out)
	}
	p := atTerminal(t, dir, "wf", "answer", "-1")
	p.onScreen("answer  one of them, required  (1 of 3)\n    1  yes\n    2  no\n")
	p.press("maybe\r")
	p.onScreen("answer: pick one by its number or name")
	p.press("\x152\r")
	p.onScreen("code  string, required")
	p.press("abc\r")
	p.onScreen("code: 'abc' does not match pattern")
	p.press("\x15ABC-1\r")
	p.onScreen("wide  string")
	p.press("日本\x1b[Z") // Shift+Tab
	p.onScreen("> ABC-1")
	p.press("\x7f2\r")
	p.onScreen("> 日本")
	p.press("\r")
	if got := p.ends(); got != 0 || !strings.Contains(p.screen(), "choice: no\n  code: ABC-2\n  wide: 日本\n") {
		t.Errorf("exit %d:\n%s", got, p.screen())
	}
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
	p.onScreen("a number or ↑ ↓ picks one")
	p.press("3 not in this directory\r")
	if got := p.ends(); got != 0 {
		t.Errorf("exit %d:\n%s", got, p.all())
	}
	if said, err := wfIn(dir, "replay", "-1", "-o", "jsonl").Output(); err != nil || !strings.Contains(string(said), "a person denied this call: not in this directory") {
		t.Errorf("the model did not read why: %v", err)
	}

	p = atTerminal(t, dir, "wf", "run", "danger.yaml")
	p.onScreen("a number or ↑ ↓ picks one")
	p.press("\r")
	p.onScreen("an answer is required")
	p.press("\x1b")
	if got := p.ends(); got != 8 {
		t.Errorf("Enter alone, and Esc: exit %d:\n%s", got, p.all())
	}
}
