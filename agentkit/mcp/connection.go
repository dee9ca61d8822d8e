package mcp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"wf/protocol"
)

const messageMax = 64 << 20 // bytes of one message

// A connection is a server that was started or reached, with its tools.
type connection struct {
	client *sdk.ClientSession
	tools  map[string]*sdk.Tool // by wire name
	proc   *program             // nil for a URL
}

// start opens a connection and lists the tools.
func (p *Pool) start(ctx context.Context, s protocol.MCPServer, at Place) (*connection, error) {
	out := &connection{tools: map[string]*sdk.Tool{}}
	transport, err := p.transport(s, at, out)
	if err != nil {
		return nil, err
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "wf", Version: "1"}, &sdk.ClientOptions{
		Capabilities:   &sdk.ClientCapabilities{}, // no roots, sampling or elicitation
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
	})
	fail := func(what string, err error) error {
		p.left = errors.Join(p.left, out.close())
		return fmt.Errorf("%s: %w%s", what, err, out.said())
	}
	if out.client, err = client.Connect(ctx, transport, nil); err != nil {
		return nil, fail("no session", err)
	}
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
	if s.proc == nil {
		return ""
	}
	out := ""
	select {
	case <-s.proc.ended:
		if s.proc.failed != nil {
			out = ": " + s.proc.failed.Error()
		}
	default: // it lives on
	}
	if text := strings.TrimSpace(s.proc.stderr.String()); text != "" {
		out += "; it said: " + text
	}
	return out + s.proc.note
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
				Transport: headers{header},
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
	proc := out.proc
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

func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	maps.Copy(r.Header, h.add)
	return http.DefaultTransport.RoundTrip(r)
}
