package agentkit

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/agentkit/task"
	"wf/agentkit/tool"
	"wf/protocol"
)

// killedTask waits for a person too.
const killedTask = `coder#1:
  - {goal: "Plan it"}
  - {tool: append, args: {line: one}}
  - {text: "I stop here."}
  - {tool: task_update_state, args: {state: "One line."}}
  - {tools: [{tool: append, args: {line: two}}, {tool: task_waiting_on_user, args: {question: "Which DB?"}}]}
  - {tool: append, args: {line: three}}
  - {summary: "As a model tells it."}
  - {tools: [{tool: task_complete, args: {final_response: "Planned.", share: {db: Postgres}}}, {tool: append, args: {line: four}}]}
`

func killedStage(t testing.TB) *stage {
	s := taskStage(t, killedTask)
	s.agent.Tools = []tool.Tool{appendTool}
	s.turn.Role.Tools = []string{"append"}
	s.turn.Role.Task = &protocol.TaskSpec{Summary: protocol.SummaryByModel}
	s.turn.History.Tools = ""
	s.prepare(t)
	return s
}

// driveTask performs until the task is complete, and answers what it asks.
func (s *stage) driveTask(t testing.TB, j *journal) (protocol.Conclusion, error) {
	c, err := s.perform(t, j)
	if errors.Is(err, protocol.ErrWaiting) {
		if len(s.turn.Answers) == 0 {
			s.answerNow(j, "Postgres")
		}
		return s.perform(t, j)
	}
	return c, err
}

func TestR04R05ATaskThatIsKilledAnywhereGoesOnAsIfNothingHappened(t *testing.T) {
	whole, uncut := killedStage(t), &journal{}
	want, err := whole.driveTask(t, uncut)
	if err != nil {
		t.Fatal(err)
	}
	last := whole.sent[len(whole.sent)-1]
	for stop := 1; stop < len(uncut.commits); stop++ {
		s, j := killedStage(t), &journal{stop: stop}
		if _, err := s.driveTask(t, j); !errors.Is(err, errKilled) {
			t.Fatalf("stopped after %d: %v", stop, err)
		}
		j.stop = 0
		got, err := s.driveTask(t, j)
		if err != nil {
			t.Fatalf("resumed after %d: %v", stop, err)
		}
		if d := cmp.Diff(want, got, cmp.Comparer(func(a, b protocol.Link) bool { return a == b })); d != "" {
			t.Errorf("killed after commit %d: %s", stop, d)
		}
		if n := len(find[protocol.TaskStarted](j)) + len(find[protocol.TaskDone](j)) + len(find[protocol.TaskWaitingOn](j)); n != 3 {
			t.Errorf("killed after commit %d: %v", stop, j.types())
		}
		unknown := strings.Contains(strings.Join(s.sent, ""), "outcome of this call is unknown")
		if got := s.sent[len(s.sent)-1]; got != last && !unknown {
			t.Errorf("killed after commit %d: the last request is\n%s\nwant\n%s", stop, got, last)
		}
	}
	if whole.log(t) != "one\ntwo\nthree\n" {
		t.Errorf("the log is %q: what follows task_complete must not run", whole.log(t))
	}
	d, _ := task.Read(want.Data)
	if d.Summary != "As a model tells it." || d.Question != "Which DB?" || string(d.Shared) != `{"db":"Postgres"}` {
		t.Errorf("data %+v", d)
	}
}

func TestR05TheAnswerReachesTheModelWithItsWorkAndTheQuestion(t *testing.T) {
	s, j := killedStage(t), &journal{}
	if _, err := s.perform(t, j); !errors.Is(err, protocol.ErrWaiting) {
		t.Fatal(err)
	}
	asked := find[protocol.WaitingFor](j)
	if len(asked) != 1 || asked[0].Kind != protocol.WaitTask || asked[0].Question.S != "Which DB?" {
		t.Fatalf("asked %+v", asked)
	}
	if _, err := s.perform(t, j); !errors.Is(err, protocol.ErrWaiting) || len(find[protocol.WaitingFor](j)) != 1 {
		t.Fatal("it asked again")
	}
	s.answerNow(j, "Postgres")
	s.sent = nil
	if _, err := s.perform(t, j); err != nil {
		t.Fatal(err)
	}
	next := s.sent[0]
	for _, want := range []string{strings.Repeat("one", 500), strings.Repeat("two", 500), "Which DB?", "Postgres", "One line."} {
		if !strings.Contains(next, want) {
			t.Errorf("the next request lacks %.20q", want)
		}
	}
}

