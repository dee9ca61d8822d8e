package agentkit

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"wf/agentkit/prompt"
	"wf/agentkit/task"
	"wf/protocol"
)

// taskStage is a stage whose role works on tasks.
func taskStage(t testing.TB, replies string, tools ...string) *stage {
	t.Helper()
	s := newStage(t, replies, tools...)
	s.turn.Role.Context = protocol.ContextTask
	s.turn.History.Schema, s.turn.History.Tools, s.turn.History.Summaries = "", "", protocol.DefaultTaskSummaries
	s.prepare(t)
	return s
}

func (s *stage) prepare(t testing.TB) {
	t.Helper()
	p, err := s.agent.Prepare(t.Context(), s.turn)
	if err != nil {
		t.Fatal(err)
	}
	s.turn.History.Tools = p.Tools
}

// next sets the following task: a person says something after the one that was concluded.
func (s *stage) next(c protocol.Conclusion, message string) {
	h, n := &s.turn.History, s.turn.Visit
	done := h.Visit
	done.CID, done.Status, done.Text, done.Data = link(fmt.Sprintf("coder#%d", n)), protocol.StepOK, *c.Text, c.Data
	person := step(fmt.Sprintf("desk#%d", n+1), message, fmt.Sprintf("coder#%d", n))
	person.Data = protocol.JSON(fmt.Sprintf(`{"choice":"","text":%q}`, message))
	h.Past = append(h.Past, done, person)
	h.Goal = ""
	h.Visit = protocol.Past{Role: "coder", Visit: n + 1, EdgePrompt: message, Mentions: []string{"output.text"},
		Resumes: done.CID, Parents: []protocol.Link{person.CID}}
	s.turn.Step.N, s.turn.Visit, s.turn.Answers = n+1, n+1, nil
}

// answerNow answers the newest question of a journal.
func (s *stage) answerNow(j *journal, text string) {
	asked := find[protocol.WaitingFor](j)
	s.turn.Answers = append(s.turn.Answers, protocol.AnswerTo{Waiting: asked[len(asked)-1], Answer: protocol.Answered{Text: protocol.NewText(text)}})
}

// messagesOf is a request that a recorder noted, as role: text.
func messagesOf(t testing.TB, sent string) []string {
	t.Helper()
	var list []struct {
		Role  string `json:"role"`
		Text  string `json:"text"`
		Parts []struct {
			Text         string                   `json:"text"`
			ToolCall     struct{ Function any }   `json:"tool_call"`
			ToolResponse struct{ Content string } `json:"tool_response"`
		} `json:"parts"`
	}
	if err := json.Unmarshal([]byte(sent), &list); err != nil {
		t.Fatalf("%v: %s", err, sent)
	}
	var out []string
	for _, m := range list {
		text := m.Text
		for _, p := range m.Parts {
			text += p.Text + p.ToolResponse.Content
		}
		out = append(out, m.Role+": "+text)
	}
	return out
}

const oneTask = `coder#1:
  - {goal: "Repair Split"}
  - {tool: list_files, args: {path: .}}
  - {tool: task_update_state, args: {state: "Looked around."}}
  - {tool: list_files, args: {path: .}}
  - {tool: task_update_state, args: {state: "Repaired it.", share: {file: split.go}}}
  - {tool: task_complete, args: {final_response: "Split is repaired.", summary: "Repaired Split in split.go."}}
`

