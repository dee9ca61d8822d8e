package lang

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"wf/engine/yaml"
	"wf/protocol"
)

// decodeMCP reads the servers that offer tools, sorted by name.
func (l *loader) decodeMCP(n *yaml.Node) {
	for _, p := range l.pairs(n) {
		s := protocol.MCPServer{Name: p.Key.Value, Command: l.words(p.Value.Get("command")), URL: l.str(p.Value.Get("url"))}
		s.Env = l.serverValues(p.Value.Get("env"), false)
		s.Headers = l.serverValues(p.Value.Get("headers_env"), true)
		s.Sandbox = l.str(p.Value.Get("sandbox"))
		s.Network, s.NetworkHosts = l.network(p.Value.Get("network"))
		l.serverRules(s, p.Value)
		l.w.MCP = append(l.w.MCP, s)
	}
	protocol.Sort(l.w.MCP, func(a, b protocol.MCPServer) int { return cmp.Compare(a.Name, b.Name) })
}

func (l *loader) serverRules(s protocol.MCPServer, n *yaml.Node) {
	path := "mcp." + s.Name
	command, address := hasKey(n, "command"), hasKey(n, "url")
	switch {
	case command == address:
		l.wrongAt(n, "WF002", path+" wants a command or a url, and not both", "write command: [program, argument], or url: https://…")
		return
	case address && hasKey(n, "env"):
		l.wrongAt(n.Get("env"), "WF002", path+": env belongs to a command", "a server behind a url takes headers_env")
	case command && hasKey(n, "headers_env"):
		l.wrongAt(n.Get("headers_env"), "WF002", path+": headers_env belongs to a url", "a command takes env")
	}
	for _, key := range []string{"sandbox", "network"} {
		if address && hasKey(n, key) {
			l.wrongAt(n.Get(key), "WF002", path+": "+key+" belongs to a command", "what is behind a url runs elsewhere")
		}
	}
	if n.Get("network") != nil && s.Sandbox == protocol.SandboxOff {
		l.wrongAt(n.Get("network"), "WF002", path+": network means nothing beside  sandbox: off", "remove one of the two")
	}
	if !address || s.URL == "" {
		return
	}
	u, err := url.Parse(s.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		l.wrong(n.Get("url"), fmt.Sprintf("%s.url is %q, no address", path, s.URL), "write https://HOST/…")
	case u.User != nil:
		l.wrong(n.Get("url"), path+".url holds a password", "declare it under secrets, and name it under headers_env")
	}
}

// serverValues reads what a server is handed: each a fixed value or a declared secret. For
// headers the name of the secret stands bare.
func (l *loader) serverValues(n *yaml.Node, bare bool) []protocol.MCPValue {
	var out []protocol.MCPValue
	for _, p := range l.pairs(n) {
		v := protocol.MCPValue{Name: p.Key.Value, Value: p.Value.Value}
		switch {
		case p.Value.Kind != yaml.Scalar:
			continue
		case bare:
			v.Value, v.Secret = "", p.Value.Value
		case !wordName().MatchString(v.Name):
			l.wrongAt(p.Key, "WF002", fmt.Sprintf("%q is no name for a variable", v.Name), "letters, digits and _")
			continue
		case hasExpr(v.Value):
			m := secretExpr().FindStringSubmatch(unwrap(v.Value))
			if m == nil {
				l.report(p.Value, Diagnostic{Code: "WF020", Message: "a server is started before the run knows anything: only a secret can stand here, alone", Hint: "write ${{ secrets.NAME }}"})
				continue
			}
			v.Value, v.Secret = "", m[1]
		}
		if v.Secret != "" && !slices.Contains(l.w.Secrets, v.Secret) {
			d := Diagnostic{Code: "WF040", Message: fmt.Sprintf("secret %s is not declared", v.Secret), Hint: fmt.Sprintf("add secrets: [%s] at the top", v.Secret)}
			if near := nearest(v.Secret, l.w.Secrets); near != "" {
				d.Hint = fmt.Sprintf("did you mean %q?", near)
			}
			l.report(p.Value, d)
		}
		out = append(out, v)
	}
	protocol.Sort(out, func(a, b protocol.MCPValue) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// serverOf checks the server that the name of a tool begins with (WF019).
func (l *loader) serverOf(at *yaml.Node, name string) {
	rest, ok := strings.CutPrefix(name, "mcp:")
	if !ok {
		return
	}
	server, tool, _ := strings.Cut(rest, "/")
	if server == "" || tool == "" {
		l.report(at, Diagnostic{Code: "WF002", Message: fmt.Sprintf("%q names no tool of a server", name), Hint: "write mcp:SERVER/TOOL, or mcp:SERVER/* for all of them"})
		return
	}
	known := slices.Clone(l.o.MCP)
	for _, s := range l.w.MCP {
		known = append(known, s.Name)
	}
	slices.Sort(known)
	if slices.Contains(known, server) {
		return
	}
	d := Diagnostic{Code: "WF019", Message: fmt.Sprintf("unknown server %q", server), Hint: "declare it under mcp, here or in .wf/config.yaml"}
	if near := nearest(server, known); near != "" {
		d.Hint = fmt.Sprintf("did you mean %q?", near)
		if strings.Contains(at.Value, server) && at.Style == yaml.Plain {
			d.Fix = &Fix{strings.Replace(at.Value, server, near, 1)}
		}
	}
	l.report(at, d)
}
