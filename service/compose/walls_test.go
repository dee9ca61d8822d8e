package compose

import (
	"os"
	"path/filepath"
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
	withShell    = "wf: 1\nname: d\nroles:\n  coder: {prompt: Code., model: script/x, tools: [shell]}\n  reader: {prompt: Read., model: script/x, tools: [read_file]}\n" +
		"  test: {run: go test, network: allow}\n  get: {run: ls, network: [\"a.example.com:443\"]}\n  off: {run: ls, sandbox: off}\n" +
		"edges: [{from: START, to: coder}, {from: coder, to: reader}, {from: reader, to: test}, {from: test, to: get}, {from: get, to: off}, {from: off, to: END}]\n"
	confinedOne = "wf: 1\nname: c\nroles: {one: {run: ls, sandbox: on}}\n"
)

// Where nothing can confine commands, a run that promises it does not begin, and its error names the roles
// and the ways out.
func TestARunThatCannotBeConfinedDoesNotBegin(t *testing.T) {
	none := sandbox.Tier{Name: sandbox.None, Reasons: []string{"the kernel has no Landlock"}}
	holds := sandbox.Tier{Name: "landlock-7", Holds: true, Namespaces: true}
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
		if protocol.CodeOf(err) != ErrUnconfined.Code {
			t.Errorf("%s: %v", name, err)
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

// Where walls hold without namespaces, what a role says of the network is held or refused, and one that would
// have a loopback does not begin without.
func TestAPolicyThatTheTierCannotHoldIsRefused(t *testing.T) {
	lower := sandbox.Tier{Name: "landlock-7+seccomp", ABI: 7, Holds: true, Reasons: []string{"no user namespace: user.max_user_namespaces is reached or 0"}}
	higher := sandbox.Tier{Name: "landlock-7+seccomp+netns", ABI: 7, Holds: true, Namespaces: true}
	for name, c := range map[string]struct {
		tier   sandbox.Tier
		loaded *config.Loaded
		yaml   string
		want   []string // in the error; none is no error
	}{
		"a command and its loopback":  {lower, &config.Loaded{}, withAgent, []string{"the commands of test: without a network namespace there is no loopback"}},
		"an agent's shell and a list": {lower, &config.Loaded{}, withShell, []string{"the commands of coder: without a network namespace", "the commands of get: a list of hosts is held by a network namespace"}},
		"with namespaces":             {higher, &config.Loaded{}, withShell, nil},
		"commands alone":              {lower, &config.Loaded{}, withoutAgent, nil},
	} {
		p, ds := lang.Load([]byte(c.yaml), lang.Options{})
		if p == nil {
			t.Fatal(ds)
		}
		err := unconfinable(func() sandbox.Tier { return c.tier }, c.loaded, engine.Candidate{Program: p, New: true})
		if c.want == nil {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if protocol.CodeOf(err) != ErrUnconfined.Code {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, want := range append(c.want, "user.max_user_namespaces") {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is not in %q", name, want, err)
			}
		}
		for _, way := range []string{"allow user namespaces", "network: allow", "container_is_sandbox: true"} {
			if !strings.Contains(protocol.HintOf(err), way) {
				t.Errorf("%s: the way %q is not in %q", name, way, protocol.HintOf(err))
			}
		}
	}
}

// A server with a program in the workspace is confined, or refused before the run begins.
func TestAServerThatCannotBeConfinedIsRefusedBeforeTheRun(t *testing.T) {
	none := sandbox.Tier{Name: sandbox.None, Reasons: []string{"the kernel has no Landlock"}}
	holds := sandbox.Tier{Name: "landlock-7", Holds: true, Namespaces: true}
	lower := sandbox.Tier{Name: "landlock-7+seccomp", Holds: true}
	workspace := t.TempDir()
	if err := os.MkdirAll(filepath.Join(workspace, "sub", "tools"), 0o755); err != nil {
		t.Fatal(err)
	}
	const tail = "}\nroles:\n  a: {prompt: Say., model: script/x, dir: sub, tools: [mcp:hello/*]}\n"
	for name, c := range map[string]struct {
		tier   sandbox.Tier
		server string
		want   string // in the error; "" is none
	}{
		"in the workspace":               {none, "command: [sh, ./tools/x.sh]", "mcp:hello, since its command names tools/x.sh"},
		"in a directory of it":           {none, "command: [sh, -c, cd tools; ./x]", "mcp:hello, since its command names tools"},
		"with walls":                     {holds, "command: [sh, ./tools/x.sh]", ""},
		"outside":                        {none, "command: [sh, /opt/x.sh]", ""},
		"outside, and to be confined":    {none, "command: [sh, /opt/x.sh], sandbox: on", "mcp:hello, since it says  sandbox: on"},
		"off":                            {none, "command: [sh, ./tools/x.sh], sandbox: off", ""},
		"a url":                          {none, "url: 'https://mcp.example'", ""},
		"a list, and no namespace":       {lower, "command: [sh, ./tools/x.sh], network: [packages]", "a list of hosts is held by a network namespace"},
		"the network, with no namespace": {lower, "command: [sh, ./tools/x.sh], network: allow", ""},
	} {
		p, ds := lang.Load([]byte("wf: 1\nname: n\nmcp:\n  hello: {"+c.server+tail), lang.Options{})
		if p == nil {
			t.Fatal(ds)
		}
		err := unconfinableServers(func() sandbox.Tier { return c.tier }, &config.Loaded{}, engine.Candidate{Program: p, Workspace: workspace, New: true})
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if protocol.CodeOf(err) != "sandbox_unavailable" || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, way := range []string{"user namespaces", "sandbox: off", "container_is_sandbox: true"} {
			if !strings.Contains(protocol.HintOf(err), way) {
				t.Errorf("%s: the way %q is not in %q", name, way, protocol.HintOf(err))
			}
		}
	}
}
