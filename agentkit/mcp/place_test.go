package mcp

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/protocol"
)

// A stage is a workspace with what an agent may write, beside what the user has.
func placeStage(t *testing.T) (top, root string) {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root = filepath.Join(top, "work")
	for _, name := range []string{
		"work/tools/server.js", "work/tools/run", "work/sub/here.py", "work/module.py", "work/pkg/x.py",
		"work/node_modules/@scope/local/package.json", "work/node_modules/.bin/local-server",
		"bin/server", "opt/server.js",
	} {
		path := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"bin/linked": root + "/tools/run", "work/tools/out": top + "/bin/server", "alias": root} {
		if err := os.Symlink(to, filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", "node_modules/.bin:"+root+"/node_modules/.bin:"+top+"/bin:/usr/bin:/bin")
	return top, root
}

// A program is confined where an agent may have written what it runs, and nowhere else.
func TestWhatACommandNamesOfTheWorkspaceIsKnown(t *testing.T) {
	top, root := placeStage(t)
	for _, c := range []struct {
		command []string
		want    string // what it names of the workspace
	}{
		{[]string{"./tools/run"}, "tools/run"},
		{[]string{"tools/run"}, "tools/run"},
		{[]string{root + "/tools/run"}, "tools/run"},
		{[]string{top + "/alias/tools/run"}, "tools/run"},
		{[]string{"../work/tools/run"}, "tools/run"},
		{[]string{top + "/bin/linked"}, "tools/run"},
		{[]string{"linked"}, "tools/run"},
		{[]string{"./tools/out"}, "tools/out"}, // the link can be replaced
		{[]string{"local-server"}, "node_modules/.bin/local-server"},
		{[]string{"sh", "tools/run"}, "tools/run"},
		{[]string{"node", "tools/server.js"}, "tools/server.js"},
		{[]string{"node", "tools/server"}, "tools/server.js"},
		{[]string{"node", "--require=./tools/server.js", "x"}, "tools/server.js"},
		{[]string{"node", "--import", "file://" + root + "/tools/server.js"}, "tools/server.js"},
		{[]string{"node", "gone/server.js"}, "gone/server.js"}, // moved out of the way for the moment
		{[]string{"node", "."}, "."},
		{[]string{"env", "A=1", "node", "."}, "."},
		{[]string{"sh", "-c", "cd tools && exec ./run"}, "run tools"},
		{[]string{"sh", "-c", `exec "$PWD/tools/run"`}, "tools/run"},
		{[]string{"sh", "-c", "exec tools/run 2>/dev/null"}, "tools/run"},
		{[]string{"python3", "-m", "module"}, "module.py"},
		{[]string{"python3.12", "-m", "pkg.x"}, "pkg"},
		{[]string{"npx", "-y", "@scope/local@1.2"}, "node_modules/@scope/local"},
		{[]string{"npx", "local-server"}, "node_modules/.bin/local-server"},
		{[]string{"java", "-cp", "/opt/a.jar:tools", "Main"}, "tools"},
		{[]string{"perl", "-I./tools", "/opt/x.pl"}, "tools"},

		{[]string{"server"}, ""},
		{[]string{top + "/bin/server", "stdio"}, ""},
		{[]string{"../bin/server"}, ""},
		{[]string{"server", "--root", "."}, ""},
		{[]string{"server", root}, ""},
		{[]string{"node", top + "/opt/server.js", "."}, ""},
		{[]string{"npx", "-y", "@scope/other", "."}, ""},
		{[]string{"npx", "-y", "mcp.js"}, ""},
		{[]string{"uvx", "mcp-server-git", "--repository", "."}, ""},
		{[]string{"python3", "-m", "elsewhere", root}, ""},
		{[]string{"docker", "run", "-i", "--rm", "-v", root + ":/data", "mcp/github"}, ""},
		{[]string{"sh", "-c", "exec server"}, ""},
	} {
		p, err := PlaceOf(root, root, protocol.MCPServer{Command: c.command})
		if err != nil {
			t.Errorf("%q: %v", c.command, err)
			continue
		}
		got := strings.Join(p.Inside, " ")
		if got != c.want || p.Confined != (c.want != "") {
			t.Errorf("%q names %q (confined: %v), want %q", c.command, got, p.Confined, c.want)
		}
	}
}

func TestWhatACommandRunsOfAProjectIsKnown(t *testing.T) {
	_, root := placeStage(t)
	sub := filepath.Join(root, "sub")
	of := func(s protocol.MCPServer) string {
		t.Helper()
		p, err := PlaceOf(root, sub, s)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(p.Inside, " ")
	}
	start := protocol.MCPServer{Command: []string{"npm", "run", "mcp"}}
	if got := of(start); got != "" {
		t.Errorf("without a project it names %q", got)
	}
	for _, name := range []string{"package.json", "pyproject.toml", "go.mod"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte("{}"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		server protocol.MCPServer
		want   string
	}{
		{start, "../package.json"},
		{protocol.MCPServer{Command: []string{"uv", "run", "mcp"}}, "../pyproject.toml"},
		{protocol.MCPServer{Command: []string{"go", "run", "example.com/project/cmd/mcp"}}, "../go.mod"},
		{protocol.MCPServer{Command: []string{"go", "run", "example.com/other/mcp@v1.2.3"}}, ""},
		{protocol.MCPServer{Command: []string{"go", "run", "example.com/project/cmd/mcp", "--as", "me@example.com"}}, "../go.mod"},
		{protocol.MCPServer{Command: []string{"go", "tool", "mcp", "--as", "me@example.com"}}, "../go.mod"},
		{protocol.MCPServer{Command: []string{"npm", "start", "--prefix", ".."}}, ".. ../package.json"},
		{protocol.MCPServer{Command: []string{"npm", "start", "--prefix=" + root}}, "../package.json"},
		{protocol.MCPServer{Command: []string{"npm", "--prefix", "/opt/mcp", "start"}}, ""},
		{protocol.MCPServer{Command: []string{"uv", "--directory", "/opt/mcp", "run", "x"}}, ""},
		{protocol.MCPServer{Command: []string{"npx", "-y", "@scope/other"}}, ""},
		{protocol.MCPServer{Command: []string{"npx", "-y", "@scope/local"}}, "../node_modules/@scope/local"},
		{protocol.MCPServer{Command: []string{"python3", "here.py"}}, "here.py"},
		{protocol.MCPServer{Command: []string{"server"}, Env: []protocol.MCPValue{{Name: "NODE_OPTIONS", Value: "--require ../tools/server.js"}}}, "../tools/server.js"},
	} {
		if got := of(c.server); got != c.want {
			t.Errorf("%q names %q, want %q", c.server.Command, got, c.want)
		}
	}
}

// What is said of the sandbox counts for either; files are taken for a program that is not confined alone.
func TestAnEntrySaysWhetherItIsConfined(t *testing.T) {
	top, root := placeStage(t)
	for _, c := range []struct {
		server   protocol.MCPServer
		confined bool
		files    int
	}{
		{protocol.MCPServer{Command: []string{"server"}}, false, 0},
		{protocol.MCPServer{Command: []string{"server"}, Sandbox: protocol.SandboxOn}, true, 0},
		{protocol.MCPServer{Command: []string{"sh", "tools/run"}}, true, 0},
		{protocol.MCPServer{Command: []string{"sh", "tools/run"}, Sandbox: protocol.SandboxOff}, false, 1},
		{protocol.MCPServer{Command: []string{"sh", "tools/run", "tools"}, Sandbox: protocol.SandboxOff}, false, 2},
		{protocol.MCPServer{URL: "https://e.example/tools/run"}, false, 0},
	} {
		p, err := PlaceOf(root, root, c.server)
		if err != nil || p.Confined != c.confined || len(p.Files) != c.files {
			t.Errorf("%+v: %+v, %v", c.server, p, err)
		}
	}
	for name, make := range map[string]func() error{
		"a link that leads out": func() error { return os.Symlink(top+"/bin/server", root+"/x") },
		"a pipe":                func() error { return syscall.Mkfifo(root+"/x", 0o644) },
	} {
		if err := make(); err != nil {
			t.Fatal(err)
		}
		if p, err := PlaceOf(root, root, protocol.MCPServer{Command: []string{"./x"}, Sandbox: protocol.SandboxOff}); err == nil {
			t.Errorf("%s is read: %+v", name, p)
		}
		if err := os.Remove(root + "/x"); err != nil {
			t.Fatal(err)
		}
	}
}

// The trust in a server is in all that decides what runs, and in nothing else.
func TestTheKeyOfAServerIsInWhatItRuns(t *testing.T) {
	_, root := placeStage(t)
	base := protocol.MCPServer{Name: "a", Command: []string{"sh", "./tools/run"}, Sandbox: protocol.SandboxOff, Env: []protocol.MCPValue{{Name: "A", Value: "1"}, {Name: "K", Secret: "KEY"}}}
	key := func(change func(*protocol.MCPServer)) string {
		t.Helper()
		s := base
		s.Env = append([]protocol.MCPValue{}, base.Env...)
		change(&s)
		p, err := PlaceOf(root, root, s)
		if err != nil {
			t.Fatal(err)
		}
		cid, err := Key(s, p)
		if err != nil {
			t.Fatal(err)
		}
		return cid.String()
	}
	same := func(*protocol.MCPServer) {}
	first := key(same)
	if key(func(s *protocol.MCPServer) { s.Name = "b" }) != first {
		t.Error("the name is part of it")
	}
	for what, change := range map[string]func(*protocol.MCPServer){
		"the command":     func(s *protocol.MCPServer) { s.Command = []string{"sh", "./tools/run", "x"} },
		"a value":         func(s *protocol.MCPServer) { s.Env[0].Value = "2" },
		"a secret":        func(s *protocol.MCPServer) { s.Env[1].Secret = "OTHER" },
		"the walls":       func(s *protocol.MCPServer) { s.Sandbox = "" },
		"the network":     func(s *protocol.MCPServer) { s.NetworkHosts = []string{"a.example:443"} },
		"the place of it": func(s *protocol.MCPServer) { s.Command = []string{"sh", "./tools/out2"} },
	} {
		if key(change) == first {
			t.Errorf("%s is no part of it", what)
		}
	}
	if err := os.WriteFile(root+"/tools/run", []byte("#!/bin/sh\nevil\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if key(same) == first {
		t.Error("the file is no part of it")
	}
	if err := os.Remove(root + "/tools/run"); err != nil {
		t.Fatal(err)
	}
	if key(same) == first {
		t.Error("that the file is there is no part of it")
	}
	if err := os.Mkdir(root+"/tools/run", 0o755); err != nil { // in which node looks for index.js
		t.Fatal(err)
	}
	if key(same) == first {
		t.Error("that it is a file is no part of it")
	}
}

// No program of the workspace is found by the PATH of one that runs as the user.
func TestThePathOfAProgramLeadsNotIntoTheWorkspace(t *testing.T) {
	top, root := placeStage(t)
	got := outside(root, []string{"PATH=" + os.Getenv("PATH") + "::.", "NODE_PATH=" + root + "/node_modules", "HOME=" + root})
	if d := cmp.Diff([]string{"PATH=" + top + "/bin:/usr/bin:/bin", "NODE_PATH=", "HOME=" + root}, got); d != "" {
		t.Error(d)
	}
}

// A directory in the place of a file, in which an interpreter finds another, is not what was trusted.
func TestADirectoryInPlaceOfAFileIsNotTrusted(t *testing.T) {
	_, root := placeStage(t)
	s := protocol.MCPServer{Name: "t", Command: []string{"node", "tools/server.js"}, Sandbox: protocol.SandboxOff}
	if err := os.Remove(root + "/tools/server.js"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(root+"/tools/server.js", 0o755); err != nil {
		t.Fatal(err)
	}
	p := &Pool{Servers: []protocol.MCPServer{s}, Dir: root, Allowed: func(string) bool { return true },
		Trusted: func(_ protocol.MCPServer, at Place) error {
			if d := cmp.Diff([]File{{"tools/server.js", Directory}}, at.Files); d != "" {
				t.Error(d)
			}
			return ErrUntrusted
		}}
	defer p.Close()
	if _, err := p.Tools(t.Context(), "mcp:t/*"); !errors.Is(err, ErrUntrusted) {
		t.Errorf("got %v", err)
	}
}
