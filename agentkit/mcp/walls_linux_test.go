package mcp

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"wf/agentkit/sandbox"
	"wf/protocol"
)

// confinedStage is a pool whose server is started by a script of the workspace, and leaves a process behind.
func confinedStage(t *testing.T) *Pool {
	t.Helper()
	if why := sandbox.Probe().Lacks(sandbox.Policy{}); why != "" {
		t.Skip(why)
	}
	p := stdio(t)
	self := p.Servers[0].Command[0]
	for name, text := range map[string]string{
		"start.sh":  "sh \"$PWD/linger.sh\" >/dev/null 2>&1 </dev/null & exec \"$1\"\n",
		"linger.sh": "trap '' TERM\nwhile :; do sleep 1; done\n",
	} {
		if err := os.WriteFile(filepath.Join(p.Dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p.Servers[0].Command = []string{"sh", "./start.sh", self}
	p.Confine = func() (sandbox.Grants, error) { return sandbox.Grants{Read: []string{self}}, nil }
	p.Trusted = nil // it is not asked for
	return p
}

// lingers reports whether a process of the stage is there.
func lingers(t *testing.T, p *Pool) bool {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		line, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(line), filepath.Join(p.Dir, "linger.sh"))
	})
}

func TestAServerInTheWorkspaceHasItsKeysAndNoOthers(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-x")
	p := confinedStage(t)
	lines := strings.Split(call(t, p, "environ", `{}`).Content, "\n")
	for _, want := range []string{"GREETING=hello", "GIVEN_TOKEN=[secret:TOKEN]"} {
		if !slices.Contains(lines, want) {
			t.Errorf("the program lacks %s:\n%s", want, strings.Join(lines, "\n"))
		}
	}
	for _, l := range lines {
		if strings.Contains(l, "sk-x") || l == "HOME="+os.Getenv("HOME") {
			t.Errorf("the program has %s", l)
		}
	}
	if r := call(t, p, "say", `{"text":"hi"}`); r.Content != "hi" || p.starts["t"] != 1 {
		t.Errorf("then %q, started %d times", r.Content, p.starts["t"])
	}
}

// A server within walls lives as long as its connection, and so does what it started.
func TestNothingOutlivesTheSessionOfAConfinedServer(t *testing.T) {
	p := confinedStage(t)
	if r := call(t, p, "say", `{"text":"hi"}`); r.Content != "hi" {
		t.Fatal(r.Content)
	}
	deadline := time.After(time.Minute)
	for !lingers(t, p) {
		select {
		case <-deadline:
			t.Fatal("the script left no process behind")
		case <-time.After(time.Millisecond):
		}
	}
	p.Close()
	if lingers(t, p) {
		t.Error("a process of the server outlived its connection")
	}
	if r := call(t, p, "crash", `{}`); !strings.Contains(r.Content, "ended with status 3") || !strings.Contains(r.Content, "start.sh") || !strings.Contains(r.Content, "sandbox: off") {
		t.Errorf("a crash gives %q", r.Content)
	}
	if lingers(t, p) {
		t.Error("a process outlived a server that ended")
	}
}

// A program that is to be confined is not started where nothing can confine it, unless the machine is a sandbox itself.
func TestAServerThatCannotBeConfinedIsNotStarted(t *testing.T) {
	p := confinedStage(t)
	probe = func() sandbox.Tier {
		return sandbox.Tier{Name: sandbox.None, Reasons: []string{"there is no Landlock"}}
	}
	t.Cleanup(func() { probe = sandbox.Probe })
	if _, err := p.Tools(t.Context(), "mcp:t/*"); !errors.Is(err, sandbox.ErrUnavailable) || !strings.Contains(err.Error(), "start.sh") || !strings.Contains(err.Error(), "no Landlock") {
		t.Errorf("got %v", err)
	}
	if lingers(t, p) {
		t.Error("it was started")
	}
	p.Inside = func() bool { return true }
	p.Servers[0].Command = slices.Clone(p.Servers[0].Command)
	if err := os.WriteFile(filepath.Join(p.Dir, "start.sh"), []byte("exec \"$1\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if tools, err := p.Tools(t.Context(), "mcp:t/say"); err != nil || len(tools) != 1 {
		t.Errorf("in a container: %v, %v", tools, err)
	}
}

// A server of a config wants trust within walls, too: its entry names keys of the user.
func TestAServerOfAConfigWantsTrustWithinWallsToo(t *testing.T) {
	p := confinedStage(t)
	p.Foreign = []string{"t"}
	p.Allowed = func(string) bool { return true } // that is for servers of the workflow
	if _, err := p.Tools(t.Context(), "mcp:t/*"); !errors.Is(err, ErrUntrusted) {
		t.Errorf("got %v", err)
	}
	p.Servers = append(p.Servers, protocol.MCPServer{Name: "web", URL: "http://127.0.0.1:1/"})
	p.Foreign = append(p.Foreign, "web")
	if _, err := p.Tools(t.Context(), "mcp:web/*"); !errors.Is(err, ErrUntrusted) {
		t.Errorf("a url: %v", err)
	}
}
