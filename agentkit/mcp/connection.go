package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"wf/protocol"
	"wf/roles"
)

const messageMax = 64 << 20 // bytes of one message

// A connection is a server that was started or reached, with its tools.
type connection struct {
	client *sdk.ClientSession
	tools  map[string]*sdk.Tool // by wire name
	proc   *program             // nil for a URL
	at     Place                // as it was started
	handed bool                 // by the Pool that started it, and not used since
	gone   chan struct{}        // closed when it has ended

	mu      sync.Mutex
	skipped int                 // lines, or events, that were no messages
	first   string              // of those
	warn    func(string)        // called with that
	clean   func(string) string // hides the secrets of servers
}

// skip takes what the server said in the place of a message.
func (s *connection) skip(text string) {
	text = s.clean(strings.ToValidUTF8(text, "�"))
	if len(text) >= strangeMax {
		text = text[:roles.CutRunes(text, strangeMax)] + "…"
	}
	s.mu.Lock()
	s.skipped++
	first := s.skipped == 1
	if first {
		s.first = text
	}
	s.mu.Unlock()
	if first {
		s.warn(text)
	}
}

// ended reports whether no call can be made any more.
func (s *connection) ended() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

// start opens a connection and lists the tools.
func (p *Pool) start(ctx context.Context, s protocol.MCPServer, at Place) (*connection, error) {
	out := &connection{tools: map[string]*sdk.Tool{}, at: at, gone: make(chan struct{}), warn: func(text string) { p.strange(s, text) }, clean: roles.NewRedactor(p.Secrets()).String}
	transport, err := p.transport(s, at, out)
	if err != nil {
		return nil, err
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "wf", Version: "1"}, &sdk.ClientOptions{
		Capabilities:   &sdk.ClientCapabilities{}, // no roots, sampling or elicitation
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
	})
	fail := func(what string, err error) error {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("it did not answer within %v", p.startTimeout())
		}
		p.left = errors.Join(p.left, out.close())
		return fmt.Errorf("%s: %w%s", what, err, out.said())
	}
	if out.client, err = client.Connect(ctx, transport, nil); err != nil {
		return nil, fail("no session", err)
	}
	go func() {
		defer close(out.gone)
		_ = out.client.Wait() // why it ended the next call says, or nobody asks
	}()
	for t, err := range out.client.Tools(ctx, nil) {
		if err != nil {
			return nil, fail("list its tools", err)
		}
		if out.tools[wireName(s.Name, t.Name)] = t; len(out.tools) > toolsMax {
			return nil, fail("list its tools", fmt.Errorf("there are more than %d", toolsMax))
		}
	}
	return out, nil
}

// said is what the program wrote to stderr last, as the end of a message. It is complete once
// the connection is closed.
func (s *connection) said() string {
	out := ""
	s.mu.Lock()
	if s.skipped > 0 {
		out = fmt.Sprintf("; what it said in the place of messages was skipped (%d): %q", s.skipped, s.first)
	}
	s.mu.Unlock()
	if s.proc == nil {
		return s.clean(out)
	}
	select {
	case <-s.proc.ended:
		if s.proc.failed != nil {
			out = ": " + s.proc.failed.Error() + out
		}
	default: // it lives on
	}
	if text := strings.TrimSpace(s.proc.stderr.String()); text != "" {
		out += "; it said: " + text
	}
	return s.clean(out + s.proc.note)
}

// close ends the connection. A program is stopped first: what it would still say is of no use. An error, which wraps
// protocol.ErrLeft, says what it left.
func (s *connection) close() (left error) {
	if s.proc != nil {
		s.proc.stop()
		if errors.Is(s.proc.failed, protocol.ErrLeft) {
			left = s.proc.failed
		}
	}
	if s.client != nil {
		_ = s.client.Close() // the server may be gone already
	}
	return left
}

func (p *Pool) transport(s protocol.MCPServer, at Place, out *connection) (_ sdk.Transport, err error) {
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
				Transport: web{header, out.skip},
				// Another host would get the headers too.
				CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			},
		}, nil
	}
	var env []string
	for _, v := range s.Env {
		value, err := p.value(v)
		if err != nil {
			return nil, err
		}
		env = append(env, v.Name+"="+value)
	}
	if out.proc, err = p.launch(s, at, env); err != nil {
		return nil, err
	}
	return newLines(out.proc, out.skip), nil
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
