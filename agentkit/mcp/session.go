package mcp

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"wf/agentkit/sandbox"
	"wf/protocol"
	"wf/roles/workspace"
)

const (
	grace      = time.Second // from the end of stdin to SIGTERM, and from there to SIGKILL
	messageMax = 64 << 20    // bytes of one message
	stderrMax  = 2_000       // bytes of what a program said last
)

// A session is a server that is spoken to.
type session struct {
	client *sdk.ClientSession
	tools  map[string]*sdk.Tool // by wire name
	proc   *program             // nil for a URL
}

// start opens a session and lists the tools.
func (p *Pool) start(ctx context.Context, s protocol.MCPServer) (*session, error) {
	out := &session{tools: map[string]*sdk.Tool{}}
	transport, err := p.transport(s, out)
	if err != nil {
		return nil, err
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "wf", Version: "1"}, &sdk.ClientOptions{
		Capabilities:   &sdk.ClientCapabilities{}, // no roots, sampling or elicitation
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
	})
	fail := func(what string, err error) (*session, error) {
		out.close()
		return nil, fmt.Errorf("%s: %w%s", what, err, out.said())
	}
	if out.client, err = client.Connect(ctx, transport, nil); err != nil {
		return fail("no session", err)
	}
	for t, err := range out.client.Tools(ctx, nil) {
		if err != nil {
			return fail("list its tools", err)
		}
		if out.tools[wireName(s.Name, t.Name)] = t; len(out.tools) > toolsMax {
			return fail("list its tools", fmt.Errorf("there are more than %d", toolsMax))
		}
	}
	return out, nil
}

// said is what the program wrote to stderr last, as the end of a message. It is complete once
// the session is closed.
func (s *session) said() string {
	if s.proc == nil {
		return ""
	}
	if text := strings.TrimSpace(s.proc.stderr.String()); text != "" {
		return "; it said: " + text
	}
	return ""
}

// close ends the session. A program is stopped first: what it would still say is of no use.
func (s *session) close() {
	if s.proc != nil {
		s.proc.stop()
	}
	if s.client != nil {
		_ = s.client.Close() // the server may be gone already
	}
}

func (p *Pool) transport(s protocol.MCPServer, out *session) (sdk.Transport, error) {
	if s.URL != "" {
		header := http.Header{}
		for _, h := range s.Headers {
			value, err := p.value(h)
			if err != nil {
				return nil, err
			}
			header.Set(h.Name, value)
		}
		return &sdk.StreamableClientTransport{
			Endpoint: s.URL, DisableStandaloneSSE: true, MaxEventSize: messageMax,
			HTTPClient: &http.Client{
				Transport: headers{header},
				// Another host would get the headers too.
				CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			},
		}, nil
	}
	env := sandbox.Environ()
	for _, v := range s.Env {
		value, err := p.value(v)
		if err != nil {
			return nil, err
		}
		env = append(env, v.Name+"="+value)
	}
	proc, err := startProgram(s.Command, env, p.Root, p.Dir)
	if err != nil {
		return nil, err
	}
	out.proc = proc
	return &sdk.IOTransport{Reader: proc.stdout, Writer: proc.stdin, MaxLineLength: messageMax}, nil
}

func (p *Pool) value(v protocol.MCPValue) (string, error) {
	if v.Secret == "" {
		return v.Value, nil
	}
	value, ok := p.lookup(v.Secret)
	if !ok {
		return "", fmt.Errorf("%s is not set: export it, then wf resume", v.Secret)
	}
	return value, nil
}

// headers adds headers to each request.
type headers struct{ add http.Header }

// RoundTrip sends a request with the headers.
func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, values := range h.add {
		r.Header[name] = values
	}
	return http.DefaultTransport.RoundTrip(r)
}

// A program is a server of its own process group.
type program struct {
	stdin, stdout *os.File // our ends
	stderr        *lastWords
	group         int
	ended         chan struct{}
	once          sync.Once
}

// startProgram starts a program. A goroutine with a thread of its own waits for it: where the
// system can, the program dies with that thread, and so with this process.
func startProgram(command, env []string, root, dir string) (*program, error) {
	if root == "" {
		root = dir
	}
	cwd, err := workspace.Enter(root, dir)
	if err != nil {
		return nil, fmt.Errorf("start %s in its directory: %w", command[0], err)
	}
	defer cwd.Close()
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		theirIn.Close()
		in.Close()
		return nil, err
	}
	p := &program{stdin: in, stdout: out, stderr: &lastWords{}, ended: make(chan struct{})}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = cwd.Path, env, theirIn, theirOut, p.stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	cmd.WaitDelay = grace
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // not unlocked: the thread ends with the goroutine
		err := cmd.Start()
		theirIn.Close()
		theirOut.Close()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is of no interest: that it did, its client finds out
		}
		close(p.ended)
	}()
	if err := <-started; err != nil {
		in.Close()
		out.Close()
		return nil, fmt.Errorf("start %s: %w", command[0], err)
	}
	p.group = cmd.Process.Pid
	return p, nil
}

// stop ends the program and whatever it started.
func (p *program) stop() {
	p.once.Do(func() {
		p.stdin.Close()
		wait := time.NewTimer(grace)
		defer wait.Stop()
		select {
		case <-p.ended:
		case <-wait.C:
			_ = syscall.Kill(-p.group, syscall.SIGTERM)
			wait.Reset(grace)
			select {
			case <-p.ended:
			case <-wait.C:
			}
		}
		_ = syscall.Kill(-p.group, syscall.SIGKILL) // ESRCH: nothing is left
		<-p.ended
		p.stdout.Close()
	})
}

// lastWords keeps the end of what is written to it.
type lastWords struct {
	mu  sync.Mutex
	buf []byte
}

// Write never fails.
func (w *lastWords) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = append(w.buf, p...)
	if over := len(w.buf) - stderrMax; over > 0 {
		w.buf = append(w.buf[:0], w.buf[over:]...)
	}
	return len(p), nil
}

// String is what is kept, as text.
func (w *lastWords) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.ToValidUTF8(string(w.buf), "�")
}
