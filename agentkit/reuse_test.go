package agentkit

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/model"
	"wf/agentkit/openai"
	"wf/agentkit/tape"
	"wf/agentkit/tool"
	"wf/protocol"
	"wf/roles"
)

var _ roles.Reuser = Agent{}

// plainModels has the stage ask its models themselves.
func (s *stage) plainModels() { s.agent.Models = nil }

func (s *stage) follows(t *testing.T) (roles.Follows, string) {
	t.Helper()
	f, err := s.agent.Follows(t.Context(), s.turn, "")
	if err != nil && !errors.Is(err, roles.ErrNotReusable) {
		t.Fatal(err)
	}
	if err != nil {
		return f, err.Error()
	}
	return f, ""
}

func TestM01WhatTheAnswerOfAnAgentFollowsFrom(t *testing.T) {
	s := newStage(t, "coder#1: [{text: x}]")
	s.plainModels()
	f, why := s.follows(t)
	var names []string
	for _, p := range f.Parts {
		names = append(names, p.Name)
	}
	if got, want := strings.Join(names, ", "), "visit, model, script, visit of the script, tools, message 1 (system), message 2 (user)"; why != "" || got != want || f.Sees != roles.SeesNothing {
		t.Errorf("%s, want %s; sees %v; %s", got, want, f.Sees, why)
	}
	s = newStage(t, "coder#1: [{text: x}]", "read_file", "search")
	s.plainModels()
	if f, why = s.follows(t); why != "" || f.Sees != roles.SeesEverything || !slices.ContainsFunc(f.Parts, func(p protocol.MemoPart) bool { return p.Name == excludesFile }) {
		t.Errorf("sees %v, %v: %s", f.Sees, f.Parts, why)
	}
}

// What no key can tell is named.
func TestM01WhyAnAnswerOfAnAgentIsNotReused(t *testing.T) {
	for _, c := range []struct {
		name, want string
		tools      []string
		change     func(s *stage)
	}{
		{"nothing", "", nil, func(*stage) {}},
		{"a shell", "its tool shell runs commands", []string{"read_file", "shell"}, func(*stage) {}},
		{"a shell that was recorded, and is named no more", "its tool shell runs commands", []string{"shell"}, func(s *stage) { s.turn.Role.Tools = nil }},
		{"a tool that a person is asked for", "a person is asked for calls of edit_file", []string{"edit_file"}, func(s *stage) {
			s.turn.Role.Approvals = []protocol.NamedTemplate{{Name: "edit_file", Value: "ask"}}
		}},
		{"a tool that is refused", "", []string{"edit_file"}, func(s *stage) {
			s.turn.Role.Approvals = []protocol.NamedTemplate{{Name: "edit_file", Value: "deny"}}
		}},
		{"a tool of the program", "what its tool read_file does is not known", []string{"read_file"}, func(s *stage) {
			s.agent.Tools = []tool.Tool{{Name: "read_file", Parameters: protocol.JSON("{}")}}
		}},
		{"a tool of a server", "what its tool mcp__s__t does is not known", nil, func(s *stage) {
			s.turn.History.Tools = `[{"description":"d","name":"mcp__s__t","parameters":{}}]`
		}},
		{"a memory", "it has a memory", nil, func(s *stage) { s.turn.Role.Memory = &protocol.MemorySpec{} }},
		{"tasks, by the run", "it works on tasks", nil, func(s *stage) { s.turn.Role.Context = protocol.ContextTask }},
		{"no model", "it names no model", nil, func(s *stage) { s.turn.Models = nil }},
		{"a model that is not there", "its first model cannot be asked", nil, func(s *stage) { s.turn.Models = []string{"script/none.yaml", "script/replies.yaml"} }},
		{"a model of another program", "does not tell what its answers follow from", nil, func(s *stage) {
			s.agent.Models = func(name, dir string) (llms.Model, error) {
				m, err := Standard().Open(name, dir)
				return struct{ llms.Model }{m}, err
			}
		}},
		{"a recording", "does not tell what its answers follow from", nil, func(s *stage) {
			s.agent.Models = func(name, dir string) (llms.Model, error) {
				m, err := Standard().Open(name, dir)
				return tape.Record(nil).Wrap(name, m), err
			}
		}},
		{"a directory of git", "it works in .git/hooks", []string{"read_file"}, func(s *stage) { s.turn.Role.Dir = ".git/hooks" }},
		{"a worktree, whose .git is a file", "", []string{"search"}, func(s *stage) {
			os.WriteFile(filepath.Join(s.turn.Workspace, ".git"), []byte("gitdir: /nowhere"), 0o600)
		}},
		{"exclude as a directory", "cannot be read", []string{"search"}, func(s *stage) {
			os.MkdirAll(filepath.Join(s.turn.Workspace, ".git/info/exclude"), 0o700)
		}},
		{"exclude as long as it is read", "", []string{"search"}, func(s *stage) { excluding(s, excludesMax) }},
		{"exclude that is longer", "cannot be read", []string{"search"}, func(s *stage) { excluding(s, excludesMax+1) }},
		{"an asked compaction of a short conversation", "", nil, func(s *stage) { s.turn.Compact = true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t, "coder#1: [{text: x}]", c.tools...)
			s.plainModels()
			c.change(s)
			if _, why := s.follows(t); (why == "") != (c.want == "") || !strings.Contains(why, c.want) {
				t.Errorf("got %q, want %q", why, c.want)
			}
		})
	}
}

// excluding writes an exclude file of so many bytes.
func excluding(s *stage, size int) {
	file := filepath.Join(s.turn.Workspace, excludesFile)
	os.MkdirAll(filepath.Dir(file), 0o700)
	os.WriteFile(file, make([]byte, size), 0o600)
}

