package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"wf/agentkit/sandbox"
	"wf/agentkit/tool"
	"wf/protocol"
	"wf/roles"
)

// serverVar makes the test binary a server.
const serverVar = "WF_TEST_MCP_SERVER"

func TestMain(m *testing.M) {
	sandbox.Main()
	if kind := os.Getenv(oddVar); kind != "" {
		oddStdio(kind)
		return
	}
	if os.Getenv(serverVar) != "" {
		fmt.Fprintln(os.Stderr, "here I am")
		if err := testServer().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("internal/poll.runtime_pollWait"))
}

// metaKey is under which a tool finds the metadata of its call.
type metaKey struct{}

func testServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	add := func(name, schema string, run func(ctx context.Context, args map[string]any) (*sdk.CallToolResult, error)) {
		s.AddTool(&sdk.Tool{Name: name, Description: "does " + name + " \r\n", InputSchema: json.RawMessage(schema)},
			func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				var args map[string]any
				if err := json.Unmarshal(r.Params.Arguments, &args); err != nil {
					return nil, err
				}
				return run(context.WithValue(ctx, metaKey{}, r.Params.Meta), args)
			})
	}
	text := func(s string) *sdk.CallToolResult {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
	}
	const none = `{"type":"object"}`
	add("say", `{"type":"object","required":["text"],"properties":{"text":{"type":"string"},"n":{"type":"integer"}}}`, func(_ context.Context, args map[string]any) (*sdk.CallToolResult, error) {
		return text(fmt.Sprint(args["text"])), nil
	})
	add("env", none, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		dir, err := os.Getwd()
		return text(fmt.Sprintf("%s %s %q %q", filepath.Base(dir), os.Getenv("GREETING"), os.Getenv("GIVEN_TOKEN"), os.Getenv("OPENAI_API_KEY"))), err
	})
	add("environ", none, func(ctx context.Context, _ map[string]any) (*sdk.CallToolResult, error) {
		all := os.Environ()
		if parent, ok := ctx.Value(metaKey{}).(sdk.Meta)["traceparent"]; ok {
			all = append(all, fmt.Sprint("traceparent=", parent))
		}
		return text(strings.Join(all, "\n")), nil
	})
	add("fail", none, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		r := text("it did not work")
		r.IsError = true
		return r, nil
	})
	add("refuse", none, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		return nil, errors.New("no such thing")
	})
	add("crash", none, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "out of luck")
		os.Exit(3)
		return nil, nil
	})
	add("wait", none, func(ctx context.Context, _ map[string]any) (*sdk.CallToolResult, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	add("big", none, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		return text(strings.Repeat("ü", 1<<20)), nil
	})
	add("many", none, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{
			&sdk.TextContent{Text: "a"}, &sdk.ImageContent{MIMEType: "image/png", Data: []byte("xyz")},
			&sdk.ResourceLink{URI: "file:///r"}, &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///e", Text: "b"}},
		}}, nil
	})
	add("fields", none, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{}, StructuredContent: map[string]any{"b": 1, "a": "x"}}, nil
	})
	add("child", none, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		cmd := exec.Command("sleep", "1000")
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		return text(strconv.Itoa(cmd.Process.Pid)), nil
	})
	add("odd.name/with a very long tail that no wire of any model would ever take as it is", none, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		return text("odd"), nil
	})
	return s
}

func all(protocol.MCPServer, Place) error { return nil }

