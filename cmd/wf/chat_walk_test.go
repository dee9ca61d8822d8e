package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"wf/agentkit/modeltest"
)

// walkModel answers the chat of TestAWalkThroughTheChat by what was said last.
func walkModel(t *testing.T) *modeltest.Server {
	return modeltest.Serve(t, func(r modeltest.Request) modeltest.Answer {
		said, results := lastSaid(r)
		var body struct{ Model string }
		if err := json.Unmarshal(r.Body, &body); err != nil {
			t.Error(err)
		}
		switch {
		case strings.HasPrefix(said, "a line of what is pasted"):
			return modeltest.Text(fmt.Sprintf("Pasted: %d bytes.", len(said)))
		case strings.Contains(said, "Which model"):
			return modeltest.Text("I am " + body.Model + ".")
		case strings.Contains(said, "buy milk"): // the text of the file
			return modeltest.Text("It says what to buy.")
		case strings.Contains(said, "only to ten"):
			return modeltest.Text("Counted to ten.")
		case strings.Contains(said, "count"):
			return modeltest.Answer{Say: []modeltest.Piece{{Text: "Half of it\x1b[2J\x1b]0;owned\x07\n"}}, Stall: true}
		case strings.Contains(said, "bread") && results == 0:
			return modeltest.Calls(modeltest.Call{ID: "e1", Name: "edit_file", Args: `{"path":"note.txt","old":"buy milk","new":"buy bread"}`})
		case strings.Contains(said, "wine") && results == 0:
			return modeltest.Calls(modeltest.Call{ID: "e2", Name: "edit_file", Args: `{"path":"note.txt","old":"buy bread","new":"buy wine"}`})
		case strings.Contains(said, "wine") && strings.Contains(string(r.Body), "not on weekdays"):
			return modeltest.Text("No wine then.")
		}
		return modeltest.Text("Done.")
	})
}

// kill signals the process whose id is in the file pid.
func (p *pane) kill(dir string, sig syscall.Signal) {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		p.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		p.t.Fatal(err)
	}
	if err := syscall.Kill(pid, sig); err != nil {
		p.t.Fatal(err)
	}
}

// isPutBack waits until the terminal, on which cat reads by now, is as it was before a screen was drawn on it.
func (p *pane) isPutBack() {
	p.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for {
		set := strings.TrimSpace(p.tmux("display-message", "-p", "#{alternate_on} #{cursor_flag}"))
		if set == "0 1" {
			break
		}
		select {
		case <-tick.C:
		case <-deadline:
			p.t.Fatalf("the terminal is left with alternate screen and cursor %s", set)
		}
	}
	p.press("a line", "Enter")
	p.shows("a line\na line\n") // what is typed, and what cat read when the line was complete
}