// What is heard of a performance says whether its answer is kept.
func TestM01WhatIsHeardOfAPerformance(t *testing.T) {
	count := new(int64)
	for _, c := range []struct {
		name, want string
		data       protocol.Data
	}{
		{"a reply", "", protocol.TextSaid{Content: protocol.NewText("done")}},
		{"a usage", "", protocol.Usage{Input: count, Stop: "stop"}},
		{"a call that failed and is tried again", "", protocol.Usage{}},
		{"a correction", "", protocol.Correction{Number: 1}},
		{"a reply that was cut off", "a reply was cut off", protocol.Usage{Input: count, Stop: protocol.StopLength}},
		{"a request that was too long", "refused for its size", protocol.Usage{Stop: protocol.StopOverflow}},
		{"a refusal", "kept back", protocol.Usage{Stop: protocol.StopRefused}},
		{"a summary", "compacted", protocol.Usage{Kind: protocol.UsageCompaction}},
		{"a reflection", "compacted", protocol.Usage{Kind: protocol.UsageReflection}},
		{"a compaction", "compacted", protocol.Compacted{}},
		{"a compaction of the conversation", "compacted", protocol.CompactionDraft{}},
		{"another model", "m2 was asked instead", protocol.ModelFallback{From: "m1", To: "m2"}},
		{"a question", "a person was asked", protocol.WaitingFor{}},
		{"an approval", "a person was asked", protocol.Approval{}},
		{"a hidden secret", "a secret was hidden", protocol.TextSaid{Content: protocol.NewText("the key is [secret:KEY]")}},
		{"a hidden secret in a call", "a secret was hidden", protocol.ToolCall{Name: "write_file", Args: protocol.NewText("{}"), Digest: "x"}},
		{"a hidden secret in a result", "a secret was hidden", protocol.ToolResult{Content: protocol.NewText("[redacted:key]")}},
		{"what appeared", "other programs act", protocol.ToolResult{Appeared: &protocol.Appeared{}}},
		{"a full disk", "no space left", protocol.ToolResult{IsError: true, Content: protocol.NewText("error: a: no space left on device")}},
		{"an error that follows from the files", "", protocol.ToolResult{IsError: true, Content: protocol.NewText("error: a does not hold the text of old")}},
		{"a file of git", "a file of .git", protocol.ToolCall{Name: "read_file", Args: protocol.NewText(`{"path":"sub/../.git/config"}`)}},
		{"a file of git by another name", "a file of GIT~1", protocol.ToolCall{Name: "read_file", Args: protocol.NewText(`{"path":"GIT~1/config"}`)}},
		{"a path of the machine", "its place on this machine", protocol.ToolCall{Name: "read_file", Args: protocol.NewText(`{"path":"/etc/hosts"}`)}},
		{"arguments that are none", "", protocol.ToolCall{Name: "read_file", Args: protocol.NewText(`{"path":`)}},
	} {
		e := &ear{turn: &protocol.Turn{Workspace: t.TempDir()}, wrote: map[string]bool{}}
		if got := e.Hear(c.data); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// Which files an agent can have changed follows from the calls of tools that write, through links too.
func TestM01WhichFilesAnAgentCanHaveChanged(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "sub/real"), 0o700), os.Symlink("real", filepath.Join(dir, "sub/link"))); err != nil {
		t.Fatal(err)
	}
	e := &ear{turn: &protocol.Turn{Workspace: dir, Role: protocol.Role{Dir: "sub"}}, wrote: map[string]bool{}}
	for name, args := range map[string]string{"read_file": `{"path":"r"}`, "write_file": `{"path":"link/a"}`, "edit_file": `{"path":"./b/../c"}`} {
		if why := e.Hear(protocol.ToolCall{Name: name, Args: protocol.NewText(args)}); why != "" {
			t.Fatal(why)
		}
	}
	for name, want := range map[string]bool{"sub/real/a": true, "sub/c": true, "sub/r": false, "c": false, "sub/link/a": false} {
		if e.Wrote(name) != want {
			t.Errorf("%s: %t", name, !want)
		}
	}
}

// A script and a tape are told by their bytes as they were opened, an endpoint without its password.
func TestM01WhatModelsFollowFrom(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.yaml")
	sources := func(name string) string {
		m, err := Standard().Open(name, dir)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, s := range m.(model.Sourced).Sources(model.Request{Role: "a", Visit: 2}) {
			out = append(out, s.Name+"="+s.Value)
		}
		return strings.Join(out, " ")
	}
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), fs.FileMode(0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write("a#1: [{text: x}]\n")
	first := sources("script/a.yaml")
	opened, err := Standard().Open("script/a.yaml", dir)
	if err != nil {
		t.Fatal(err)
	}
	write("a#1: [{text: y}]\n")
	if then := sources("script/a.yaml"); then == first || !strings.Contains(then, "a#2") {
		t.Errorf("%s, then %s", first, then)
	}
	if s := opened.(model.Sourced).Sources(model.Request{Role: "a", Visit: 2}); !strings.Contains(first, s[0].Value) {
		t.Errorf("an opened script is told by the file as it is now: %v", s)
	}
	write("")
	empty := sources("tape/a.yaml")
	write("cut off")
	if then := sources("tape/a.yaml"); then != empty {
		t.Errorf("a line that is not read counts: %s, %s", empty, then)
	}
	m, err := openai.New("p/m", "m", openai.Config{BaseURL: "https://user:pass@example.com/v1"})
	if err != nil {
		t.Fatal(err)
	}
	if s := m.Sources(model.Request{}); s[0].Value != "https://example.com/v1/chat/completions" || s[1].Value != "m" {
		t.Errorf("%v", s)
	}
}