func TestR01TheGoalIsOneExtraCallOfTheTask(t *testing.T) {
	for _, test := range []struct {
		name, goal, want string
		calls            int // usages for goals
		told             bool
	}{
		{"a model names it", `{goal: "Repair Split"}`, "Repair Split", 1, true},
		{"a long one is cut", `{goal: "` + strings.Repeat("ü", 100) + `"}`, strings.Repeat("ü", 80), 1, true},
		{"the call fails", `{goal: "", error: {status: 500}}`, "Hey can you help me fix the bug in login.go where users can't authenticate with ", 1, false},
		{"nobody can be asked", `{summary: "none is scripted"}`, "Hey can you help me fix the bug in login.go where users can't authenticate with ", 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := taskStage(t, "coder#1:\n  - "+test.goal+"\n  - {tool: task_complete, args: {final_response: ok, summary: ok}}\n")
			s.turn.History.Visit.EdgePrompt = "Hey can you help me fix the bug in login.go\nwhere users can't authenticate with expired tokens?"
			j := &journal{}
			c, err := s.perform(t, j)
			if err != nil {
				t.Fatal(err)
			}
			started := find[protocol.TaskStarted](j)
			if len(started) != 1 || started[0].Goal != test.want || utf8.RuneCountInString(started[0].Goal) > protocol.TaskGoalMax {
				t.Errorf("started %+v", started)
			}
			if failed := !started[0].Error.Empty(); failed != (test.want[:3] == "Hey") {
				t.Errorf("the reason is %q", started[0].Error.S)
			}
			if started[0].ID != "coder#1" || started[0].Original.S != s.turn.History.Visit.EdgePrompt {
				t.Errorf("started %+v", started[0])
			}
			goals := 0
			for _, u := range find[protocol.Usage](j) {
				if u.Kind == protocol.UsageGoal {
					if goals++; (u.Input != nil) != test.told {
						t.Errorf("usage %+v", u)
					}
				}
			}
			if goals != test.calls {
				t.Errorf("%d usages for goals", goals)
			}
			if d, ok := task.Read(c.Data); !ok || d.Goal != test.want {
				t.Errorf("data %s", c.Data)
			}
		})
	}
}

// manyTools is the script of a task with 30 tool calls.
func manyTools(n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "coder#%d:\n  - {goal: \"Goal %d\"}\n", n, n)
	for i := range 30 {
		fmt.Fprintf(&b, "  - {tool: list_files, args: {path: %q}}\n", []string{".", "./"}[i%2])
	}
	fmt.Fprintf(&b, "  - {tool: task_update_state, args: {state: \"State %d\"}}\n", n)
	fmt.Fprintf(&b, "  - {tool: task_complete, args: {final_response: \"Response %d\", summary: \"Summary %d\"}}\n", n, n)
	return b.String()
}

func TestR02ATaskReadsSummariesAndItsOwnRunAlone(t *testing.T) {
	var script strings.Builder
	for n := 1; n <= 6; n++ {
		script.WriteString(manyTools(n))
	}
	s := taskStage(t, script.String(), "list_files")
	for n := 1; n <= 5; n++ {
		c, err := s.perform(t, &journal{})
		if err != nil {
			t.Fatal(err)
		}
		s.next(c, fmt.Sprintf("Message %d", n+1))
	}
	s.turn.History.Visit.Inject = "Date: Monday"
	s.sent = nil
	j := &journal{}
	if _, err := s.perform(t, j); err != nil {
		t.Fatal(err)
	}
	first := messagesOf(t, s.sent[1])
	want := []string{
		"system: You fix.\n\n" + task.SystemText(),
		"human: Date: Monday\n\n## Earlier tasks\n\n### Goal 3\n\nSummary 3\n\n### Goal 4\n\nSummary 4\n\n### Goal 5\n\nSummary 5\n\n" +
			"## Message\n\nMessage 6\n\n" + task.Block("Goal 6", ""),
	}
	if d := cmp.Diff(want, first); d != "" {
		t.Error(d)
	}
	last := messagesOf(t, s.sent[len(s.sent)-1])
	if d := cmp.Diff(want, last[:2]); d != "" {
		t.Error(d)
	}
	if end := last[len(last)-1]; !strings.HasSuffix(end, task.Block("Goal 6", "State 6")) {
		t.Errorf("the last request ends with %q", end)
	}
	for _, m := range last {
		for _, gone := range []string{"Response", "Message 5", "State 5", "Summary 2", "Goal 2"} {
			if strings.Contains(m, gone) {
				t.Errorf("%q is told: %q", gone, m)
			}
		}
	}
	for _, sent := range s.sent[1:] {
		all := messagesOf(t, sent)
		if end := all[len(all)-1]; !strings.Contains(end, "\nGoal: Goal 6\n") || !strings.HasSuffix(end, "</task>") {
			t.Errorf("goal and state are not at the tail: %q", end)
		}
	}
	rebuilt := s.turn.History
	rebuilt.Goal = find[protocol.TaskStarted](j)[0].Goal
	opening, err := prompt.BuildMessages(rebuilt)
	if err != nil || prompt.Digest(rebuilt.Tools, opening).String() != find[protocol.PromptSent](j)[0].Digest {
		t.Errorf("P_k is not rebuilt: %v", err)
	}
}

