package agentkit

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/agentkit/prompt"
	"wf/agentkit/tool"
	"wf/protocol"
)

func TestAnAnswerConcludesTheVisit(t *testing.T) {
	s := newStage(t, `coder#1: [{text: "---\r\nstatus: done\r\n---\r\nFixed.\r\n\n", thinking: hm}]`)
	j := &journal{}
	c, err := s.perform(t, j)
	if err != nil {
		t.Fatal(err)
	}
	if *c.Text != "---\nstatus: done\n---\nFixed." || string(c.Data) != `{"status":"done"}` {
		t.Errorf("concluded %q with %s", *c.Text, c.Data)
	}
	if d := cmp.Diff([]string{"prompt", "thinking+text+usage"}, j.types()); d != "" {
		t.Error(d)
	}
	messages, err := prompt.BuildMessages(s.turn.History)
	if err != nil {
		t.Fatal(err)
	}
	if got := find[protocol.PromptSent](j)[0].Digest; got != prompt.Digest("", messages).String() {
		t.Errorf("the digest is %s", got)
	}
	if u := find[protocol.Usage](j)[0]; u.Model != "script/replies.yaml" || *u.Input == 0 || *u.Output == 0 || u.Cached != nil {
		t.Errorf("usage %+v", u)
	}
	if d := cmp.Diff([]protocol.Delta{{Kind: "thinking", Text: "hm"}, {Kind: "text", Text: "---\r\nstatus: done\r\n---\r\nFixed.\r\n\n"}}, j.deltas); d != "" {
		t.Error(d)
	}
}

func TestW11AnInvalidAnswerIsCorrectedTwiceAtMost(t *testing.T) {
	s := newStage(t, `coder#1:
  - {text: "Done!"}
  - {text: "---\nstatus: [done\n---\n"}
  - {text: "---\nstatus: finished\n---\nSee above."}
  - {text: "---\nstatus: done\n---\n"}
`)
	j := &journal{}
	c, err := s.perform(t, j)
	var f *protocol.Failure
	if !errors.As(err, &f) || f.Phase != "output_validation" || f.Code != "output_invalid" || f.Class != "invalid_output" || f.Suspend {
		t.Fatalf("got %#v", err)
	}
	if !strings.Contains(f.Message, "/status: value must be one of 'done', 'stuck'") {
		t.Errorf("the failure says %q", f.Message)
	}
	if c.Text == nil || !strings.HasSuffix(*c.Text, "See above.") || c.Data != nil {
		t.Errorf("the output of the failed visit is %v", c)
	}
	if n := len(find[protocol.Usage](j)); n != 3 {
		t.Errorf("%d usages are counted", n)
	}
	for i, want := range []string{"it begins with \\\"Done!\\\"", "not YAML"} {
		if !strings.Contains(s.sent[i+1], want) {
			t.Errorf("correction %d does not say %s: %s", i+1, want, s.sent[i+1])
		}
	}
	for i := 1; i < len(s.sent); i++ {
		if !strings.HasPrefix(s.sent[i], strings.TrimSuffix(s.sent[i-1], "]")) {
			t.Errorf("request %d does not begin with request %d", i+1, i)
		}
	}
}

func TestAnEmptyAnswerIsCorrectedToo(t *testing.T) {
	s := newStage(t, `coder#1: [{text: ""}, {text: "hello"}]`)
	s.turn.History.Schema = ""
	j := &journal{}
	c, err := s.perform(t, j)
	if err != nil || *c.Text != "hello" || c.Data != nil {
		t.Fatalf("got %v, %v", c, err)
	}
	if !strings.Contains(s.sent[1], "the answer is empty") || !strings.Contains(s.sent[1], "(no text)") {
		t.Errorf("sent %s", s.sent[1])
	}
}

func TestToolListsAreSortedCanonicalAndWithoutPaths(t *testing.T) {
	s := newStage(t, "{}", "write_file", "shell", "read_file", "edit_file", "list_files", "shell")
	list := s.turn.History.Tools
	canonical, err := protocol.CanonicalizeJSON([]byte(list))
	if err != nil || string(canonical) != list {
		t.Errorf("not canonical: %s (%v)", list, err)
	}
	var names []string
	offer, err := offered(list)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range offer {
		names = append(names, o.Name)
	}
	if d := cmp.Diff([]string{"edit_file", "list_files", "read_file", "shell", "write_file"}, names); d != "" {
		t.Error(d)
	}
	if strings.Contains(list, s.turn.Workspace) {
		t.Errorf("the workspace is in %s", list)
	}
	s.turn.Role.Tools = nil
	if p, err := s.agent.Prepare(t.Context(), s.turn); err != nil || p.Tools != list {
		t.Errorf("a visit that resumes has %s (%v)", p.Tools, err)
	}
	if _, err := tool.Named([]string{"shel"}, tool.All()); err == nil || !strings.Contains(err.Error(), "shell") {
		t.Errorf("got %v", err)
	}
}
