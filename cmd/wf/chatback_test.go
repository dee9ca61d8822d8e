package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"wf/agentkit/modeltest"
)

// backFiles is how many files the repository has, each changed by each edit.
const backFiles = 1000

// backModel answers "edit X" by a command that appends X to every file.
func backModel(t *testing.T) *modeltest.Server {
	t.Helper()
	return modeltest.Serve(t, func(r modeltest.Request) modeltest.Answer {
		said, results := lastSaid(r)
		word, ok := strings.CutPrefix(said, "edit ")
		switch {
		case !ok:
			return modeltest.Text("Heard: " + said + ".")
		case results > 0:
			return modeltest.Text("Did " + word + ".")
		}
		args, err := json.Marshal(map[string]string{"command": "for f in d*/*; do echo " + word + " >> $f; done"})
		if err != nil {
			panic(err) // of strings
		}
		return modeltest.Calls(modeltest.Call{ID: "c" + word, Name: "shell", Args: string(args)})
	})
}

// lastSaid is what the person said last, with how many results of tools are behind it.
func lastSaid(r modeltest.Request) (said string, results int) {
	var body struct {
		Messages []struct{ Role, Content string }
	}
	if json.Unmarshal(r.Body, &body) != nil {
		return "", 0
	}
	for _, m := range body.Messages {
		switch m.Role {
		case "user":
			said, results = strings.TrimSpace(m.Content), 0
		case "tool":
			results++
		}
	}
	if at := strings.LastIndex(said, "edit "); at > 0 {
		said = said[at:]
	}
	return said, results
}

// backRepo makes a git repository with many files.
func backRepo(t *testing.T, dir string) {
	t.Helper()
	for i := range backFiles {
		at := filepath.Join(dir, fmt.Sprintf("d%d", i%20))
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, at, strconv.Itoa(i), "begin\n")
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "begin"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
	}
}

// backHolds reports which edits all files have; "?" where they differ.
func backHolds(t *testing.T, dir string) string {
	t.Helper()
	holds := ""
	for i := range backFiles {
		text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("d%d", i%20), strconv.Itoa(i)))
		if err != nil {
			t.Fatal(err)
		}
		now := strings.Join(strings.Fields(string(text)), " ")
		if i > 0 && now != holds {
			return "?"
		}
		holds = now
	}
	if left, err := filepath.Glob(filepath.Join(dir, "d*", ".wf-*")); err != nil || len(left) > 0 {
		t.Errorf("%d files are left behind, %v", len(left), err)
	}
	return holds
}

// inMiddle waits until files are being put in place below a directory, or done.
func inMiddle(t *testing.T, dir string, done func() bool) {
	t.Helper()
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until) && !done(); {
		if fresh, err := filepath.Glob(filepath.Join(dir, "d*", ".wf-*")); err == nil && len(fresh) > 0 {
			return
		}
	}
}

