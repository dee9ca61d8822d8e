// Package mcp offers the tools of MCP servers (Model Context Protocol) to agents.
//
//	mcp:NAME/*  ──List──► tools, as mcp__NAME__TOOL ──► recorded with the visit
//	call        ──Run───► connection, opened by the first call ──► result
//	Close       ────────► connections ended, their processes killed
//
// # Words
//
// A server is a program at the other end of stdin and stdout, or a URL. A Pool holds the connections
// of one visit. The wire name of a tool is what the model calls it: mcp__NAME__TOOL.
//
// # Trust
//
// A program in the workspace, or with a command that names something there (PlaceOf), runs within
// the walls of commands, since an agent may have written it. Any other, and one that says
// sandbox: off, runs as the user, and is started only if the Pool's Trusted says so; in the second case
// the trust is in the files that it names, too, as they are at each start. Of the environment a program
// inherits the variables of sandbox.Allowed alone, and gets what its env names. A server by URL is trusted in the
// same way before it is called, unless it is Local.
//
// A person is asked for each call. Of a server that Trusted knows, a program or not, a tool that
// says it only reads runs unasked, as long as the server offers what was recorded of it; not of one
// that an agent may have written.
//
// # Servers that err
//
//	what it does                                  what becomes of it
//	a line, or an event, that is no message       skipped; told once (Pool.Strange), and where a call fails
//	an answer to what was not asked               skipped
//	no answer                                     StartTimeout, CallTimeout, or the end of ctx, whose error names the call
//	ended before the call                         started again, startsMax times in a row without an answer
//	ended, and had not read the call              started again, the call is made again, once
//	ended in the call                             the outcome is unknown
//	404 for its session                           a new session, the call is made again, once
//	the connection is lost in the call            the outcome is unknown
//	it cannot be reached                          the call was not made
//
// # Not promised
//
// That a server still offers the tools that were recorded: a call of one that is gone tells the
// model so. That a tool which says it only reads does: the word of a trusted server counts. That a
// program which runs as the user loads nothing that an agent wrote, or that a file which it names stays as it
// is between the look at it and the start.
package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"wf/protocol"
	"wf/protocol/lazy"
)

// Prefix begins the name of a tool of a server in a workflow: mcp:NAME/TOOL, or mcp:NAME/* for
// all of them.
const Prefix = "mcp:"

// nameMax is how long a tool's name may be on the wires of the models.
const nameMax = 64

// ErrUntrusted is a server that no person allowed.
var ErrUntrusted = &protocol.Error{Code: "mcp_untrusted", Message: "the program is not trusted",
	Hint: "look at what it starts, then wf trust, for a server of a config, or wf trust FILE, for one that a workflow declares; or --trust CID where no person can be asked. " +
		"One outside of the workspace is started by wf run --trust-mcp NAME (and wf resume), too"}

// Says is what a server is started with, or where it is.
func Says(s protocol.MCPServer) string {
	if s.URL != "" {
		return s.URL
	}
	return strings.Join(s.Command, " ")
}

