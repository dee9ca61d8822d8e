package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"wf/agentkit/modeltest"
)

// pane is a terminal of tmux with a program in it.
type pane struct {
	t      *testing.T
	socket string
	env    []string
}

// inTmux runs a command line in a terminal of its own, of 80 columns and 24 rows.
func inTmux(t *testing.T, dir, line string, env ...string) *pane {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed")
	}
	p := &pane{t: t, socket: filepath.Join(t.TempDir(), "tmux")}
	p.env = append(os.Environ(), "HOME="+dir, "WF_STORE="+filepath.Join(dir, ".wf"), "XDG_STATE_HOME="+filepath.Join(dir, "state"), "USER=ada", "TERM=xterm-256color", "LANG=C.UTF-8", "TMUX=", "SHELL=/bin/sh")
	p.env = append(p.env, env...)
	lives := filepath.Join(filepath.Dir(p.socket), "lives") // a pipe that all processes of the terminal hold
	if err := syscall.Mkfifo(lives, 0o600); err != nil {
		t.Fatal(err)
	}
	gone, err := os.OpenFile(lives, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	p.tmux("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "-c", dir, fmt.Sprintf("exec 9>'%s'; %s", lives, line))
	t.Cleanup(func() {
		p.tmux("kill-server")
		defer gone.Close()
		if err := gone.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Error(err)
		}
		if _, err := io.Copy(io.Discard, gone); err != nil {
			t.Errorf("processes of the terminal are still there: %v", err)
		}
	})
	return p
}

func (p *pane) tmux(args ...string) string {
	p.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-S", p.socket, "-u"}, args...)...)
	cmd.Env = p.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("tmux %s: %v\n%s", args, err, out)
	}
	return string(out)
}

func (p *pane) press(keys ...string) {
	p.t.Helper()
	p.tmux(append([]string{"send-keys"}, keys...)...)
}

// leave ends a chat, and waits until it is gone.
func (p *pane) leave() {
	p.t.Helper()
	p.press("C-c")
	p.shows("Ctrl+C again leaves")
	p.press("C-c")
	p.shows("stays as it is; wf chat")
}

func (p *pane) screen() string { return p.tmux("capture-pane", "-p") }

// shows waits until all the texts are on the screen.
func (p *pane) shows(texts ...string) string {
	p.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for {
		now, missing := p.screen(), ""
		for _, text := range texts {
			if !strings.Contains(now, text) {
				missing = text
			}
		}
		if missing == "" {
			return now
		}
		select {
		case <-tick.C:
		case <-deadline:
			p.t.Fatalf("the terminal never shows %q:\n%s", missing, now)
		}
	}
}

const chatReplies = `
wf#1:
  - {tool: list_files, args: {path: .}}
  - {text: "There is one note.", usage: {input: 1000, output: 40}}
wf#2:
  - {text: "It says: buy milk.", usage: {input: 1200, output: 30}}
`

