package chat_test

import (
	"strings"
	"testing"

	"wf/cmd/internal/chat"
	"wf/cmd/internal/screentest"
	"wf/protocol"
)

// errands is a session of three tasks, the last of which is at work.
func errands(t *testing.T) *room {
	t.Helper()
	r := newRoom()
	talk(r)
	r.happen("wf#4", protocol.EvTaskStarted, obj{"id": "wf#4", "goal": "Fix the login"})
	r.happen("wf#4", protocol.EvTaskStateUpdated, obj{"id": "wf#4", "state": "half way"})
	r.tasks = []chat.TaskPage{
		{Task: chat.Task{ID: "wf#2", Goal: "List the files", Status: protocol.TaskCompleted}, Cost: "$0.04", Tokens: "5.7K in / 287 out", Markdown: "# Task: List the files\n\n## Goal\n\nList the **files**"},
		{Task: chat.Task{ID: "wf#3", Goal: "Move them", Status: protocol.TaskCompleted}, Cost: "$0.01", Tokens: "300 in / 7 out", Markdown: "# Task: Move them"},
		{Task: chat.Task{ID: "wf#4", Goal: "Fix the login", Status: protocol.TaskActive}, Cost: "$0.00", Tokens: "0 in / 0 out", Markdown: "# Task: Fix the login"},
	}
	return r
}

func TestTasksStandBesideTheConversation(t *testing.T) {
	r := newRoom()
	talk(r)
	r.happen("wf#2", protocol.EvTaskStarted, obj{"id": "wf#2", "goal": "Fix the login"})
	r.happen("wf#2", protocol.EvToolCall, obj{"call": "5", "name": "task_update_state", "args": `{"state":"secret control"}`})
	r.happen("wf#2", protocol.EvTaskStateUpdated, obj{"id": "wf#2", "state": "half way"})
	s := show(t, r, 100, 24)
	now := s.Shows("▶ Fix the login")
	if !strings.Contains(now, "half way") || !strings.Contains(now, "0 completed") || strings.Contains(now, "secret control") {
		t.Errorf("the screen is\n%s", now)
	}
	r.happen("wf#2", protocol.EvTaskWaiting, obj{"id": "wf#2", "question": "Which?"})
	s.Shows("⏸ Fix the login")
	r.happen("wf#2", protocol.EvTaskCompleted, obj{"id": "wf#2", "final_response": "It is fixed.", "summary": "s"})
	s.Shows("✓ 1 completed")
	s.Shows("wf It is fixed.")
}

func TestOnANarrowScreenTheTaskStandsAboveTheBox(t *testing.T) {
	s := show(t, errands(t), 80, 24)
	s.Shows("─ ▶ Fix the login: half way ─")
	s.Shows("─ ✓ 0 completed ─")
	s.Resize(100, 24)
	s.Shows("│ ▶ Fix the login")
}

// A screen that has read the last page alone knows of all tasks.
func TestTasksOfOlderPagesCount(t *testing.T) {
	r := errands(t)
	for range 300 {
		r.happen("wf#4", protocol.EvToolCall, obj{"call": "x", "name": "look", "args": "{}"})
	}
	r.happen("wf#4", protocol.EvTaskStateUpdated, obj{"id": "wf#4", "state": "nearly there"})
	s := show(t, r, 100, 24)
	now := s.Shows("✓ 2 completed")
	if !strings.Contains(now, "▶ Fix the login") || !strings.Contains(now, "nearly there") || !strings.Contains(now, "✓ List the files") {
		t.Errorf("the screen is\n%s", now)
	}
}

func TestTheTasksOfARunAreBrowsed(t *testing.T) {
	s := show(t, errands(t), 80, 12)
	s.Shows("your turn")
	s.Press("/task\r")
	got := s.Shows("2 of 3 completed")
	want := `╭─ Tasks  2 of 3 completed ────────────────────────────────────────────────────╮
│ ✓ wf#2  List the files                              $0.04  5.7K in / 287 out │
│ ✓ wf#3  Move them                                   $0.01     300 in / 7 out │
│ ▶ wf#4  Fix the login                               $0.00       0 in / 0 out │
`
	if !strings.HasPrefix(got, want) {
		t.Errorf("the screen is\n%s", got)
	}
	s.Press(screentest.Up + screentest.Up + screentest.Up + "\r")
	now := s.Shows("Task: List the files")
	if !strings.Contains(now, "│ List the files") || strings.Contains(now, "**") {
		t.Errorf("the page is\n%s", now)
	}
	s.Press("q")
	s.Shows("2 of 3 completed")
	s.Press("q")
	s.Shows("your turn")
	s.Press("/task wf#3\r")
	s.Shows("Task: Move them")
	s.Press("qq")
	s.Shows("your turn")
	s.Press("/task wf#9\r")
	s.Shows("there is no task wf#9; /task lists them")
}