func TestR02WhatHappenedBetweenTasksIsToldInTheMessage(t *testing.T) {
	s := taskStage(t, "coder#1:\n"+manyTools(1)[len("coder#1:\n"):], "list_files")
	c, err := s.perform(t, &journal{})
	if err != nil {
		t.Fatal(err)
	}
	s.next(c, "Again.")
	test := step("test#1", "1 test failed", "coder#1")
	h := &s.turn.History
	h.Past = append(h.Past, test)
	h.Visit.Parents = []protocol.Link{test.CID}
	h.Visit.Mentions = nil
	original, err := prompt.Original(*h)
	if want := "Again.\n\n## What happened since\n\n### test#1 · ok\n1 test failed"; err != nil || original != want {
		t.Errorf("%v\n%s", err, cmp.Diff(want, original))
	}
}

func TestR03TheFirstRequestDoesNotGrowWithTheTasks(t *testing.T) {
	const tasks = 50
	var script strings.Builder
	for n := 1; n <= tasks; n++ {
		fmt.Fprintf(&script, "coder#%d:\n  - {goal: \"Goal %02d\"}\n  - {tool: list_files, args: {path: .}}\n", n, n)
		fmt.Fprintf(&script, "  - {tool: task_complete, args: {final_response: %q, summary: \"Summary %02d %s\"}}\n", strings.Repeat("long ", 500), n, strings.Repeat("w ", 100))
	}
	s := taskStage(t, script.String(), "list_files")
	var sizes []int
	for n := 1; n <= tasks; n++ {
		s.sent = nil
		c, err := s.perform(t, &journal{})
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, len(s.sent[1]))
		s.next(c, fmt.Sprintf("Message %02d", n+1))
	}
	if ratio := float64(sizes[tasks-1]) / float64(sizes[3]); ratio > 1.1 {
		t.Errorf("the first request of task %d is %.2f × that of task 4: %v", tasks, ratio, sizes)
	}
}

func TestR04RequestsOfATaskOnlyGrow(t *testing.T) {
	s, j := taskStage(t, oneTask, "list_files"), &journal{}
	c, err := s.perform(t, j)
	if err != nil {
		t.Fatal(err)
	}
	turns := s.sent[1:]
	for i := range len(turns) - 1 {
		if !strings.HasPrefix(turns[i+1], strings.TrimSuffix(turns[i], "]")) {
			t.Errorf("request %d does not begin with all of request %d:\n%s\n%s", i+2, i+1, turns[i], turns[i+1])
		}
	}
	for i, state := range []string{"", "", "Looked around.", "Looked around.", "Repaired it."} {
		all := messagesOf(t, turns[i])
		if end := all[len(all)-1]; !strings.HasSuffix(end, task.Block("Repair Split", state)) {
			t.Errorf("request %d ends with %q", i+1, end)
		}
	}
	d, _ := task.Read(c.Data)
	want := protocol.TaskData{Goal: "Repair Split", Status: protocol.TaskCompleted, State: "Repaired it.",
		Summary: "Repaired Split in split.go.", Shared: protocol.JSON(`{"file":"split.go"}`)}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Error(diff)
	}
	if *c.Text != "Split is repaired." {
		t.Errorf("concluded with %q", *c.Text)
	}
	types := j.types()
	for _, want := range []string{"task_started+usage", "task_state_updated+tool_result", "tool_result+task_completed"} {
		if !slices.Contains(types, want) {
			t.Errorf("no commit %s in %v", want, types)
		}
	}
}