// A person's way through the chat: what they write while the agent works, Esc, a redirection, a file that they name, an edit
// that they allow by a key and one that they deny with a reason, another model, another chat, a second screen, and the death of
// the process that drives the chat.
func TestAWalkThroughTheChat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "note.txt", "buy milk\n")
	write(t, dir, "built.txt", "not for agents\n")
	write(t, dir, ".gitignore", "built.txt\n")
	write(t, dir, "talk.yaml", "wf: 1\nname: talk\nlimits: {cost_usd: 1}\ndefaults: {timeout: 1m}\nroles:\n  you: {ask: \"\"}\n  wf: {prompt: You answer., tools: [read_file, {edit_file: ask}]}\n"+
		"edges:\n  - {from: START, to: you}\n  - {from: you, to: END, when: output.text == \"/end\"}\n  - {from: you, to: wf, prompt: \"${{ output.text }}\"}\n  - {from: wf, to: you, limit: 100}\n")
	s := walkModel(t)
	s.Models = []string{"gpt-4o-mini", "gpt-4.1-nano", "gpt-5-nano"}
	p := inTmux(t, dir, "sh -c 'echo $$ >pid; exec wf chat talk.yaml --model openai/gpt-4o-mini'; echo left with $?; cat", "OPENAI_BASE_URL="+s.URL, "OPENAI_API_KEY=k")
	p.shows("your turn", "openai/gpt-4o-mini")

	p.press("count to a million", "Enter")
	p.shows("Half of it", "working", "Esc stops")
	p.press("Escape")
	p.shows("stopped · /resume goes on")
	p.press("only to ten", "Enter")
	p.shows("Counted to ten.", "your turn", "$0.0")

	p.press("what is in @no")
	p.shows("  note.txt")
	p.press("Tab")
	p.shows("> what is in @note.txt")
	p.press("?", "Enter")
	p.shows("The file note.txt (9 bytes):", "It says what to buy.")
	p.press("show me @/etc/passwd", "Enter")
	p.shows("@/etc/passwd leads out of the workspace", "> show me @/etc/passwd")
	p.press("C-c")

	p.press("make it bread", "Enter")
	p.shows("wants to call edit_file", "-buy milk", "+buy bread", "y  Allow once", "a key, or")
	p.press("Enter")
	p.press("y")
	p.shows("Done.", "your turn", "edit_file: allow")
	if text, err := os.ReadFile(filepath.Join(dir, "note.txt")); err != nil || string(text) != "buy bread\n" {
		t.Errorf("the file holds %q, %v", text, err)
	}
	p.press("make it wine", "Enter")
	p.shows("+buy wine", "a key, or")
	p.press("n")
	p.shows("> deny:", "Enter denies the call")
	p.press("not on weekdays", "Enter")
	p.shows("No wine then.", "your turn")

	p.press("/modle", "Enter")
	p.shows("did you mean /model?")
	p.press("/model", "Enter")
	p.shows("● openai/gpt-4o-mini", "openai/gpt-5-nano", "$0.05 in, $0.4 out")
	p.press("nano")
	p.shows("/ nano (2 of")
	p.press("Down", "Enter")
	p.shows("the model is openai/gpt-5-nano from here on", "your turn")
	p.press("Which model are you?", "Enter")
	p.shows("I am gpt-5-nano.", "your turn", "openai/gpt-5-nano")

	p.press("/sessions", "Enter")
	p.shows("╭─ Chats", "● ", "count to a million")
	p.press("zebra")
	p.shows("no row matches")
	p.press("Escape")
	p.shows("I am gpt-5-nano.", "your turn")
	p.press("/sessions", "Enter")
	p.shows("╭─ Chats", "● ", "count to a million")
	p.press("Down", "Enter")
	now := p.shows("now run", "No wine then.", "your turn", "openai/gpt-4o-mini")
	if strings.Contains(now, "I am gpt-5-nano") {
		t.Errorf("the earlier chat has the later words:\n%s", now)
	}

	two := inTmux(t, dir, "wf chat -2; echo left with $?; cat", append(p.env, "NO_COLOR=1")...)
	two.shows("No wine then.", "your turn")
	p.press("count to a million again", "Enter")
	two.shows("you count to a million again", "Half of it", "working")
	place := place{t, dir, append(p.env, "COLUMNS=100")}
	says := func(word, not string) {
		t.Helper()
		for _, args := range [][]string{{"ls"}, {"show", "-1"}} {
			if out := string(place.wf(0, args...)); !strings.Contains(out, word) || strings.Contains(out, not) {
				t.Errorf("wf %s does not say %s:\n%s", args, word, out)
			}
		}
	}
	says("running", "interrupted")
	p.kill(dir, syscall.SIGKILL)
	two.shows("no process drives it · /resume goes on")
	p.isPutBack()
	says("interrupted", "running")
	two.press("only to ten", "Enter")
	two.shows("Counted to ten.", "your turn")
	two.tmux("resize-window", "-x", "40", "-y", "12")
	two.shows("Counted to ten.", "your turn")
	paste := filepath.Join(dir, "paste")
	write(t, dir, "paste", strings.Repeat("a line of what is pasted\n", 8000)+"and the model?")
	two.tmux("load-buffer", paste)
	two.tmux("paste-buffer", "-p")
	two.shows("[pasted 1: 8001 lines, 200014 bytes]")
	two.press("Enter")
	two.shows("an agent reads the first 32768", "[pasted 1: 8001 lines, 200014 bytes]")
	two.press("Enter")
	two.shows("Pasted: 327", "your turn")
	if now := two.tmux("capture-pane", "-p", "-e"); regexp.MustCompile(`\x1b\[[0-9;]*(3[0-7]|4[0-7])[0-9;]*m`).MatchString(now) {
		t.Errorf("there are colours with NO_COLOR:\n%q", now)
	}
	two.leave()
	two.shows("left with 0")
	place.wf(0, "verify", "--all")
	place.wf(0, "replay", "-1", "--check")
	place.wf(0, "replay", "-2", "--check")
}

// The model is changed before the first message, and after Esc: then the new one hears what was interrupted and what is
// written next, and nothing goes on before.
func TestTheModelIsChangedAtEveryPlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := walkModel(t)
	p := inTmux(t, dir, "wf chat --model openai/one; echo left with $?; cat", "OPENAI_BASE_URL="+s.URL, "OPENAI_API_KEY=k")
	p.shows("your turn", "openai/one")
	p.press("/model openai/two", "Enter")
	p.shows("the model is openai/two from here on", "your turn")
	p.press("Which model are you?", "Enter")
	p.shows("I am two.", "your turn", "unpriced · openai/two")
	p.press("count", "Enter")
	p.shows("Half of it", "Esc stops")
	p.press("Escape")
	p.shows("stopped · /resume goes on")
	p.press("/model openai/three", "Enter")
	p.shows("the model is openai/three from here on", "what you write now", "no process drives it")
	p.press("Which model are you now?", "Enter")
	p.shows("I am three.", "your turn", "openai/three")
	p.leave()
	p.shows("left with 0")
	place := place{t, dir, p.env}
	place.wf(0, "verify", "--all")
	for _, run := range []string{"-1", "-2"} {
		place.wf(0, "replay", run, "--check")
	}
	if out := string(place.wf(0, "messages", "-1:wf#2")); !strings.Contains(out, "count") || !strings.Contains(out, "Which model are you now?") {
		t.Errorf("the agent was sent\n%s", out)
	}
}
