package agentkit

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/agentkit/modeltest"
	"wf/agentkit/tool"
	"wf/protocol"
)

// token is made up here, so that no file of this module holds one.
var token = "ghp_" + strings.Repeat("aZ3kQ9xB7mT1", 3)

func leaky(t *testing.T) *stage {
	s := newStage(t, fmt.Sprintf(`coder#1:
  - {text: "I use %[1]s.", thinking: "%[1]s?", tools: [{tool: append, args: {line: "one %[1]s"}}, {tool: append, args: {line: "two %[1]s"}}, {tool: read_file, args: {path: key}}, {tool: search, args: {pattern: token}}]}
  - {text: "---\nstatus: done\n---\nIt was %[1]s.\n"}
`, token))
	if err := os.WriteFile(filepath.Join(s.turn.Workspace, "key"), []byte("token="+token+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	s.agent.Tools, s.agent.Withheld = []tool.Tool{appendTool}, &Withheld{}
	s.turn.Role.Tools = []string{"append", "read_file", "search"}
	s.turn.Role.Dynamic = []string{"key"}
	p, err := s.agent.Prepare(t.Context(), s.turn)
	if err != nil {
		t.Fatal(err)
	}
	s.turn.History.Tools, s.turn.History.Visit.Inject = p.Tools, p.Inject
	return s
}

// performAllowed performs the visit, and allows every call that it asks for.
func (s *stage) performAllowed(t *testing.T, j *journal) (protocol.Conclusion, error) {
	t.Helper()
	for {
		c, err := s.perform(t, j)
		if !errors.Is(err, protocol.ErrWaiting) {
			return c, err
		}
		waits := find[protocol.WaitingFor](j)
		s.turn.Answers = append(s.turn.Answers, protocol.AnswerTo{Waiting: waits[len(waits)-1], Answer: protocol.Answered{Choice: protocol.Allow}})
	}
}

// What looks like a key reaches neither the journal, nor a watcher, nor the model, but a call that
// a person allowed runs as it was written.
func TestKeysStayInTheProcess(t *testing.T) {
	s, j := leaky(t), &journal{}
	c, err := s.performAllowed(t, j)
	if err != nil {
		t.Fatal(err)
	}
	if *c.Text != "---\nstatus: done\n---\nIt was [redacted:github_token]." {
		t.Errorf("concluded %q", *c.Text)
	}
	for _, where := range []any{j.commits, j.deltas, s.sent, s.turn.History} {
		b, err := json.Marshal(where)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), token[:20]) {
			t.Errorf("a key is in %s", b)
		}
	}
	if want := "one " + token + "\ntwo " + token + "\n"; s.log(t) != want {
		t.Errorf("the calls did %q", s.log(t))
	}
	results := find[protocol.ToolResult](j)
	for i, want := range []string{2: "token=[redacted:github_token]\n", 3: "key:1: token=[redacted:github_token]\nlog:"} {
		if want != "" && !strings.HasPrefix(results[i].Content.S, strings.TrimSuffix(want, "log:")) {
			t.Errorf("result %d is %q", i, results[i].Content.S)
		}
	}
}

