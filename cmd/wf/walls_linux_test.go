package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// withoutNamespaces runs wf as a user who is not root and can make no user namespace. The limit is that of
// a namespace of the test's own, so that nothing else on the machine feels it.
type withoutNamespaces struct {
	t       *testing.T
	dir, wf string
	most    string // how many there may be
}

const plainUser = "65534"

func newWithoutNamespaces(t *testing.T) withoutNamespaces {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("skipped: only root can become a user without namespaces")
	}
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip("skipped: ", err)
	}
	dir, err := os.MkdirTemp("/var/tmp", "wf-plain-")
	if err != nil {
		t.Skip("skipped: no /var/tmp: ", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	n := withoutNamespaces{t, dir, filepath.Join(dir, "bin/wf"), "0"}
	if err := os.Mkdir(filepath.Dir(n.wf), 0o755); err != nil {
		t.Fatal(err)
	}
	installCopy(t, n.wf, "/proc/self/exe")
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if code, out := n.run("version"); code != 0 {
		t.Skipf("skipped: user.max_user_namespaces of a namespace cannot be set here: %s", out)
	}
	return n
}

func (n withoutNamespaces) write(name, text string) {
	n.t.Helper()
	path := filepath.Join(n.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		n.t.Fatal(err)
	}
	for at := filepath.Dir(path); at != n.dir; at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o777); err != nil {
			n.t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		n.t.Fatal(err)
	}
}

// run gives the exit status of wf, and all that it said.
func (n withoutNamespaces) run(args ...string) (int, string) {
	n.t.Helper()
	script := `echo ` + n.most + ` > /proc/sys/user/max_user_namespaces && cd "$1" && shift && exec setpriv --reuid=` + plainUser + ` --regid=` + plainUser + ` --clear-groups "$@"`
	cmd := exec.CommandContext(n.t.Context(), "sh", append([]string{"-c", script, "sh", n.dir, n.wf}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + n.dir, "TMPDIR=" + n.dir, "XDG_RUNTIME_DIR=" + n.dir}
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 65536}}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids, GidMappingsEnableSetgroups: true, Pdeathsig: syscall.SIGKILL}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); cmd.ProcessState == nil {
		n.t.Skip("skipped: no user namespace can be made here: ", err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

// TestWithoutUserNamespacesARunIsRefusedBeforeItBegins is what a user of a hardened machine or a container
// meets, with each of the ways out.
func TestWithoutUserNamespacesARunIsRefusedBeforeItBegins(t *testing.T) {
	t.Parallel()
	n := newWithoutNamespaces(t)
	flow := "wf: 1\nname: flow\nroles:\n  coder: {prompt: You code., model: script/said.yaml}\n  test: {run: \"go test ./... ; echo ran > ran\"NETWORK}\n" +
		"edges: [{from: START, to: coder}, {from: coder, to: test}, {from: test, to: END}]\n"
	n.write("said.yaml", "coder#1: [{text: Done.}]\n")
	n.write("flow.yaml", strings.Replace(flow, "NETWORK", "", 1))
	n.write("allow.yaml", strings.Replace(flow, "NETWORK", ", network: allow", 1))
	n.write("list.yaml", strings.Replace(flow, "NETWORK", ", network: packages", 1))

	n.write("shell.yaml", "wf: 1\nname: flow\nroles: {test: {prompt: You code., model: script/shell-said.yaml, tools: [shell]}}\n")
	n.write("shell-said.yaml", "test#1: [{tool: shell, args: {command: echo ran > ran}}, {text: Done.}]\n")

	if _, out := n.run("doctor"); !strings.Contains(out, "no user namespace") {
		t.Skipf("skipped: this kernel has no walls without namespaces: %s", out)
	}
	for _, file := range []string{"flow.yaml", "list.yaml", "shell.yaml"} {
		code, out := n.run("run", file)
		if code != 4 {
			t.Errorf("%s: exit %d", file, code)
		}
		for _, want := range []string{"the commands of test: ", "max_user_namespaces", "network: allow", "container_is_sandbox: true"} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %q is not in %s", file, want, out)
			}
		}
		if _, err := os.Stat(filepath.Join(n.dir, "ran")); err == nil {
			t.Errorf("%s: the command ran", file)
		}
	}
	if _, out := n.run("ls"); strings.Contains(out, "flow") {
		t.Errorf("a run began: %s", out)
	}
	ran := func(way string, args ...string) {
		t.Helper()
		code, out := n.run(args...)
		if _, err := os.Stat(filepath.Join(n.dir, "ran")); code != 0 || err != nil {
			t.Errorf("%s: exit %d, %v: %s", way, code, err, out)
		}
		if err := os.RemoveAll(filepath.Join(n.dir, "ran")); err != nil {
			t.Error(err)
		}
	}
	ran("network: allow", "run", "allow.yaml")
	const advice = "sudo sysctl -w user.max_user_namespaces=15000"
	if _, out := n.run("doctor"); !strings.Contains(out, advice) {
		t.Errorf("doctor does not say %q: %s", advice, out)
	}
	n.most = "15000"
	ran("user namespaces", "run", "flow.yaml")
	n.most = "0"
	n.write(".config/wf/config.yaml", "container_is_sandbox: true\n")
	if _, out := n.run("doctor"); !strings.Contains(out, "your config says that this machine is a sandbox itself") || strings.Contains(out, "allow user namespaces") {
		t.Errorf("doctor does not know the config: %s", out)
	}
	ran("container_is_sandbox", "run", "flow.yaml")
	ran("container_is_sandbox, an agent's shell", "run", "shell.yaml")
}

