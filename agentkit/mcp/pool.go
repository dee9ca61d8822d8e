package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"wf/agentkit/sandbox"
	"wf/agentkit/tool"
	"wf/protocol"
	"wf/roles/workspace/appear"
)

// Bounds of servers.
const (
	StartTimeout = 30 * time.Second // until a server is ready and has listed its tools
	CallTimeout  = 5 * time.Minute  // of one call
	toolsMax     = 256              // of one server
	listMax      = 256 << 10        // bytes of its list
	startsMax    = 3                // of one program in a visit
)

// A Pool holds the connections of one visit. The zero Pool has no servers.
type Pool struct {
	Servers []protocol.MCPServer
	Dir     string // where programs run, absolute
	Root    string // the workspace, out of which no link in Dir leads; "" is Dir
	At      string // as Turn.At
	Private string // as Turn.Private
	// Run and Workflow are those for which the programs work.
	Run      protocol.RunID
	Workflow string
	// Trusted tells whether a person trusts a server, within walls or with the files of the workspace that its
	// command names, as they are: nil, or an error that says what to do. It is asked before each start as the user, and
	// before any use of those in Foreign; nil trusts none.
	Trusted func(s protocol.MCPServer, at Place) error
	// Allowed tells whether the user allowed a server that the workflow declares, by its name: it is trusted
	// unless its command names files of the workspace. nil allows none.
	Allowed func(name string) bool
	// Foreign are the servers that want trust however they are started or reached, by name: those of a config.
	Foreign []string
	// Confine gives what a config lets confined programs do besides; nil is nothing.
	Confine func() (sandbox.Grants, error)
	// Inside reports that this machine is a sandbox itself; nil is that it is none.
	Inside func() bool
	// Secret looks up a variable that is kept secret; nil is os.LookupEnv.
	Secret func(name string) (string, bool)

	mu          sync.Mutex
	connections map[string]*connection
	starts      map[string]int
	recorded    map[string]protocol.Tool // by wire name
	left        error                    // what programs left, see Close
}

// Secrets are the values that the servers are handed, name of the variable → value: they are
// hidden wherever text enters.
func (p *Pool) Secrets() map[string]string {
	out := map[string]string{}
	for _, s := range p.Servers {
		for _, v := range slices.Concat(s.Env, s.Headers) {
			if value, ok := p.lookup(v.Secret); ok && v.Secret != "" {
				out[v.Secret] = value
			}
		}
	}
	return out
}

func (p *Pool) lookup(name string) (string, bool) {
	if p.Secret != nil {
		return p.Secret(name)
	}
	return os.LookupEnv(name)
}

// Tools lists what a name of a workflow stands for, sorted: the tool of mcp:NAME/TOOL, or all of
// mcp:NAME/*. A server that cannot be reached, or has no such tool, is an error.
func (p *Pool) Tools(ctx context.Context, name string) ([]tool.Tool, error) {
	server, want, ok := Split(name)
	if !ok {
		return nil, fmt.Errorf("%s names no tool of a server (want mcp:NAME/TOOL or mcp:NAME/*)", name)
	}
	s, err := p.server(server)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	conn, err := p.open(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("mcp:%s: %w", server, err)
	}
	var out []tool.Tool
	size := 0
	for _, wire := range slices.Sorted(maps.Keys(conn.tools)) {
		t := conn.tools[wire]
		if owner, _ := p.owner(wire); want != "*" && t.Name != want || owner.Name != s.Name {
			continue
		}
		offer, err := offered(wire, t)
		if err != nil {
			return nil, fmt.Errorf("mcp:%s: the tool %s: %w", server, t.Name, err)
		}
		if size += len(offer.Description) + len(offer.Parameters); size > listMax {
			return nil, fmt.Errorf("mcp:%s: its tools are described in more than %d bytes; name those that are needed", server, listMax)
		}
		out = append(out, p.tool(s, offer))
		p.record(offer)
	}
	if len(out) == 0 {
		names := make([]string, 0, len(conn.tools))
		for _, t := range conn.tools {
			names = append(names, t.Name)
		}
		slices.Sort(names)
		return nil, fmt.Errorf("mcp:%s has no tool %q (there are %s)", server, want, strings.Join(names, ", "))
	}
	return out, nil
}

