package main

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"
	"wf/agentkit"
	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/engine/lang"
	"wf/protocol"
	"wf/roles"
)

// forgetful is an agent that offers other tools at each visit, as ours never does.
type forgetful struct{ agentkit.Agent }

func (f forgetful) Prepare(ctx context.Context, turn protocol.Turn) (roles.Preparation, error) {
	turn.Visit, turn.History.Tools = 1, ""
	if turn.EdgePrompt == "Again." {
		turn.Role.Tools = []string{"read_file", "write_file"}
	}
	return f.Agent.Prepare(ctx, turn)
}

// A tool list that changed between two visits fails the build with the first byte that differs.
func TestABrokenPrefixInTheToolsFailsTheCheck(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	write(t, p.dir, "replies.yaml", "a#1: [{text: one}]\na#2: [{text: two}]\n")
	def, diags := lang.Load([]byte(`wf: 1
name: forgetful
roles:
  a: {prompt: Say it., model: script/replies.yaml, tools: [read_file], timeout: 1m}
edges:
  - {from: START, to: a}
  - {from: a, to: a, limit: 1, on_limit: END, prompt: Again.}
`), lang.Options{File: "forgetful.yaml"})
	if def == nil {
		t.Fatal(diags)
	}
	s, err := cas.Open(t.Context(), filepath.Join(p.dir, ".wf"), cas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := &engine.Engine{Store: s, Performers: map[protocol.Action]roles.Performer{protocol.ActPrompt: forgetful{}}}
	id, _, err := e.Begin(t.Context(), engine.Launch{Program: def, Inputs: protocol.JSON("{}"), Workspace: p.dir, File: filepath.Join(p.dir, "forgetful.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Drive(t.Context(), id, engine.DriveOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var c api.Cache
	if err := json.Unmarshal(p.wf(1, "cache", string(id), "--min-prefix", "1.0", "-o", "json"), &c); err != nil {
		t.Fatal(err)
	}
	last := c.Items[len(c.Items)-1]
	if last.Step != "a#2" || last.Part != "tools" || last.Differs == nil || *last.Differs == 0 || *last.Differs != last.Shared || last.Ratio >= 1 {
		t.Errorf("the broken call: %+v", last)
	}
	p.wf(0, "verify", string(id)) // that is no damage
}