// stdio is a pool with the server t, a program.
func stdio(t *testing.T) *Pool {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "work")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	p := &Pool{Dir: dir, Trusted: all, Servers: []protocol.MCPServer{{Name: "t", Command: []string{self},
		Env: []protocol.MCPValue{{Name: serverVar, Value: "1"}, {Name: "GREETING", Value: "hello"}, {Name: "GIVEN_TOKEN", Secret: "TOKEN"}}}},
		Secret: func(name string) (string, bool) { return "s3cr3t", name == "TOKEN" }}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func call(t *testing.T, p *Pool, name, args string) tool.Result {
	t.Helper()
	tl, ok := p.Recorded(protocol.Tool{Name: wireName("t", name)})
	if !ok {
		t.Fatalf("no tool %s", name)
	}
	r, err := tl.Run(t.Context(), tool.Workspace{Clean: roles.NewRedactor(p.Secrets()).String}, json.RawMessage(args))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestACallGoesOnWithTheTraceOfItsVisit(t *testing.T) {
	p := stdio(t)
	tl, ok := p.Recorded(protocol.Tool{Name: wireName("t", "environ")})
	if !ok {
		t.Fatal("no tool")
	}
	for _, want := range []string{"", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"} {
		r, err := tl.Run(t.Context(), tool.Workspace{TraceParent: want}, json.RawMessage(`{}`))
		_, got, _ := strings.Cut(r.Content, "\ntraceparent=")
		if err != nil || got != want {
			t.Errorf("the server was told %q, %v, want %q", got, err, want)
		}
	}
}

func TestToolsAreListedInOneForm(t *testing.T) {
	var lists []string
	for range 2 {
		p := stdio(t)
		tools, err := p.Tools(t.Context(), "mcp:t/*")
		if err != nil {
			t.Fatal(err)
		}
		list, err := tool.List(tools)
		if err != nil {
			t.Fatal(err)
		}
		lists = append(lists, list)
	}
	if d := cmp.Diff(lists[0], lists[1]); d != "" {
		t.Error(d)
	}
	var tools []protocol.Tool
	if err := json.Unmarshal([]byte(lists[0]), &tools); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range tools {
		names = append(names, o.Name)
		if len(o.Name) > nameMax || strings.Trim(strings.ToLower(o.Name), "abcdefghijklmnopqrstuvwxyz_-0123456789") != "" {
			t.Errorf("no model takes the name %q", o.Name)
		}
	}
	if len(names) != 12 || names[0] != "mcp__t__big" {
		t.Errorf("the tools are %q", names)
	}
	last := tools[len(tools)-2]
	want := protocol.Tool{Name: "mcp__t__say", Description: "does say",
		Parameters: protocol.JSON(`{"properties":{"n":{"type":"integer"},"text":{"type":"string"}},"required":["text"],"type":"object"}`)}
	if d := cmp.Diff(want, last); d != "" {
		t.Error(d)
	}
	one, err := stdio(t).Tools(t.Context(), "mcp:t/say")
	if err != nil || len(one) != 1 || one[0].Name != "mcp__t__say" {
		t.Errorf("one tool: %v, %v", one, err)
	}
}

func TestCallsAreAnswered(t *testing.T) {
	p := stdio(t)
	for _, c := range []struct {
		tool, args, want string
		isError          bool
	}{
		{"say", `{"text":"hi","n":12345678901234567890}`, "hi", false},
		{"env", `{}`, `work hello "[secret:TOKEN]" ""`, false},
		{"fail", `{}`, "it did not work", true},
		{"many", `{}`, "a\n[image, image/png, 3 bytes]\n[resource file:///r]\nb", false},
		{"fields", `{}`, `{"a":"x","b":1}`, false},
		{"odd.name/with a very long tail that no wire of any model would ever take as it is", `{}`, "odd", false},
		{"none", `{}`, "error: mcp:t no longer has this tool", true},
	} {
		t.Setenv("OPENAI_API_KEY", "sk-x")
		if r := call(t, p, c.tool, c.args); r.Content != c.want || r.IsError != c.isError {
			t.Errorf("%s gives %q (error: %v), want %q", c.tool, r.Content, r.IsError, c.want)
		}
	}
	if r := call(t, p, "refuse", `{}`); !r.IsError || !strings.Contains(r.Content, "refuses the call: ") || !strings.Contains(r.Content, "no such thing") {
		t.Errorf("a refusal gives %q", r.Content)
	}
	if r := call(t, p, "big", `{}`); len(r.Content) > ResultMax+100 || !strings.Contains(r.Content, "bytes left out") || !strings.HasPrefix(r.Content, "üü") {
		t.Errorf("a big result has %d bytes: %.40q", len(r.Content), r.Content)
	}
	if p.starts["t"] != 1 {
		t.Errorf("started %d times", p.starts["t"])
	}
}

// F-41: a program gets what a command gets of the environment, and what its env names.
func TestAProgramGetsNoVariableThatNobodyNamed(t *testing.T) {
	for _, name := range []string{"DATABASE_URL", "SSH_AUTH_SOCK", "KUBECONFIG", "AWS_PROFILE", "TOKEN", "LD_PRELOAD_NOT"} {
		t.Setenv(name, "of the user")
	}
	t.Setenv("LANG", "C.UTF-8")
	lines := strings.Split(call(t, stdio(t), "environ", `{}`).Content, "\n")
	given := map[string]bool{serverVar: true, "GREETING": true, "GIVEN_TOKEN": true}
	for _, l := range lines {
		if name, _, _ := strings.Cut(l, "="); !given[name] && !slices.Contains(sandbox.Allowed, name) {
			t.Errorf("the program has %s", l)
		}
	}
	for _, want := range []string{"LANG=C.UTF-8", "GREETING=hello"} {
		if !slices.Contains(lines, want) {
			t.Errorf("the program lacks %s", want)
		}
	}
}

func TestAServerThatEndsIsStartedAgainButNotForEver(t *testing.T) {
	p := stdio(t)
	for range startsMax {
		r := call(t, p, "crash", `{}`)
		if !r.IsError || !strings.Contains(r.Content, "its outcome is unknown") || !strings.Contains(r.Content, "out of luck") {
			t.Fatalf("a crash gives %q", r.Content)
		}
	}
	if r := call(t, p, "say", `{"text":"hi"}`); r.Content != "error: mcp:t cannot be used: it ended 3 times and is not started again" {
		t.Errorf("then %q", r.Content)
	}
}

func TestACancelledCallIsCancelled(t *testing.T) {
	p := stdio(t)
	if _, err := p.Tools(t.Context(), "mcp:t/*"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	tl, _ := p.Recorded(protocol.Tool{Name: "mcp__t__wait"})
	done := make(chan error)
	go func() {
		_, err := tl.Run(ctx, tool.Workspace{}, json.RawMessage(`{}`))
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	p := stdio(t)
	pid, err := strconv.Atoi(call(t, p, "child", `{}`).Content)
	if err != nil {
		t.Fatal(err)
	}
	group := p.connections["t"].proc.group
	p.Close()
	// The child became one of init, which reaps it when it comes to it.
	deadline := time.After(2 * time.Minute)
	for syscall.Kill(-group, 0) == nil {
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && strings.Contains(string(b), ") Z ") {
			break
		}
		select {
		case <-deadline:
			t.Fatalf("the child %d lives on", pid)
		case <-time.After(time.Millisecond):
		}
	}
}

func TestAProgramIsStartedOnlyIfTrusted(t *testing.T) {
	p := stdio(t)
	asked := 0
	p.Trusted = func(protocol.MCPServer, Place) error { asked++; return ErrUntrusted }
	if _, err := p.Tools(t.Context(), "mcp:t/*"); !errors.Is(err, ErrUntrusted) || asked != 1 {
		t.Errorf("got %v after %d questions", err, asked)
	}
	p.Trusted = nil
	tl, _ := p.Recorded(protocol.Tool{Name: "mcp__t__say"})
	if _, err := tl.Run(t.Context(), tool.Workspace{}, json.RawMessage(`{}`)); !errors.Is(err, ErrUntrusted) {
		t.Errorf("got %v", err)
	}
}

func TestWhatCannotBeStartedSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		server protocol.MCPServer
		want   string
	}{
		"missing": {protocol.MCPServer{Command: []string{"/no/such/program"}}, "mcp:t: start /no/such/program"},
		"silent":  {protocol.MCPServer{Command: []string{"sh", "-c", "echo I cannot >&2; exit 1"}}, "it said: I cannot"},
		"noise":   {protocol.MCPServer{Command: []string{"sh", "-c", "echo nonsense; cat >/dev/null"}}, `no session: it did not answer within 1s; what it said in the place of messages was skipped (1): "nonsense"`},
		"secret":  {protocol.MCPServer{Command: []string{"true"}, Env: []protocol.MCPValue{{Name: "A", Secret: "WF_TEST_UNSET"}}}, "WF_TEST_UNSET is not set"},
		"refused": {protocol.MCPServer{URL: "http://127.0.0.1:1/"}, "no session"},
	} {
		t.Run(name, func(t *testing.T) {
			c.server.Name = "t"
			p := &Pool{Servers: []protocol.MCPServer{c.server}, Trusted: all, Dir: t.TempDir(), starting: time.Second}
			defer p.Close()
			if _, err := p.Tools(t.Context(), "mcp:t/*"); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	p := stdio(t)
	if _, err := p.Tools(t.Context(), "mcp:t/sya"); err == nil || !strings.Contains(err.Error(), `no tool "sya" (there are big, child,`) {
		t.Errorf("an unknown tool: %v", err)
	}
	if _, err := p.Tools(t.Context(), "mcp:x/*"); err == nil || !strings.Contains(err.Error(), "no server mcp:x (known: t)") {
		t.Errorf("an unknown server: %v", err)
	}
}

func TestServersByHTTP(t *testing.T) {
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return testServer() }, nil)
	var bare int
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer s3cr3t" {
			bare++
		}
		handler.ServeHTTP(w, r)
	}))
	defer web.Close()
	p := &Pool{Servers: []protocol.MCPServer{{Name: "t", URL: web.URL, Headers: []protocol.MCPValue{{Name: "Authorization", Secret: "AUTH"}}}},
		Secret: func(string) (string, bool) { return "Bearer s3cr3t", true }}
	defer p.Close()
	if _, err := p.Tools(t.Context(), "mcp:t/*"); !errors.Is(err, ErrUntrusted) || bare > 0 {
		t.Fatalf("a server that is sent a secret is called before it is trusted: %v", err)
	}
	p.Trusted = func(protocol.MCPServer, Place) error { return nil }
	tools, err := p.Tools(t.Context(), "mcp:t/*")
	if err != nil || len(tools) != 12 {
		t.Fatalf("%d tools, %v", len(tools), err)
	}
	if r := call(t, p, "say", `{"text":"over HTTP"}`); r.Content != "over HTTP" || r.IsError {
		t.Errorf("gives %+v", r)
	}
	if bare > 0 {
		t.Errorf("%d requests lacked the header", bare)
	}
	p.Close()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()

	away := httptest.NewServer(http.RedirectHandler("http://127.0.0.1:1/", http.StatusTemporaryRedirect))
	defer away.Close()
	q := &Pool{Servers: []protocol.MCPServer{{Name: "t", URL: away.URL}}}
	defer q.Close()
	if _, err := q.Tools(t.Context(), "mcp:t/*"); err == nil {
		t.Error("a redirect was followed")
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		`{"command":["x","-y"],"env":{"B":"$TOKEN","A":"1"}}`:         `{"name":"t","command":["x","-y"],"env":[{"name":"A","value":"1"},{"name":"B","secret":"TOKEN"}]}`,
		`{"url":"https://e.com/mcp","headers_env":{"X-Key":"X_KEY"}}`: `{"name":"t","url":"https://e.com/mcp","headers":[{"name":"X-Key","secret":"X_KEY"}]}`,
		`{"command":["x"],"sandbox":"off"}`:                           `{"name":"t","command":["x"],"sandbox":"off"}`,
		`{"command":["x"],"network":"allow"}`:                         `{"name":"t","command":["x"],"network":"allow"}`,
		`{"command":["x"],"network":["packages","B.example:443"]}`:    `{"name":"t","command":["x"],"network":"packages","network_hosts":["b.example:443"]}`,
	} {
		s, err := Parse("t", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := json.Marshal(s); err != nil || string(b) != want {
			t.Errorf("%s gives %s, %v", text, b, err)
		}
	}
	for text, want := range map[string]string{
		`{}`: "a command or a url", `{"command":["a"],"url":"http://x"}`: "a command or a url", `{"cmd":["a"]}`: `unknown field "cmd"`,
		`{"url":"ftp://x"}`: "is none", `{"url":"http://u:p@x"}`: "holds a password", `{"url":"http://x","env":{"A":"b"}}`: "belongs to a command",
		`{"command":["a"],"headers_env":{"A":"b"}}`: "belongs to a url", `{"command":["a"],"sandbox":"maybe"}`: "want on or off",
		`{"command":["a"],"network":"none"}`: "want allow", `{"command":["a"],"network":["a"]}`: "has no port", `{"command":["a"],"network":3}`: "network wants",
		`{"url":"http://x","sandbox":"on"}`: "belong to a command", `{"command":["a"],"sandbox":"off","network":"allow"}`: "means nothing",
	} {
		if _, err := Parse("t", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %v", text, err)
		}
	}
	if _, err := Parse("a/b", []byte(`{"command":["a"]}`)); err == nil {
		t.Error("a name with a slash")
	}
}

// The directory of a role may be a link that an agent has made.
func TestNoServerStartsOutsideOfTheWorkspace(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(root, "sub")); err != nil {
		t.Fatal(err)
	}
	p, err := startProgram("/bin/sh", []string{"sh", "-c", "echo x > evil"}, nil, root, filepath.Join(root, "sub"))
	if err == nil {
		<-p.ended
		p.stop()
		t.Error("a server started outside of the workspace")
	}
	if _, err := os.Lstat(filepath.Join(outside, "evil")); err == nil {
		t.Error("it wrote there")
	}
}