func TestSharedValuesReachLaterTasks(t *testing.T) {
	script := oneTask + `coder#2:
  - {tool: task_complete, args: {final_response: "b", summary: "b", share: {file: null, db: {name: Postgres, port: 5432}}}}
coder#3:
  - {tool: task_complete, args: {final_response: "c", summary: "c"}}
`
	s := taskStage(t, script, "list_files")
	for n := 1; n <= 3; n++ {
		s.sent = nil
		c, err := s.perform(t, &journal{})
		if err != nil {
			t.Fatal(err)
		}
		want := map[int]string{2: "## Shared values\n\nfile: split.go\n\n## Message", 3: "## Shared values\n\ndb: {\"name\":\"Postgres\",\"port\":5432}\n\n## Message"}[n]
		if first := messagesOf(t, s.sent[len(s.sent)-1])[1]; !strings.Contains(first, want) {
			t.Errorf("task %d begins with %s", n, first)
		}
		s.next(c, "Next.")
	}
}

func TestAFinalResponseFitsTheOutputOfTheRole(t *testing.T) {
	s := taskStage(t, `coder#1:
  - {goal: "Repair Split"}
  - {tool: task_complete, args: {final_response: "Done.", summary: "s"}}
  - {tool: task_complete, args: {final_response: "---\nstatus: lost\n---\n", summary: "s"}}
  - {tool: task_complete, args: {final_response: "---\nstatus: done\n---\nDone.", summary: "s"}}
`)
	s.turn.History.Schema = answerSchema
	j := &journal{}
	c, err := s.perform(t, j)
	want := `{"status":"done","task":{"goal":"Repair Split","question":"","state":"","status":"completed","summary":"s"}}`
	if err != nil || string(c.Data) != want {
		t.Fatalf("%s, %v", c.Data, err)
	}
	s = taskStage(t, `coder#1:
  - {tool: task_complete, args: {final_response: "1", summary: "s"}}
  - {tool: task_complete, args: {final_response: "2", summary: "s"}}
  - {tool: task_complete, args: {final_response: "3", summary: "s"}}
`)
	s.turn.History.Schema = answerSchema
	var failure *protocol.Failure
	if _, err := s.perform(t, &journal{}); !errors.As(err, &failure) || failure.Phase != "output_validation" || failure.Suspend {
		t.Errorf("have %v", err)
	}
}

func TestATaskThatRunsOutOfTurnsMayStillConclude(t *testing.T) {
	script := func(end string) string {
		return "coder#1:\n  - {tool: list_files, args: {path: .}}\n  - {tool: list_files, args: {path: .}}\n  - " + end + "\n"
	}
	s := taskStage(t, script(`{tool: task_complete, args: {final_response: "So far.", summary: "s"}}`), "list_files")
	s.turn.Role.MaxTurns = 2
	if c, err := s.perform(t, &journal{}); err != nil || *c.Text != "So far." {
		t.Error(err)
	}
	s = taskStage(t, script(`{tool: list_files, args: {path: .}}`), "list_files")
	s.turn.Role.MaxTurns = 2
	var failure *protocol.Failure
	if _, err := s.perform(t, &journal{}); !errors.As(err, &failure) || failure.Code != "max_turns" {
		t.Errorf("have %v", err)
	}
}

func TestTheToolsTellWhetherAVisitIsATask(t *testing.T) {
	s := taskStage(t, oneTask, "list_files")
	asTask := s.turn.History.Tools
	s.turn.Visit = 2
	for _, test := range []struct {
		name   string
		before string
		mode   protocol.ContextMode
		isTask bool
		same   bool
	}{
		{"a task after a task keeps its tools", asTask, protocol.ContextTask, true, true},
		{"a task after a conversation", "", protocol.ContextTask, true, false},
		{"a conversation after a task", asTask, protocol.ContextConversation, false, false},
	} {
		s.turn.History.Tools, s.turn.Role.Context = test.before, test.mode
		p, err := s.agent.Prepare(t.Context(), s.turn)
		if err != nil || task.Offered(p.Tools) != test.isTask || (p.Tools == test.before) != test.same {
			t.Errorf("%s: %s, %v", test.name, p.Tools, err)
		}
	}
}
