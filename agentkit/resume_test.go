package agentkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/agentkit/tool"
	"wf/protocol"
)

// busy uses several tools at once, makes mistakes, and answers at last.
const busy = `coder#1:
  - {text: "I look.", tools: [{tool: list_files, args: {path: .}}, {tool: append, args: {line: one}}, {tool: append, args: {line: two}}]}
  - {tools: [{tool: nonsense, args: {}}, {tool: append, args: "{not json"}, {tool: append, args: "[]"}]}
  - {tool: append, args: {line: three}, thinking: "one more"}
  - {text: ""}
  - {text: "Done."}
  - {text: "---\nstatus: done\n---\n"}
`

// appendTool writes a line to a file: an effect that must happen once.
var appendTool = tool.Tool{
	Name: "append", Description: "append a line", Parameters: protocol.JSON(`{"type":"object"}`),
	Run: func(_ context.Context, at tool.Workspace, raw json.RawMessage) (tool.Result, error) {
		var args struct{ Line string }
		if err := json.Unmarshal(raw, &args); err != nil {
			return tool.Result{}, err
		}
		f, err := os.OpenFile(filepath.Join(at.Dir, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
		if err != nil {
			return tool.Result{}, err
		}
		_, err = f.WriteString(args.Line + "\n")
		return tool.Result{Content: strings.Repeat(args.Line, 500)}, errors.Join(err, f.Close())
	},
}

func busyStage(t testing.TB) *stage {
	s := newStage(t, busy)
	s.agent.Tools = []tool.Tool{appendTool}
	s.turn.Role.Tools = []string{"append", "list_files"}
	p, err := s.agent.Prepare(t.Context(), s.turn)
	if err != nil {
		t.Fatal(err)
	}
	s.turn.History.Tools = p.Tools
	return s
}

func (s *stage) log(t testing.TB) string {
	b, err := os.ReadFile(filepath.Join(s.turn.Workspace, "log"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(b)
}

func TestToolsRunInOrderAndMistakesAreToldToTheModel(t *testing.T) {
	s, j := busyStage(t), &journal{}
	if _, err := s.perform(t, j); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"prompt", "text+tool_call+tool_call+tool_call+usage", "tool_result", "tool_result", "tool_result",
		"tool_call+tool_call+tool_call+usage", "tool_result", "tool_result", "tool_result",
		"thinking+tool_call+usage", "tool_result", "text+usage", "correction", "text+usage", "correction", "text+usage",
	}
	if d := cmp.Diff(want, j.types()); d != "" {
		t.Error(d)
	}
	if s.log(t) != "one\ntwo\nthree\n" {
		t.Errorf("the log is %q", s.log(t))
	}
	results := find[protocol.ToolResult](j)
	for i, want := range []string{`there is no tool "nonsense"; there are append, list_files`, "not valid JSON", "must be a JSON object"} {
		if r := results[3+i]; !r.IsError || !strings.Contains(r.Content.S, want) {
			t.Errorf("result %d is %v", 3+i, r)
		}
	}
}

func TestW20AKilledVisitGoesOnWhereItStopped(t *testing.T) {
	whole := &journal{}
	s := busyStage(t)
	c, err := s.perform(t, whole)
	if err != nil {
		t.Fatal(err)
	}
	if whole.durable == len(whole.commits) {
		t.Error("the visit waits for everything")
	}
	for n := 2; n < 2*len(whole.commits); n++ {
		stop, slow := n/2, n%2 == 1
		t.Run(fmt.Sprintf("after commit %d, slow %v", stop, slow), func(t *testing.T) {
			again := busyStage(t)
			j := &journal{stop: stop, slow: slow}
			if _, err := again.perform(t, j); !errors.Is(err, errKilled) {
				t.Fatalf("got %v", err)
			}
			// The kill came after the tool had run and before its result was durable.
			last := whole.commits[stop][0]
			effect := false
			if r, ok := last.(protocol.ToolResult); ok && !r.IsError && r.Call != "call_1_1" {
				effect = true
			}
			j.stop = 0
			got, err := again.perform(t, j)
			if err != nil {
				t.Fatal(err)
			}
			if *got.Text != *c.Text || string(got.Data) != string(c.Data) {
				t.Errorf("concluded %q with %s", *got.Text, got.Data)
			}
			if d := cmp.Diff(whole.types(), j.types()); d != "" {
				t.Error(d)
			}
			if again.log(t) != "one\ntwo\nthree\n" {
				t.Errorf("effects happened %q", again.log(t))
			}
			unknown := 0
			for _, r := range find[protocol.ToolResult](j) {
				if strings.Contains(r.Content.S, "outcome of this call is unknown") {
					unknown++
				}
			}
			if effect != (unknown == 1) || unknown > 1 {
				t.Errorf("%d calls have an unknown outcome", unknown)
			}
			if !effect {
				if d := cmp.Diff(unique(s.sent), unique(again.sent)); d != "" {
					t.Errorf("the requests differ: %s", d)
				}
			}
		})
	}
}

// unique drops the repetitions of requests whose replies were lost.
func unique(sent []string) []string {
	var out []string
	for _, r := range sent {
		if !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out
}

func TestARetryBeginsAnewFromTheFirstRequest(t *testing.T) {
	s := newStage(t, `coder#1: [{text: a}, {text: b}, {text: c}, {text: "---\nstatus: done\n---\n"}]`)
	j := &journal{}
	if _, err := s.perform(t, j); err == nil {
		t.Fatal("the first attempt worked")
	}
	j.commits = append(j.commits, []protocol.Data{protocol.AttemptFailed{Attempt: 1, Error: protocol.ErrorInfo{Code: "output_invalid"}}})
	s.turn.Attempt = 2
	if _, err := s.perform(t, j); err != nil {
		t.Fatal(err)
	}
	if s.sent[3] != s.sent[0] {
		t.Errorf("attempt 2 began with %s", s.sent[3])
	}
	if d := cmp.Diff([]string{"prompt", "text+usage", "correction", "text+usage", "correction", "text+usage", "attempt_failed", "prompt", "text+usage"}, j.types()); d != "" {
		t.Error(d)
	}
}