// Recorded is the tool that was recorded under a wire name, without asking its server; ok is
// false where no server here has such names.
func (p *Pool) Recorded(offer protocol.Tool) (tool.Tool, bool) {
	s, ok := p.owner(offer.Name)
	if !ok {
		return tool.Tool{}, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.record(offer)
	return p.tool(s, offer), true
}

// record keeps how a tool was offered. p.mu is held.
func (p *Pool) record(offer protocol.Tool) {
	if p.recorded == nil {
		p.recorded = map[string]protocol.Tool{}
	}
	p.recorded[offer.Name] = offer
}

// onlyReads reports whether a trusted server says that a tool only reads, and offers all that was
// recorded of it as it was.
func (p *Pool) onlyReads(ctx context.Context, s protocol.MCPServer, wire string) bool {
	at, err := p.place(s)
	if err != nil || at.Confined && len(at.Inside) > 0 || p.trusts(s, at) != nil {
		return false // of a program that an agent may have written, the word is that of the agent
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	conn, err := p.open(ctx, s)
	if err != nil {
		return false // the call tells why
	}
	t := conn.tools[wire]
	if t == nil || t.Annotations == nil || !t.Annotations.ReadOnlyHint {
		return false
	}
	for name, before := range p.recorded {
		if owner, ok := p.owner(name); !ok || owner.Name != s.Name {
			continue
		}
		now := conn.tools[name]
		if now == nil {
			return false
		}
		if offer, err := offered(name, now); err != nil || offer.Description != before.Description || !bytes.Equal(offer.Parameters, before.Parameters) {
			return false
		}
	}
	return true
}

// owner is the server of a wire name: of several with names that begin it the one with the longest, so that no other one offers a tool
// in the place of its.
func (p *Pool) owner(wire string) (protocol.MCPServer, bool) {
	var best protocol.MCPServer
	for _, s := range p.Servers {
		if serverOf(s.Name, wire) && len(s.Name) > len(best.Name) {
			best = s
		}
	}
	return best, best.Name != ""
}

func (p *Pool) server(name string) (protocol.MCPServer, error) {
	var known []string
	for _, s := range p.Servers {
		if s.Name == name {
			return s, nil
		}
		known = append(known, s.Name)
	}
	if len(known) == 0 {
		known = []string{"none"}
	}
	return protocol.MCPServer{}, fmt.Errorf("there is no server mcp:%s (known: %s); declare it under mcp: in the workflow or in the config, and wf trust a project's config", name, strings.Join(known, ", "))
}

func (p *Pool) tool(s protocol.MCPServer, offer protocol.Tool) tool.Tool {
	return tool.Tool{
		Name: offer.Name, Description: offer.Description, Parameters: offer.Parameters, Server: s.Name,
		Policy:  tool.Ask,
		Unasked: func(ctx context.Context) bool { return p.onlyReads(ctx, s, offer.Name) },
		Run: func(ctx context.Context, at tool.Workspace, args json.RawMessage) (tool.Result, error) {
			return p.watched(s, func() (tool.Result, error) { return p.call(ctx, s, offer.Name, args, at) })
		},
	}
}

// watched is a call of a server, with what appeared in the workspace by its program.
func (p *Pool) watched(s protocol.MCPServer, call func() (tool.Result, error)) (tool.Result, error) {
	if len(s.Command) == 0 {
		return call()
	}
	watch, err := appear.Of(p.root())
	if err != nil {
		return tool.Result{}, err
	}
	span := watch.Begin()
	r, err := call()
	r.Appeared = span.End()
	return r, err
}

// open gives the connection of a server, and starts it where there is none. p.mu is held.
func (p *Pool) open(ctx context.Context, s protocol.MCPServer) (*connection, error) {
	if conn := p.connections[s.Name]; conn != nil {
		return conn, nil
	}
	if p.starts[s.Name] >= startsMax {
		return nil, fmt.Errorf("it ended %d times and is not started again", startsMax)
	}
	at, err := p.place(s)
	if err != nil {
		return nil, err
	}
	if len(s.Command) > 0 && !at.Confined || s.URL != "" && !Local(s) || slices.Contains(p.Foreign, s.Name) {
		if err := p.trusts(s, at); err != nil {
			return nil, err
		}
	}
	if p.connections == nil {
		p.connections, p.starts = map[string]*connection{}, map[string]int{}
	}
	p.starts[s.Name]++
	limited, stop := context.WithTimeout(ctx, StartTimeout)
	defer stop()
	conn, err := p.start(limited, s, at)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	p.connections[s.Name] = conn
	return conn, nil
}

func (p *Pool) root() string { return cmp.Or(p.Root, p.Dir) }

func (p *Pool) place(s protocol.MCPServer) (Place, error) { return PlaceOf(p.root(), p.Dir, s) }

func (p *Pool) trusts(s protocol.MCPServer, at Place) error {
	if p.Allowed != nil && p.Allowed(s.Name) && !slices.Contains(p.Foreign, s.Name) && len(at.Files) == 0 {
		return nil
	}
	if p.Trusted == nil {
		return fmt.Errorf("%s: %w", Says(s), ErrUntrusted)
	}
	return p.Trusted(s, at)
}

// drop ends a connection that is of no more use. p.mu is held.
func (p *Pool) drop(name string) {
	if s := p.connections[name]; s != nil {
		delete(p.connections, name)
		p.left = errors.Join(p.left, s.close())
	}
}

// Close ends all connections and kills what was started for them. An error wraps protocol.ErrLeft: it is the alarm of a
// program that left what git acts on.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(p.connections)) {
		p.drop(name)
	}
	return p.left
}

