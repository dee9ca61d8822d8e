package main

import (
	"strings"
	"testing"

	"wf/agentkit/config"
	"wf/agentkit/sandbox"
	"wf/engine"
	"wf/engine/lang"
	"wf/protocol"
)

const (
	withAgent = "wf: 1\nname: a\nroles:\n  coder: {prompt: Code., model: script/x}\n  test: {run: ls}\n  open: {run: ls, sandbox: off}\n" +
		"edges: [{from: START, to: coder}, {from: coder, to: test}, {from: test, to: open}, {from: open, to: END}]\n"
	withoutAgent = "wf: 1\nname: b\nroles: {one: {run: ls}}\n"
	confinedOne  = "wf: 1\nname: c\nroles: {one: {run: ls, sandbox: on}}\n"
)

// Where nothing can confine commands, a run that promises it does not begin, and its error names the roles
// and the ways out.
func TestARunThatCannotBeConfinedDoesNotBegin(t *testing.T) {
	none := sandbox.Tier{Name: sandbox.None, Reasons: []string{"the kernel has no Landlock"}}
	holds := sandbox.Tier{Name: "landlock-7", Holds: true}
	all := &config.Loaded{}
	all.Defaults.Sandbox = protocol.SandboxOn
	for name, c := range map[string]struct {
		tier   sandbox.Tier
		loaded *config.Loaded
		yaml   string
		roles  string // in the error; "" is none
	}{
		"beside an agent":                     {none, &config.Loaded{}, withAgent, "test"},
		"beside an agent, with walls":         {holds, &config.Loaded{}, withAgent, ""},
		"commands alone":                      {none, &config.Loaded{}, withoutAgent, ""},
		"commands alone, the config confines": {none, all, withoutAgent, "one"},
		"sandbox: on":                         {none, &config.Loaded{}, confinedOne, "one"},
	} {
		p, ds := lang.Load([]byte(c.yaml), lang.Options{})
		if p == nil {
			t.Fatal(ds)
		}
		probed := false
		err := unconfinable(func() sandbox.Tier { probed = true; return c.tier }, c.loaded, engine.Candidate{Program: p, New: true})
		if probed && name == "commands alone" {
			t.Errorf("%s: the machine was probed for nothing", name)
		}
		if c.roles == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err == nil || statusOf(err) != 4 {
			t.Errorf("%s: %v, status %d", name, err, statusOf(err))
			continue
		}
		for _, want := range []string{"the commands of " + c.roles + " are", "no Landlock"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is not in %q", name, want, err)
			}
		}
		for _, way := range []string{"user namespaces", "sandbox: off", "container_is_sandbox: true"} {
			if !strings.Contains(protocol.HintOf(err), way) {
				t.Errorf("%s: the way %q is not in %q", name, way, protocol.HintOf(err))
			}
		}
	}
}