// helloServer is an MCP server with the tool greet, that leaves the file ran.
const helloServer = `echo ran > ran
while IFS= read -r line; do
  id=$(printf '%s\n' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
  *'"method":"initialize"'*)
    printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}\n' "$id" ;;
  *'"method":"tools/list"'*)
    printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"greet","inputSchema":{"type":"object"}}]}}\n' "$id" ;;
  *'"method":"tools/call"'*)
    printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"hello"}]}}\n' "$id" ;;
  *)
    if [ -n "$id" ]; then printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}\n' "$id"; fi ;;
  esac
done
`

// TestWithoutUserNamespacesAServerInTheWorkspaceIsRefused has the ways out of that, too.
func TestWithoutUserNamespacesAServerInTheWorkspaceIsRefused(t *testing.T) {
	t.Parallel()
	n := newWithoutNamespaces(t)
	flow := "wf: 1\nname: flow\nmcp: {hello: {command: [sh, ./tools/server.sh]MORE}}\n" +
		"roles: {test: {prompt: You greet., model: script/said.yaml, tools: [mcp:hello/greet: auto]}}\n"
	n.write("said.yaml", "test#1: [{tool: mcp__hello__greet, args: {}}, {text: Done.}]\n")
	n.write("tools/server.sh", helloServer)
	n.write("flow.yaml", strings.Replace(flow, "MORE", "", 1))
	n.write("allow.yaml", strings.Replace(flow, "MORE", ", network: allow", 1))
	n.write("off.yaml", strings.Replace(flow, "MORE", ", sandbox: off", 1))
	if _, out := n.run("doctor"); !strings.Contains(out, "no user namespace") {
		t.Skipf("skipped: this kernel has no walls without namespaces: %s", out)
	}
	code, out := n.run("run", "flow.yaml")
	if code != 4 {
		t.Errorf("exit %d", code)
	}
	for _, want := range []string{"mcp:hello, since its command names tools/server.sh", "max_user_namespaces", "sandbox: off", "network: allow", "container_is_sandbox: true"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in %s", want, out)
		}
	}
	ran := filepath.Join(n.dir, "ran")
	if _, err := os.Stat(ran); err == nil {
		t.Error("the server ran")
	}
	if _, out := n.run("ls"); strings.Contains(out, "flow") {
		t.Errorf("a run began: %s", out)
	}
	does := func(way string, args ...string) {
		t.Helper()
		code, out := n.run(args...)
		if _, err := os.Stat(ran); code != 0 || err != nil {
			t.Errorf("%s: exit %d, %v: %s", way, code, err, out)
		}
		if err := os.RemoveAll(ran); err != nil {
			t.Error(err)
		}
	}
	does("network: allow", "run", "allow.yaml")
	if code, out := n.run("trust", "off.yaml", "--yes"); code != 0 {
		t.Fatal(out)
	}
	does("sandbox: off", "run", "off.yaml")
	n.write(".config/wf/config.yaml", "container_is_sandbox: true\n")
	does("container_is_sandbox", "run", "flow.yaml")
}
