package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wf/agentkit/modeltest"
	"wf/api"
)

// errand is a model that carries out three tasks, by what it is shown of the one at hand.
func errand(r modeltest.Request) modeltest.Answer {
	body, n := string(r.Body), r.Results()
	holds := func(s string) bool { return strings.Contains(body, s) }
	call := func(name, args string) modeltest.Answer {
		return modeltest.Calls(modeltest.Call{ID: "call_" + string(rune('a'+n)), Name: name, Args: args})
	}
	switch {
	case holds("You name the goal of a task"):
		for _, word := range []string{"LIST", "MOVE", "KEEP"} {
			if holds("ERRAND-" + word) {
				return modeltest.Text(strings.ToUpper(word[:1]) + strings.ToLower(word[1:]) + " what there is")
			}
		}
	case holds("You look after the memory"):
		return modeltest.Text("Nothing to keep.")
	case holds("is about to be replaced by a summary"):
		return modeltest.Text("They greeted each other twice.")
	case holds("ERRAND-LIST") && n == 0:
		return call("list_files", `{"path":"."}`)
	case holds("ERRAND-LIST"):
		return call("task_complete", `{"final_response":"There is one note.","summary":"Listed one note."}`)
	case holds("ERRAND-MOVE") && n == 0:
		return call("read_file", `{"path":"note.txt"}`)
	case holds("ERRAND-MOVE") && n == 1:
		return call("task_waiting_on_user", `{"question":"Which DB?"}`)
	case holds("ERRAND-MOVE"):
		if !holds("Postgres") {
			return modeltest.Text("The answer never came.")
		}
		return call("task_complete", `{"final_response":"It goes to Postgres.","summary":"Chose Postgres."}`)
	case holds("ERRAND-KEEP") && n == 0:
		return call("remember", `{"content":"The deploy key lies in the vault.","important":true,"tags":["ops"]}`)
	case holds("ERRAND-KEEP"):
		return call("task_complete", `{"final_response":"It is remembered.","summary":"Remembered where the key is."}`)
	case holds("third greeting"):
		return modeltest.Text("Third time.")
	}
	return modeltest.Text("Hello to you.")
}

// What issue and person expect of it all together: tasks with tools in a chat, one of which
// waits across processes; what they cost; their pages; what is remembered in one chat and known
// in the next; a compaction, and the proof.
func TestAChatOfTasksAndTheNextOne(t *testing.T) {
	t.Parallel()
	s := modeltest.Serve(t, errand)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "note.txt"), []byte("move the data\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"OPENAI_BASE_URL=" + s.URL, "OPENAI_API_KEY=k"}
	p := inTmux(t, dir, "wf chat --context task --model openai/test; read next; wf chat --continue; read next; wf chat --model openai/test; echo left with $?; cat", env...)
	p.tmux("resize-window", "-x", "110", "-y", "30")

	p.shows("your turn")
	p.press("ERRAND-LIST please", "Enter")
	p.shows("List what there is", "There is one note.", "✓ 1 completed", "your turn")
	p.press("ERRAND-MOVE please", "Enter")
	p.shows("⏸ Move what there is", "Which DB?")
	p.leave()
	p.press("Enter")
	p.shows("⏸ Move what there is", "Which DB?", "your turn") // another process
	p.press("Postgres", "Enter")
	p.shows("It goes to Postgres.", "✓ 2 completed", "your turn")
	p.press("ERRAND-KEEP please", "Enter")
	p.shows("waits for your answer", "The deploy key lies in the", "y  Allow once")
	p.press("1", "Enter")
	p.shows("It is remembered.", "✓ 3 completed", "your turn")
	if now := p.screen(); strings.Contains(now, "task_complete") {
		t.Errorf("a control tool is on the screen:\n%s", now)
	}
	p.press("/cost", "Enter")
	p.shows("By Task", "Move what there is", "total")
	p.press("q")
	p.shows("your turn")
	p.leave()
	p.press("Enter")

	// The next chat, without tasks.
	p.shows("(turns: 0)", "your turn")
	for i, words := range []string{"first greeting", "second greeting"} {
		p.press(words, "Enter")
		p.shows("you "+words, []string{"(turns: 1)", "(turns: 2)"}[i], "your turn")
	}
	p.press("/compact", "Enter")
	p.shows("summary of the conversation")
	p.press("third greeting", "Enter")
	p.shows("compacted:", "Third time.", "your turn")
	p.leave()
	p.shows("left with 0")

	place := place{t, dir, append(p.env, env...)}
	place.wf(0, "verify", "--all")
	for _, run := range []string{"-1", "-2"} {
		place.wf(0, "replay", run, "--check")
	}
	var tasks struct {
		Items []struct {
			ID, Goal, Status string
		}
	}
	place.read(&tasks, "task", "ls", "-2")
	if len(tasks.Items) != 3 || slices.ContainsFunc(tasks.Items, func(x struct{ ID, Goal, Status string }) bool { return x.Status != "completed" }) {
		t.Errorf("tasks %+v", tasks.Items)
	}
	var byTask, byRole api.Cost
	place.read(&byTask, "cost", "-2", "--by", "task")
	place.read(&byRole, "cost", "-2", "--by", "role")
	var in, out int64
	for _, x := range byTask.Items {
		in, out = in+x.Input, out+x.Output
	}
	if in != byTask.Total.Input || out != byTask.Total.Output || in != byRole.Total.Input || in == 0 {
		t.Errorf("by task %d in and %d out, in all %+v, by role %+v", in, out, byTask.Total, byRole.Total)
	}
	pages, err := filepath.Glob(filepath.Join(dir, ".wf", "tasks", "*", "*.md"))
	if err != nil || len(pages) != 3 {
		t.Errorf("pages of tasks: %q, %v", pages, err)
	}

	// What was pinned in the first chat stands in the first request of the second.
	requests := s.Requests()
	first := slices.IndexFunc(requests, func(r modeltest.Request) bool { return strings.Contains(string(r.Body), "first greeting") })
	if first < 0 || !strings.Contains(string(requests[first].Body), "The deploy key lies in the vault.") {
		t.Error("the second chat does not know what the first one pinned")
	}
	// After the compaction the model reads the summary; the journal has what was said.
	if out := place.wf(0, "messages", "-1:wf#3"); !strings.Contains(string(out), "They greeted each other twice.") || strings.Contains(string(out), "first greeting") {
		t.Errorf("the messages after the compaction are\n%s", out)
	}
	if out := place.wf(0, "replay", "-1", "-o", "jsonl"); !strings.Contains(string(out), "first greeting") || !json.Valid(out[:strings.IndexByte(string(out), '\n')]) {
		t.Error("the journal lost what was said first")
	}
}