// call runs a tool. What goes wrong is for the model to know; an error is for ctx, and for a
// program that is not trusted.
func (p *Pool) call(ctx context.Context, s protocol.MCPServer, wire string, args json.RawMessage, at tool.Workspace) (tool.Result, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	conn, err := p.open(ctx, s)
	switch {
	case ctx.Err() != nil:
		return tool.Result{}, ctx.Err()
	case errors.Is(err, ErrUntrusted):
		return tool.Result{}, fmt.Errorf("mcp:%s: %w", s.Name, err)
	case err != nil:
		return tool.Failed("mcp:%s cannot be used: %v", s.Name, err), nil
	}
	t := conn.tools[wire]
	if t == nil {
		return tool.Failed("mcp:%s no longer has this tool", s.Name), nil
	}
	limited, stop := context.WithTimeout(ctx, CallTimeout)
	defer stop()
	params := &sdk.CallToolParams{Name: t.Name, Arguments: args}
	if at.TraceParent != "" {
		params.Meta = sdk.Meta{"traceparent": at.TraceParent} // reserved for it by the Model Context Protocol, basic/index#meta
	}
	r, err := conn.client.CallTool(limited, params)
	var refused *jsonrpc.Error
	switch {
	case ctx.Err() != nil:
		return tool.Result{}, ctx.Err()
	case limited.Err() != nil:
		p.drop(s.Name)
		return tool.Failed("mcp:%s did not answer within %v, and was stopped", s.Name, CallTimeout), nil
	case errors.As(err, &refused):
		return tool.Failed("mcp:%s refuses the call: %s", s.Name, refused.Message), nil
	case err != nil:
		p.drop(s.Name)
		return tool.Failed("mcp:%s ended during the call, its outcome is unknown: %v%s", s.Name, err, conn.said()), nil
	}
	return result(r, at.Clean), nil
}
