package agentkit

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/agentkit/sandbox"
	"wf/agentkit/tool"
	"wf/protocol"
)

const asks = `coder#1:
  - {tools: [{tool: shell, args: {command: "echo hello > out && cat out"}}, {tool: list_files, args: {path: .}}]}
  - {text: "---\nstatus: done\n---\n"}
`

func TestShellAsksAndGoesOnWithTheAnswer(t *testing.T) {
	for choice, c := range map[string]struct {
		content string
		isError bool
		files   string
		events  []string
	}{
		"allow": {"exit code: 0\nstdout:\nhello", false, "out\n", []string{"approval", "sandbox", "tool_result"}},
		"deny":  {"error: a person denied this call: not here", true, "(empty)", []string{"approval", "tool_result"}},
	} {
		t.Run(choice, func(t *testing.T) {
			s, j := newStage(t, asks, "shell", "list_files"), &journal{}
			s.turn.Role.Sandbox = protocol.SandboxOff
			if _, err := s.perform(t, j); !errors.Is(err, protocol.ErrWaiting) {
				t.Fatalf("got %v", err)
			}
			if _, err := s.perform(t, j); !errors.Is(err, protocol.ErrWaiting) {
				t.Fatalf("got %v", err)
			}
			waits := find[protocol.WaitingFor](j)
			if len(waits) != 1 || waits[0].Kind != protocol.WaitApproval || !strings.Contains(waits[0].Question.S, "echo hello > out && cat out") {
				t.Fatalf("asked %+v", waits)
			}
			s.turn.Answers = []protocol.AnswerTo{{Waiting: waits[0], Answer: protocol.Answered{By: "kim", Choice: choice, Text: protocol.NewText("not here")}}}
			if _, err := s.perform(t, j); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff([]protocol.Approval{{Call: "call_1_1", Tool: "shell", Decision: choice, By: "kim", Shown: waits[0].Shown}}, find[protocol.Approval](j)); d != "" {
				t.Error(d)
			}
			results := find[protocol.ToolResult](j)
			if results[0].Content.S != c.content || results[0].IsError != c.isError {
				t.Errorf("the result is %+v", results[0])
			}
			if results[1].Content.S != c.files {
				t.Errorf("the files are %q", results[1].Content.S)
			}
			types := slices.Concat([]string{"prompt", "tool_call+tool_call+usage", "waiting"}, c.events, []string{"tool_result", "text+usage"})
			if d := cmp.Diff(types, j.types()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestW20AnApprovedCallThatWasCutOffIsNotRepeated(t *testing.T) {
	s, j := newStage(t, asks, "shell", "list_files"), &journal{}
	s.turn.Role.Sandbox = protocol.SandboxOff
	if _, err := s.perform(t, j); !errors.Is(err, protocol.ErrWaiting) {
		t.Fatalf("got %v", err)
	}
	s.turn.Answers = []protocol.AnswerTo{{Waiting: find[protocol.WaitingFor](j)[0], Answer: protocol.Answered{Choice: "allow"}}}
	j.stop = len(j.commits) + 1 // the approval is durable, the result is not
	if _, err := s.perform(t, j); !errors.Is(err, errKilled) {
		t.Fatalf("got %v", err)
	}
	j.stop = 0
	if _, err := s.perform(t, j); err != nil {
		t.Fatal(err)
	}
	if r := find[protocol.ToolResult](j)[0]; !strings.Contains(r.Content.S, "unknown") {
		t.Errorf("the result is %+v", r)
	}
}

func TestPoliciesOfRoleAgentAndTool(t *testing.T) {
	own := tool.Auto
	if !sandbox.Probe().Holds {
		own = tool.Ask
	}
	for name, c := range map[string]struct {
		sandbox string
		role    []protocol.NamedTemplate
		want    tool.Policy
	}{
		"the tool's own":                   {"", nil, own},
		"the tool's own without a sandbox": {protocol.SandboxOff, nil, tool.Ask},
		"the role's":                       {"", []protocol.NamedTemplate{{Name: "shell", Value: "ask"}}, tool.Ask},
		"the role's without a sandbox":     {protocol.SandboxOff, []protocol.NamedTemplate{{Name: "shell", Value: "auto"}}, tool.Auto},
		"the role's as a JSON value":       {"", []protocol.NamedTemplate{{Name: "shell", JSON: `"deny"`}}, tool.Deny},
	} {
		t.Run(name, func(t *testing.T) {
			s, j := newStage(t, asks, "shell", "list_files"), &journal{}
			s.turn.Role.Sandbox, s.turn.Role.Approvals = c.sandbox, c.role
			_, err := s.perform(t, j)
			got := tool.Auto
			switch {
			case errors.Is(err, protocol.ErrWaiting):
				got = tool.Ask
			case err != nil:
				t.Fatal(err)
			case strings.Contains(find[protocol.ToolResult](j)[0].Content.S, "not allowed"):
				got = tool.Deny
			}
			if got != c.want {
				t.Errorf("the policy is %s, want %s", got, c.want)
			}
		})
	}
}

func TestSecretsReachTheCommandButNotTheJournal(t *testing.T) {
	s := newStage(t, `coder#1: [{tool: shell, args: {command: "echo key=$KEY; echo $KEY >&2; env | grep -c OTHER"}}, {text: "---\nstatus: done\n---\n"}]`, "shell")
	s.turn.Role.Approvals = []protocol.NamedTemplate{{Name: "shell", Value: "auto"}}
	s.turn.Role.Sandbox = protocol.SandboxOff
	s.agent.Secret = func(name string) (string, bool) { return "s3cr3t-value", name == "API" }
	s.turn.Secrets = []string{"API", "UNSET"}
	s.turn.Env = map[string]string{"KEY": "Bearer " + protocol.SecretRef("API")}
	t.Setenv("OTHER", "x")
	j := &journal{}
	if _, err := s.perform(t, j); err != nil {
		t.Fatal(err)
	}
	want := "exit code: 1\nstdout:\nkey=Bearer [secret:API]\n0\nstderr:\nBearer [secret:API]"
	if got := find[protocol.ToolResult](j)[0].Content.S; got != want {
		t.Errorf("got %q", got)
	}
	all, err := json.Marshal([]any{j.commits, j.deltas, s.sent})
	if err != nil || bytes.Contains(all, []byte("s3cr3t")) {
		t.Errorf("the secret got out (%v)", err)
	}

	s.turn.Env["KEY"] = protocol.SecretRef("UNSET")
	var f *protocol.Failure
	if _, err := s.perform(t, &journal{}); !errors.As(err, &f) || !f.Suspend || !strings.Contains(f.Message, "UNSET") {
		t.Errorf("a missing secret gives %v", err)
	}
}