// killsChat kills the process whose id is in the file pid.
func killsChat(t *testing.T, dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// backChat is a line of a shell that runs a chat, and waits for Enter. Behind a chat that was killed another process puts the
// terminal back: until then, what the shell says would be on a screen that goes.
const backChat = "sh -c 'echo $$ >../pid; exec wf chat %s'; s=$?; while [ \"$(tmux display -p -t $TMUX_PANE '#{alternate_on}')\" = 1 ]; do :; done; stty sane; clear; echo gone with $s; read next; clear; "

// C-05: files of a repository and the conversation go back, further back, and forth again together; a chat that is killed in the
// middle is ended by the next one, and both agree.
func TestC05FilesAndConversationGoBackTogether(t *testing.T) {
	t.Parallel()
	s := backModel(t)
	dir := t.TempDir()
	repo := filepath.Join(dir, "repo")
	backRepo(t, repo)
	p := inTmux(t, dir, "cd repo; "+fmt.Sprintf(backChat, "--model openai/test")+strings.Repeat(fmt.Sprintf(backChat, "--continue"), 2)+"cat",
		"OPENAI_BASE_URL="+s.URL, "OPENAI_API_KEY=k")
	p.shows("your turn")
	p.press("/undo", "Enter")
	p.shows("nothing was said yet that could be taken back")
	for _, word := range []string{"one", "two", "three"} {
		p.press("edit "+word, "Enter")
		p.shows("Did "+word+".", "your turn")
	}
	holds := func(want string) {
		t.Helper()
		if got := backHolds(t, repo); got != want {
			t.Fatalf("the files hold %q, want %q:\n%s", got, want, p.screen())
		}
	}
	holds("begin one two three")
	p.press("/undo", "Enter")
	p.shows("took back all from you#3 on", "1000 paths", "> edit three", "your turn")
	holds("begin one two")
	p.press("C-c", "/undo", "Enter")
	p.shows("took back all from you#2 on", "> edit two", "your turn")
	holds("begin one")
	p.press("C-c", "/redo", "Enter")
	p.shows("the conversation is as before the undo", "Did two.", "your turn")
	holds("begin one two")

	// it is closed and opened again, and can redo still
	p.press("/quit", "Enter")
	p.shows("gone with 0")
	p.press("Enter")
	p.shows("Did two.", "your turn")
	p.press("/redo", "Enter")
	p.shows("Did three.", "your turn")
	holds("begin one two three")
	p.press("/redo", "Enter")
	p.shows("nothing was taken back that could be redone")
	p.press("/undo", "Enter")
	p.shows("took back all from you#3 on", "> edit three", "your turn")

	// killed in the middle
	p.press("C-c", "/undo", "Enter")
	inMiddle(t, repo, func() bool {
		return strings.Contains(p.screen(), "took back") && strings.Contains(p.screen(), "> edit two")
	})
	killsChat(t, dir)
	p.shows("gone with 137")
	p.press("Enter")
	now := p.shows("your turn", "Did one.")
	switch got := backHolds(t, repo); {
	case got == "begin one" && !strings.Contains(now, "Did two."):
	case got == "begin one two" && strings.Contains(now, "Did two."):
		t.Log("it was killed before it had begun")
	default:
		t.Fatalf("the files hold %q, the conversation is\n%s", got, now)
	}
	p.press("edit four", "Enter")
	p.shows("Did four.", "your turn")
	p.press("/redo", "Enter")
	p.shows("there is nothing to redo")
	p.press("/quit", "Enter")
	p.shows("gone with 0")
	at := place{t, repo, append(p.env, "OPENAI_BASE_URL="+s.URL, "OPENAI_API_KEY=k")}
	at.wf(0, "verify", "--all")
}

// C-05: what a person has written stops the way back, and comes back where it was forced; what Esc cut off is taken back too; a
// second screen follows; and without recorded files the conversation goes alone.
func TestC05WhatIsInTheWayOfGoingBack(t *testing.T) {
	t.Parallel()
	half := modeltest.Answer{Say: []modeltest.Piece{{Text: "Half an answer\n"}}, Stall: true}
	s := modeltest.Serve(t, func(r modeltest.Request) modeltest.Answer {
		said, results := lastSaid(r)
		switch {
		case strings.Contains(said, "slowly") && results == 1:
			return half
		case results == 0 && strings.Contains(said, "write"):
			word := said[strings.LastIndex(said, " ")+1:]
			return modeltest.Calls(modeltest.Call{ID: "c" + word, Name: "write_file", Args: `{"path":"` + word + `","content":"by the agent"}`})
		}
		return modeltest.Text("Heard it.")
	})
	dir := t.TempDir()
	repo := filepath.Join(dir, "repo")
	if err := os.Mkdir(repo, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, repo, "mine", "1")
	env := []string{"OPENAI_BASE_URL=" + s.URL, "OPENAI_API_KEY=k"}
	one := inTmux(t, dir, "cd repo; wf chat --model openai/test; cat", env...)
	has := func(name, want string) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(repo, name))
		if got := string(text); want == "" && !os.IsNotExist(err) || want != "" && got != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	one.shows("your turn")
	one.press("please write a.txt", "Enter")
	one.shows("Heard it.", "(turns: 1)", "your turn")
	write(t, repo, "a.txt", "by a person")
	one.press("/undo", "Enter")
	one.shows("Nothing was changed", "a.txt: it was changed since it was recorded", "/undo --force")
	has("a.txt", "by a person")
	one.press("q")
	one.shows("your turn", "Heard it.")
	one.press("/undo --force", "Enter")
	one.shows("took back all from you#1 on", "--tree", "> please write a.txt")
	has("a.txt", "")
	one.press("C-c", "/redo", "Enter")
	one.shows("the conversation is as before the undo", "Heard it.")
	has("a.txt", "by a person")

	// Esc, and back to before what it cut off
	one.press("slowly write b.txt", "Enter")
	one.shows("Half an answer", "Esc stops")
	one.press("/undo", "Enter")
	one.shows("the agent works: Esc stops it, then /undo")
	has("b.txt", "by the agent")
	one.press("Escape")
	one.shows("suspended (interrupt)")
	one.press("/undo", "Enter")
	one.shows("took back all from you#2 on", "> slowly write b.txt", "your turn")
	has("b.txt", "")
	has("a.txt", "by a person")

	// another screen of the run that it came from
	one.press("C-c")
	two := inTmux(t, dir, "cd repo; wf chat --continue --model openai/test; cat", env...)
	two.shows("your turn", "Heard it.")
	one.press("/rewind", "Enter")
	one.shows("Back to before a message", "you#1")
	one.press("Enter")
	one.shows("took back all from you#1 on", "> please write a.txt")
	has("a.txt", "")
	two.press("what now", "Enter")
	two.shows("the conversation went to run", "> what now", "your turn")
	two.press("Enter")
	two.shows("you what now", "Heard it.", "(turns: 1)")
	one.shows("you what now", "Heard it.")
	has("mine", "1")
	at := place{t, repo, append(one.env, env...)}
	at.wf(0, "verify", "--all")
}