// longTask passes its watermark in the middle.
const longTask = `coder#1:
  - {goal: "Plan it"}
  - {tool: append, args: {line: one}, usage: {input: 100, output: 1}}
  - {tool: task_update_state, args: {state: "One line."}, usage: {input: 900, output: 1}}
  - {tool: append, args: {line: two}, usage: {input: 1200, output: 1}}
  - {summary: "One and two were appended."}
  - {tool: append, args: {line: three}, usage: {input: 300, output: 1}}
  - {tool: task_complete, args: {final_response: "Planned.", summary: "Planned."}, usage: {input: 400, output: 1}}
`

func TestALongTaskCompactsItsOwnWorkAndKeepsItsGoal(t *testing.T) {
	long := func() *stage {
		s := taskStage(t, longTask)
		s.agent.Tools = []tool.Tool{appendTool}
		s.turn.Role.Tools = []string{"append"}
		s.turn.Role.Compaction = &protocol.CompactionSpec{Watermark: 1_000}
		s.turn.History.Tools = ""
		s.prepare(t)
		return s
	}
	whole, uncut := long(), &journal{}
	want, err := whole.perform(t, uncut)
	if err != nil {
		t.Fatal(err)
	}
	compacted := find[protocol.Compacted](uncut)
	if len(compacted) != 1 || compacted[0].Scope != protocol.ScopeVisit {
		t.Fatalf("compactions %+v", compacted)
	}
	last := whole.sent[len(whole.sent)-1]
	all := messagesOf(t, last)
	if end := all[len(all)-1]; !strings.HasSuffix(end, task.Block("Plan it", "One line.")) || !strings.HasSuffix(all[1], task.Block("Plan it", "")) {
		t.Errorf("the last request is %v", all)
	}
	if !strings.Contains(last, "One and two were appended.") {
		t.Error("the summary is not told")
	}
	for stop := 1; stop < len(uncut.commits); stop++ {
		s, j := long(), &journal{stop: stop}
		if _, err := s.perform(t, j); !errors.Is(err, errKilled) {
			t.Fatalf("stopped after %d: %v", stop, err)
		}
		j.stop = 0
		got, err := s.perform(t, j)
		if err != nil || string(got.Data) != string(want.Data) {
			t.Fatalf("resumed after %d: %s, %v", stop, got.Data, err)
		}
		unknown := strings.Contains(strings.Join(s.sent, ""), "outcome of this call is unknown")
		if got := s.sent[len(s.sent)-1]; got != last && !unknown {
			t.Errorf("killed after commit %d: the last request is\n%s\nwant\n%s", stop, got, last)
		}
	}
}

func TestAFailedAttemptBeginsWithTheSamePrompt(t *testing.T) {
	s := taskStage(t, `coder#1:
  - {goal: "Plan it"}
  - {tool: task_update_state, args: {state: "Begun."}}
  - {error: {status: 400, message: no}}
  - {tool: list_files, args: {path: .}}
  - {tool: task_complete, args: {final_response: "Planned.", summary: "Planned."}}
`, "list_files")
	j := &journal{}
	var failure *protocol.Failure
	if _, err := s.perform(t, j); !errors.As(err, &failure) {
		t.Fatal(err)
	}
	j.commits = append(j.commits, []protocol.Data{protocol.AttemptFailed{Attempt: 1, Error: failure.ErrorInfo, RetryAt: 1}})
	s.sent = nil
	if _, err := s.perform(t, j); err != nil {
		t.Fatal(err)
	}
	prompts := find[protocol.PromptSent](j)
	if len(prompts) != 2 || prompts[0].Digest != prompts[1].Digest || len(find[protocol.TaskStarted](j)) != 1 {
		t.Errorf("prompts %+v", prompts)
	}
	second := messagesOf(t, s.sent[1])
	if end := second[len(second)-1]; !strings.HasSuffix(end, task.Block("Plan it", "Begun.")) {
		t.Errorf("what was saved is lost: %q", end)
	}
}
