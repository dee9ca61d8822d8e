package agentkit

import (
	"errors"
	"strings"
	"testing"

	"wf/protocol"
)

func TestR07ControlToolsNeverAskAndAreAlwaysInTheJournal(t *testing.T) {
	s, j := taskStage(t, oneTask, "list_files"), &journal{}
	for _, name := range []string{protocol.ToolTaskUpdateState, protocol.ToolTaskWaitingOnUser, protocol.ToolTaskComplete} {
		s.turn.Role.Approvals = append(s.turn.Role.Approvals, protocol.NamedTemplate{Name: name, Value: "ask"})
	}
	if _, err := s.perform(t, j); err != nil {
		t.Fatal(err)
	}
	results := map[string]bool{}
	for _, r := range find[protocol.ToolResult](j) {
		results[r.Call] = true
	}
	steering := 0
	for _, c := range find[protocol.ToolCall](j) {
		if protocol.IsTaskControl(c.Name) {
			steering++
		}
		if !results[c.Call] {
			t.Errorf("%s has no result", c.Name)
		}
	}
	if steering != 3 || len(find[protocol.Approval](j)) != 0 {
		t.Errorf("%d control calls, approvals %v", steering, find[protocol.Approval](j))
	}
}

func TestR08AModelThatNeverSteersSuspendsTheRun(t *testing.T) {
	s := taskStage(t, `coder#1:
  - {goal: "Repair Split"}
  - {text: "One."}
  - {text: ""}
  - {text: "Three."}
  - {text: "Four."}
  - {text: "Five."}
  - {tool: task_complete, args: {final_response: "At last.", summary: "Done."}}
`)
	j := &journal{}
	_, err := s.perform(t, j)
	var failure *protocol.Failure
	if !errors.As(err, &failure) || !failure.Suspend || !strings.Contains(failure.Message, "task_complete") {
		t.Fatalf("have %v", err)
	}
	if n := strings.Count(s.sent[len(s.sent)-1], "You stopped without a tool call"); n != 3 {
		t.Errorf("it was asked %d times to go on", n)
	}
	if _, err := s.perform(t, j); !errors.As(err, &failure) {
		t.Fatalf("performed again without a person's word: %v", err)
	}
	j.commits = append(j.commits, []protocol.Data{protocol.SuspendedBy{Reason: protocol.ByError, Detail: protocol.NewText(err.Error())}})
	c, err := s.perform(t, j)
	if err != nil || *c.Text != "At last." {
		t.Errorf("after wf resume: %v", err)
	}
}

func TestR09MistakesWithControlToolsAreToldToTheModel(t *testing.T) {
	s := taskStage(t, `coder#1:
  - {goal: "Repair Split"}
  - {tool: task_update_state, args: "{not json"}
  - {tool: task_waiting_on_user, args: {}}
  - {tool: task_complete, args: {summary: "only"}}
  - {tools: [{tool: task_update_state, args: {state: first}}, {tool: task_complete, args: {final_response: no, summary: no}}]}
  - {tools: [{tool: nonsense, args: {}}]}
  - {tool: task_complete, args: {final_response: "Yes.", summary: "Yes."}}
`)
	j := &journal{}
	c, err := s.perform(t, j)
	if err != nil || *c.Text != "Yes." {
		t.Fatal(err)
	}
	want := []string{
		"error: the arguments are not valid JSON: ",
		`error: the argument "question" is missing`,
		`error: the argument "final_response" is missing`,
		"Saved.",
		"error: task_update_state was called in the same reply",
		`error: there is no tool "nonsense"; there are task_complete, task_update_state, task_waiting_on_user`,
		"The task is complete.",
	}
	results := find[protocol.ToolResult](j)
	if len(results) != len(want) {
		t.Fatalf("results %+v", results)
	}
	for i, r := range results {
		if !strings.HasPrefix(r.Content.S, want[i]) || r.IsError != strings.HasPrefix(want[i], "error") {
			t.Errorf("result %d: %q, error %v", i, r.Content.S, r.IsError)
		}
	}
}
