package agentkit

import (
	"errors"
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

// Where nothing confines commands, those of an agent ask; on a machine that is a sandbox itself they run as
// they are, and the journal says where.
func TestOnAMachineThatIsASandboxCommandsRunAsTheyAre(t *testing.T) {
	old := probe
	t.Cleanup(func() { probe = old })
	probe = func() sandbox.Tier { return sandbox.Tier{Name: sandbox.None, Reasons: []string{"a test"}} }
	for inside, want := range map[bool]error{false: protocol.ErrWaiting, true: nil} {
		s, j := newStage(t, `coder#1:
  - {tool: shell, args: {command: "echo it ran"}}
  - {text: "---\nstatus: done\n---\n"}
`, "shell"), &journal{}
		s.agent.Inside = func() bool { return inside }
		if _, err := s.perform(t, j); !errors.Is(err, want) {
			t.Fatalf("inside %v: %v", inside, err)
		}
		if !inside {
			continue
		}
		if d := cmp.Diff([]protocol.SandboxTier{{Tier: sandbox.Container}}, find[protocol.SandboxTier](j)); d != "" {
			t.Error(d)
		}
		if got := find[protocol.ToolResult](j)[0].Content.S; !strings.Contains(got, "it ran") {
			t.Errorf("the command said %q", got)
		}
	}
}