// A chat in a real terminal: it is talked with, killed, gone on with, forked, and is a run as
// any other afterwards.
func TestB12AChatInARealTerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "note.txt", "buy milk\n")
	working := make(chan struct{})
	slow := modeltest.Text("Slowly said.")
	slow.Before = func() {
		select {
		case <-working:
		case <-t.Context().Done():
		}
	}
	s := modeltest.Serve(t, func(r modeltest.Request) modeltest.Answer {
		switch body := string(r.Body); {
		case strings.Contains(body, "Slowly, please"):
			return slow
		case strings.Contains(body, "What does it say?"):
			return modeltest.Text("It says: buy milk.")
		case r.Results() > 0:
			return modeltest.Text("There is one note.")
		}
		return modeltest.Calls(modeltest.Call{ID: "c1", Name: "list_files", Args: `{"path":"."}`})
	})
	p := inTmux(t, dir, "wf chat --model openai/test; echo left with $?; read next; wf chat --continue; echo left with $?; cat",
		"OPENAI_BASE_URL="+s.URL, "OPENAI_API_KEY=k")
	p.shows("your turn")
	p.press("What is here?", "Enter")
	p.shows("you What is here?", "$ list_files(path=.)", "There is one note.", "(turns: 1)", "your turn")
	p.tmux("resize-window", "-x", "40", "-y", "12")
	p.shows("There is one note.")
	p.tmux("resize-window", "-x", "100", "-y", "30")
	p.leave()
	p.press("Enter")
	// It stopped, and goes on by itself with --continue: what was said is there again.
	p.shows("There is one note.", "your turn")
	p.press("What does it say?", "Enter")
	p.shows("you What does it say?", "It says: buy milk.", "(turns: 2)", "your turn")
	p.press("/cost", "Enter")
	p.shows("By Task", "By Role", "wf", "total")
	p.press("q")
	p.shows("your turn")
	p.press("Slowly, please", "Enter")
	p.shows("you Slowly, please", "working")
	p.press("Escape")
	p.shows("suspended (interrupt)")
	close(working)
	p.press("/resume", "Enter")
	p.shows("Slowly said.", "your turn")
	p.press("/fork wf#1", "Enter")
	now := p.shows("forked here", "There is one note.")
	if strings.Contains(now, "buy milk.") {
		t.Errorf("the fork shares what came later:\n%s", now)
	}
	p.leave()
	p.shows("left with 0")

	wf := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("wf", args...)
		cmd.Env, cmd.Dir = p.env, dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("wf %s: %v\n%s", args, err, out)
		}
		return string(out)
	}
	wf("verify", "--all")
	wf("replay", "-1", "--check")
	wf("replay", "-2", "--check")
	if out := wf("messages", "-2:wf#2", "-o", "json"); !strings.Contains(out, "There is one note.") || !strings.Contains(out, "What does it say?") {
		t.Errorf("the second answer did not continue the conversation:\n%s", out)
	}
}

// The runs of a store in a real terminal.
func TestRunsInARealTerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	flow := "wf: 1\nname: gate\nroles:\n  a: {run: echo hello}\n  ask: {ask: \"Go on?\", choices: [yes, no]}\nedges:\n  - {from: START, to: a}\n  - {from: a, to: ask}\n  - {from: ask, to: END}\n"
	if err := os.WriteFile(filepath.Join(dir, "gate.yaml"), []byte(flow), 0o600); err != nil {
		t.Fatal(err)
	}
	p := inTmux(t, dir, "wf run gate.yaml -q --no-input; wf tui; echo left with $?; cat")
	p.shows("1 Runs (1)", "gate", "ask#1", "Go on?")
	p.press("2", "k")
	p.shows("3 a#1", "hello")
	p.press("v")
	p.shows("every byte was read again")
	p.press("a", "1", "Enter")
	p.shows("done")
	p.press("q")
	p.shows("left with 0")
}

// The same screens over a daemon that another process is.
func TestAChatWithADaemonElsewhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	flow := "wf: 1\nname: talk\nlimits: {cost_usd: 1}\ndefaults: {timeout: 1m}\nroles:\n  you: {ask: \"\"}\n  wf: {prompt: You answer., model: script/replies.yaml, tools: [list_files]}\n" +
		"edges:\n  - {from: START, to: you}\n  - {from: you, to: END, when: output.text == \"/end\"}\n  - {from: you, to: wf, prompt: \"${{ output.text }}\"}\n  - {from: wf, to: you, limit: 100}\n"
	for name, text := range map[string]string{"replies.yaml": chatReplies, "talk.yaml": flow} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	socket := filepath.Join(t.TempDir(), "s")
	p := inTmux(t, dir, fmt.Sprintf("wf serve --listen 'unix:%s' --workflows '%s' 2>serve.log & until [ -S '%s' ]; do sleep 0.05; done; "+
		"wf chat --hub 'unix:%[1]s' talk; read next; wf tui --hub 'unix:%[1]s'; echo left with $?; kill %%1; wait; cat", socket, dir, socket))
	p.shows("your turn")
	p.press("What is here?", "Enter")
	p.shows("you What is here?", "There is one note.", "(turns: 1)", "your turn")
	p.press("/undo", "Enter")
	p.shows("/undo works where the store and the files are, not at a server: wf chat", "on that machine does it; /fork goes back with the conversation")
	p.press("/cost", "Enter")
	p.shows("By Task", "total")
	p.press("q")
	p.shows("your turn")
	p.leave()
	p.press("Enter")
	p.shows("1 Runs (1)", "wf#1", "you#2")
	p.press("2", "k")
	p.shows("3 wf#1", "There is one note.")
	p.press("m")
	p.shows("── user")
	p.press("q")
	p.shows("left with 0")
}