// C-05: where files are not recorded the conversation goes alone, and the chat says so.
func TestC05WithoutRecordedFilesTheConversationGoesAlone(t *testing.T) {
	t.Parallel()
	s := modeltest.Serve(t, func(modeltest.Request) modeltest.Answer { return modeltest.Text("Heard it.") })
	dir := t.TempDir()
	write(t, dir, "talk.yaml", "wf: 1\nname: talk\nworkspace: {track: false}\nlimits: {tokens: 500000}\nroles:\n  you: {ask: \"\"}\n  wf: {prompt: You answer., tools: [list_files]}\n"+
		"edges:\n  - {from: START, to: you}\n  - {from: you, to: END, when: output.text == \"/end\"}\n  - {from: you, to: wf, prompt: \"${{ output.text }}\"}\n  - {from: wf, to: you, limit: 100}\n")
	p := inTmux(t, dir, "wf chat --model openai/test talk.yaml; cat", "OPENAI_BASE_URL="+s.URL, "OPENAI_API_KEY=k")
	p.shows("your turn")
	p.press("hello", "Enter")
	p.shows("Heard it.", "your turn")
	p.press("/undo", "Enter")
	p.shows("the files stay as they are: this run does not", "record its files", "> hello")
	p.press("C-c", "/redo", "Enter")
	p.shows("the conversation is as before the undo", "Heard it.")
}

// C-05: a chat that is killed in the middle holds the workspace until that is ended: by wf restore, or by the next chat, be it of
// another run.
func TestC05AWayBackIsEndedByHand(t *testing.T) {
	t.Parallel()
	s := backModel(t)
	dir := t.TempDir()
	repo := filepath.Join(dir, "repo")
	backRepo(t, repo)
	write(t, repo, "one.yaml", "wf: 1\nname: one\nroles: {a: {run: 'true'}}\n")
	write(t, dir, "args", "--model openai/test")
	env := []string{"OPENAI_BASE_URL=" + s.URL, "OPENAI_API_KEY=k"}
	p := inTmux(t, dir, "cd repo; while :; do "+fmt.Sprintf(backChat, "$(cat ../args)")+"done", env...)
	at := place{t, repo, append(p.env, env...)}
	p.shows("your turn")
	p.press("edit one", "Enter")
	p.shows("Did one.", "your turn")
	write(t, dir, "args", "--continue")
	holds := func(want string) {
		t.Helper()
		if got := backHolds(t, repo); got != want {
			t.Fatalf("the files hold %q, want %q", got, want)
		}
	}
	killed := func() { // until it is in the middle
		t.Helper()
		for {
			p.press("/undo", "Enter")
			inMiddle(t, repo, func() bool { return strings.Contains(p.screen(), "> edit one") })
			killsChat(t, dir)
			p.shows("gone with 137")
			out, status := at.everything("run", "one.yaml", "-q")
			if status == 2 && strings.Contains(out, "wf restore --continue goes on, wf restore --abort goes back") {
				return
			}
			t.Logf("it had ended, the run with %d", status)
			p.press("Enter")
			p.shows("your turn")
			p.press("/redo", "Enter")
			p.shows("Did one.", "your turn")
		}
	}
	killed()
	at.wf(0, "restore", "--abort")
	holds("begin one")
	at.wf(0, "run", "one.yaml", "-q")
	p.press("Enter")
	p.shows("Did one.", "your turn")

	killed()
	if out, status := at.everything("restore", "--continue"); status != 0 || !strings.Contains(out, "the conversation goes on with the files: wf chat ") {
		t.Errorf("%d\n%s", status, out)
	}
	holds("begin")
	p.press("Enter")
	if now := p.shows("your turn"); strings.Contains(now, "Did one.") {
		t.Errorf("the conversation stays:\n%s", now)
	}
	p.press("/redo", "Enter")
	p.shows("Did one.", "your turn")

	killed()
	write(t, dir, "args", "--model openai/test") // a new chat
	p.press("Enter")
	p.shows("going back was interrupted, and was ended", "(turns: 0)", "your turn")
	holds("begin")
	at.wf(0, "verify", "--all")
}