// The requests of a visit that was killed are those of one that was not. A call whose
// arguments are lost is not run, and nobody is asked for it.
func TestKeysOfAKilledVisitAreNotGuessed(t *testing.T) {
	whole, s := &journal{}, leaky(t)
	if _, err := s.performAllowed(t, whole); err != nil {
		t.Fatal(err)
	}
	second := 0 // the commits before the result of the second call
	for results := 0; results < 2; second++ {
		if whole.commits[second][0].EventType() == protocol.EvToolResult {
			results++
		}
	}
	again, j := leaky(t), &journal{stop: second - 1}
	if _, err := again.performAllowed(t, j); !errors.Is(err, errKilled) {
		t.Fatalf("got %v", err)
	}
	j.stop, again.agent.Withheld = 0, nil
	if _, err := again.performAllowed(t, j); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(s.sent[0], again.sent[0]); d != "" {
		t.Error(d)
	}
	if want := "one " + token + "\ntwo " + token + "\n"; again.log(t) != want {
		t.Errorf("the calls did %q", again.log(t))
	}
	results := find[protocol.ToolResult](j)
	if !strings.Contains(results[1].Content.S, "outcome of this call is unknown") || results[2].IsError {
		t.Errorf("the results are %v", results)
	}

	third, j := leaky(t), &journal{stop: 2} // the first was asked for, and neither was started
	if _, err := third.performAllowed(t, j); !errors.Is(err, errKilled) {
		t.Fatalf("got %v", err)
	}
	j.stop, third.agent.Withheld = 0, nil
	if _, err := third.performAllowed(t, j); err != nil {
		t.Fatal(err)
	}
	for _, r := range find[protocol.ToolResult](j)[:2] {
		if !r.IsError || !strings.Contains(r.Content.S, "was not run") {
			t.Errorf("a call gives %q", r.Content.S)
		}
	}
	if _, err := os.Stat(filepath.Join(third.turn.Workspace, "log")); err == nil {
		t.Errorf("the calls did %q", third.log(t))
	}
}

func TestAHiddenKeyIsNotOverwritten(t *testing.T) {
	s := newStage(t, `coder#1:
  - {tools: [{tool: write_file, args: {path: key, content: "token=[redacted:github_token]\nmore\n"}}, {tool: edit_file, args: {path: key, old: "token=[redacted:github_token]", new: x}}, {tool: edit_file, args: {path: key, old: "# a", new: "# b"}}]}
  - {text: "---\nstatus: done\n---\n"}
`, "write_file", "edit_file")
	file := filepath.Join(s.turn.Workspace, "key")
	if err := os.WriteFile(file, []byte("# a\ntoken="+token+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	j := &journal{}
	if _, err := s.perform(t, j); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "# b\ntoken="+token+"\n" {
		t.Errorf("the file is %q, %v", b, err)
	}
	for i, want := range []string{"would be lost", "that you cannot see", "edited key"} {
		if r := find[protocol.ToolResult](j)[i]; !strings.Contains(r.Content.S, want) {
			t.Errorf("result %d is %q", i, r.Content.S)
		}
	}
}

// A signed thought in which a key stands goes back to its provider as it came, and nowhere else.
func TestAThoughtWithAKeyIsNotStored(t *testing.T) {
	thought := []modeltest.Piece{{Thinking: "is it " + token + "?"}, {Signature: "sig"}}
	call := func(id string) modeltest.Answer {
		return modeltest.Calls(modeltest.Call{ID: id, Name: "list_files", Args: `{"path":"."}`})
	}
	answers := []modeltest.Answer{call("a").After(thought...), call("b").After(modeltest.Piece{Thinking: "no key"}, modeltest.Piece{Signature: "gis"}), said("---\nstatus: done\n---\n", "stop")}
	s, server := answering(t, answers...)
	j := &journal{}
	if _, err := s.perform(t, j); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(j.commits)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), token[:20]) || !strings.Contains(string(b), "[redacted:github_token]") {
		t.Errorf("the journal holds %s", b)
	}
	if body := string(server.Requests()[2].Body); !strings.Contains(body, token+`?","signature":"sig"`) || !strings.Contains(body, `"no key","signature":"gis"`) {
		t.Errorf("the third request is %s", body)
	}

	// Whoever resumes the visit does without it, and without the thought that follows from it.
	s, server = answering(t, answers...)
	j = &journal{stop: 4}
	if _, err := s.perform(t, j); !errors.Is(err, errKilled) {
		t.Fatalf("got %v", err)
	}
	j.stop = 0
	if _, err := s.perform(t, j); err != nil {
		t.Fatal(err)
	}
	requests := server.Requests()
	if body := string(requests[len(requests)-1].Body); strings.Contains(body, "sig\"") || strings.Contains(body, `"no key"`) {
		t.Errorf("the last request is %s", body)
	}
}
