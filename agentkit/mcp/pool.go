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
	"reflect"
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
	startsMax    = 3                // of one program in a visit, in a row without an answer to a call
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
	// Strange is called once for each start of a server, by its name, that says what is no message, which was skipped; nil tells nobody.
	Strange func(server string, err error)

	starting, calling time.Duration // in the place of StartTimeout and CallTimeout; 0 are those

	mu          sync.Mutex
	connections map[string]*connection
	starts      map[string]int
	vain        map[string]int           // those of starts since which no call was answered
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
	before := p.connections[s.Name]
	if before != nil && !before.handed && !before.ended() {
		return before, nil
	}
	at, err := p.place(s)
	if err != nil {
		return nil, err
	}
	goesOn := before != nil && !before.ended() && reflect.DeepEqual(at, before.at) // else it may be an untrusted one
	if !goesOn {
		p.drop(s.Name)
	}
	if !goesOn && len(s.Command) > 0 && p.vain[s.Name] >= startsMax {
		return nil, fmt.Errorf("it ended %d times and is not started again", startsMax)
	}
	if len(s.Command) > 0 && !at.Confined || s.URL != "" && !Local(s) || slices.Contains(p.Foreign, s.Name) {
		if err := p.trusts(s, at); err != nil {
			return nil, err
		}
	}
	if goesOn {
		before.handed = false
		return before, nil
	}
	if p.connections == nil {
		p.connections, p.starts, p.vain = map[string]*connection{}, map[string]int{}, map[string]int{}
	}
	p.starts[s.Name]++
	p.vain[s.Name]++
	limited, stop := context.WithTimeout(ctx, p.startTimeout())
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

func (p *Pool) startTimeout() time.Duration { return cmp.Or(p.starting, StartTimeout) }

func (p *Pool) callTimeout() time.Duration { return cmp.Or(p.calling, CallTimeout) }

// strange tells what a server said in the place of a message.
func (p *Pool) strange(s protocol.MCPServer, text string) {
	if p.Strange == nil {
		return
	}
	p.Strange(s.Name, fmt.Errorf("mcp:%s says what is no message of the Model Context Protocol; it was skipped: %q. What a server logs belongs on its standard error",
		s.Name, text))
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

// Connected reports whether a server of the pool was started, or reached.
func (p *Pool) Connected() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.connections) > 0
}

// TakeOver goes on with the connections of a Pool that is used no more. Where it was for another place, or has other servers,
// they are ended; the error is that of Close.
func (p *Pool) TakeOver(from *Pool) error {
	place := func(p *Pool) []string { return []string{p.Dir, p.root(), p.At, p.Private, string(p.Run), p.Workflow} }
	if !slices.Equal(place(p), place(from)) || !slices.Equal(p.Foreign, from.Foreign) || !reflect.DeepEqual(p.Servers, from.Servers) {
		return from.Close()
	}
	p.connections, p.starts, p.vain, p.left = from.connections, from.starts, from.vain, from.left
	for _, conn := range p.connections {
		conn.handed = true
	}
	return nil
}

// call runs a tool. What goes wrong is for the model to know; an error is for ctx, and for a
// program that is not trusted.
func (p *Pool) call(ctx context.Context, s protocol.MCPServer, wire string, args json.RawMessage, at tool.Workspace) (tool.Result, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var before map[string]*sdk.Tool // as they were when the call was made first
	for {
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
		if before != nil && !reflect.DeepEqual(before, conn.tools) { // the call was allowed for the tools that there were
			return tool.Failed("mcp:%s began anew before it took the call, and offers other tools since; the call was not made", s.Name), nil
		}
		r, untaken, err := p.once(ctx, s, conn, t.Name, args, at)
		if !untaken || before != nil {
			return r, err
		}
		before = conn.tools
	}
}

// once makes a call on a connection; untaken reports that the server cannot have performed it, and that another connection may.
func (p *Pool) once(ctx context.Context, s protocol.MCPServer, conn *connection, name string, args json.RawMessage, at tool.Workspace) (_ tool.Result, untaken bool, _ error) {
	limited, stop := context.WithTimeout(ctx, p.callTimeout())
	defer stop()
	params := &sdk.CallToolParams{Name: name, Arguments: args}
	if at.TraceParent != "" {
		params.Meta = sdk.Meta{"traceparent": at.TraceParent} // reserved for it by the Model Context Protocol, basic/index#meta
	}
	a, since := &attempt{}, time.Now()
	r, err := conn.client.CallTool(context.WithValue(limited, attemptKey{}, a), params)
	var refused *jsonrpc.Error
	switch {
	case err == nil:
		p.vain[s.Name] = 0
		return result(r, at.Clean), false, nil
	case ctx.Err() != nil:
		return tool.Result{}, false, fmt.Errorf("mcp:%s had not answered the call of %s for %v%s: %w", s.Name, name, time.Since(since).Round(time.Millisecond), conn.said(), ctx.Err())
	case limited.Err() != nil:
		p.drop(s.Name)
		stopped := "was stopped"
		if conn.proc == nil {
			stopped = "is not waited for any longer"
		}
		return tool.Failed("mcp:%s did not answer within %v, and %s; the outcome of the call is unknown%s", s.Name, p.callTimeout(), stopped, conn.said()), false, nil
	}
	failed := a.failed()
	if failed == "" && errors.As(err, &refused) {
		p.vain[s.Name] = 0
		return tool.Failed("mcp:%s refuses the call: %s", s.Name, refused.Message), false, nil
	}
	if conn.proc != nil { // how much it read is known once it has ended
		p.drop(s.Name)
	}
	if untaken = a.untaken(conn.proc); untaken {
		p.drop(s.Name)
	}
	switch {
	case failed != "":
		failed += conn.said()
	case untaken:
		failed = "ended again before it took the call, which was not made" + conn.said()
	case conn.proc == nil:
		failed = fmt.Sprintf("gave no answer that can be read, the outcome of the call is unknown: %v%s", err, conn.said())
	default:
		failed = fmt.Sprintf("ended during the call, its outcome is unknown: %v%s", err, conn.said())
	}
	return tool.Failed("mcp:%s %s", s.Name, failed), untaken, nil
}
