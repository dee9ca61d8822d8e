package agentkit

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/agentkit/sandbox"
	"wf/protocol"
)

func TestWhatConfinesCommandsIsJournaledOncePerVisit(t *testing.T) {
	tier := sandbox.Probe()
	if !tier.Holds {
		t.Skip("no sandbox here: ", tier)
	}
	s, j := newStage(t, `coder#1:
  - {tools: [{tool: shell, args: {command: "true"}}, {tool: shell, args: {command: "echo x > /etc/wf-was-here"}}]}
  - {tool: shell, args: {command: "false"}}
  - {text: "---\nstatus: done\n---\n"}
`, "shell"), &journal{}
	j.stop = 5 // killed after the second result
	if _, err := s.perform(t, j); err == nil {
		t.Fatal("it was not killed")
	}
	j.stop = 0
	if _, err := s.perform(t, j); err != nil {
		t.Fatal(err)
	}
	want := []protocol.SandboxTier{{Tier: tier.Name, ABI: tier.ABI}}
	if d := cmp.Diff(want, find[protocol.SandboxTier](j)); d != "" {
		t.Error(d)
	}
	results := find[protocol.ToolResult](j)
	if got := results[1].Content.S; !strings.Contains(got, "[sandbox "+tier.Name+": writes only in the workspace,") {
		t.Errorf("the denial reads %q", got)
	}
	if got := results[2].Content.S; strings.Contains(got, "sandbox") {
		t.Errorf("what is no denial reads %q", got)
	}
}