// Local reports whether a server is at a literal address of this machine and is sent no secret, so that a person has
// nothing to trust it with.
func Local(s protocol.MCPServer) bool {
	if s.URL == "" || slices.ContainsFunc(s.Headers, func(h protocol.MCPValue) bool { return h.Secret != "" }) {
		return false
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(u.Hostname())
	return err == nil && addr.Unmap().IsLoopback()
}

// Split reads mcp:NAME/TOOL; tool is * for all. ok is false for other names.
func Split(name string) (server, tool string, ok bool) {
	rest, ok := strings.CutPrefix(name, Prefix)
	if !ok {
		return "", "", false
	}
	server, tool, ok = strings.Cut(rest, "/")
	return server, tool, ok && server != "" && tool != ""
}

// wireName is what a model calls a tool: letters, digits, _ and - alone, at most nameMax of them.
// A name that had to be changed ends in a part of its hash, so that no two become one.
func wireName(server, tool string) string {
	name := "mcp__" + server + "__" + tool
	fits := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, name)
	if fits == name && len(name) <= nameMax {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	mark := "_" + hex.EncodeToString(sum[:4])
	return fits[:min(len(fits), nameMax-len(mark))] + mark
}

// serverOf reports whether a wire name is one of a server's.
func serverOf(server, wire string) bool { return strings.HasPrefix(wire, "mcp__"+server+"__") }

// Names reports whether a name of a workflow, mcp:NAME/TOOL or mcp:NAME/*, stands for the tool of a server
// with that wire name.
func Names(name, server, wire string) bool {
	s, t, ok := Split(name)
	return ok && s == server && (t == "*" || wireName(s, t) == wire)
}

// Parse reads a server of a config: {command: […], env: {…}, sandbox: …, network: …} or {url: …, headers_env: {…}}.
// headers_env names the variable that holds the value of a header; a value of env that is
// $NAME is that of the variable NAME.
func Parse(name string, raw []byte) (protocol.MCPServer, error) {
	s := protocol.MCPServer{Name: name}
	var form struct {
		Command []string          `json:"command"`
		Env     map[string]string `json:"env"`
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers_env"`
		Sandbox string            `json:"sandbox"`
		Network network           `json:"network"`
	}
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&form); err != nil {
		return s, fmt.Errorf("mcp: %s: %w", name, err)
	}
	s.Command, s.URL, s.Sandbox = form.Command, form.URL, form.Sandbox
	s.Network, s.NetworkHosts = form.Network.word, form.Network.hosts
	for _, n := range slices.Sorted(maps.Keys(form.Env)) {
		v := protocol.MCPValue{Name: n, Value: form.Env[n]}
		if secret, ok := strings.CutPrefix(v.Value, "$"); ok && secret != "" {
			v.Value, v.Secret = "", strings.TrimSuffix(strings.TrimPrefix(secret, "{"), "}")
		}
		s.Env = append(s.Env, v)
	}
	for _, n := range slices.Sorted(maps.Keys(form.Headers)) {
		s.Headers = append(s.Headers, protocol.MCPValue{Name: n, Secret: form.Headers[n]})
	}
	return s, check(s)
}

// A network is what the program of a server reaches, in a config: a word, or a list of endpoints.
type network struct {
	word  string
	hosts []string
}

// UnmarshalJSON reads allow, packages, or [HOST:PORT, …].
func (n *network) UnmarshalJSON(raw []byte) error {
	var list []string
	if json.Unmarshal(raw, &n.word) == nil {
		if n.word != protocol.NetworkAllow && n.word != protocol.NetworkPackages {
			return fmt.Errorf("network: %q is not known (want allow, packages or a list of HOST:PORT)", n.word)
		}
		return nil
	}
	if json.Unmarshal(raw, &list) != nil {
		return errors.New("network wants allow, packages or a list of HOST:PORT")
	}
	for _, text := range list {
		if text == protocol.NetworkPackages {
			n.word = text
			continue
		}
		e, err := protocol.ParseEndpoint(text)
		if err != nil {
			return fmt.Errorf("network: %w", err)
		}
		n.hosts = append(n.hosts, e.String())
	}
	slices.Sort(n.hosts)
	n.hosts = slices.Compact(n.hosts)
	return nil
}

var serverName = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_-]{0,31}$`)

func check(s protocol.MCPServer) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("mcp: %s: "+format, append([]any{s.Name}, args...)...)
	}
	switch {
	case !serverName().MatchString(s.Name):
		return bad("a name has letters, digits, _ and -, at most 32 of them")
	case (len(s.Command) > 0) == (s.URL != ""):
		return bad("give it a command or a url")
	case s.URL != "" && len(s.Env) > 0:
		return bad("env belongs to a command")
	case s.URL == "" && len(s.Headers) > 0:
		return bad("headers_env belongs to a url")
	case s.Sandbox != "" && s.Sandbox != protocol.SandboxOn && s.Sandbox != protocol.SandboxOff:
		return bad("sandbox: %q is not known (want on or off)", s.Sandbox)
	case s.URL != "" && (s.Sandbox != "" || s.Network != "" || s.NetworkHosts != nil):
		return bad("sandbox and network belong to a command")
	case s.Sandbox == protocol.SandboxOff && (s.Network != "" || s.NetworkHosts != nil):
		return bad("network means nothing beside  sandbox: off")
	}
	if s.URL != "" {
		u, err := url.Parse(s.URL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return bad("url %q is none (want https://HOST/…)", s.URL)
		}
		if u.User != nil {
			return bad("url holds a password: name its variable under headers_env")
		}
	}
	return nil
}
