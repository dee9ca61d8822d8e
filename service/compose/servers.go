package compose

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"wf/agentkit/config"
	"wf/agentkit/mcp"
	"wf/agentkit/sandbox"
	"wf/engine"
	"wf/engine/lang"
	"wf/protocol"
)

// servers are the servers of tools that the configs name, for programs that start in a directory of a workspace.
func (u *Setup) servers(root, dir string) ([]protocol.MCPServer, error) {
	c, err := u.Config()
	if err != nil {
		return nil, err
	}
	return c.Servers(root, dir)
}

// allowsServer reports whether a server that the workflow declares was allowed by its name.
func (u *Setup) allowsServer(name string) bool {
	return slices.Contains(u.Options.Servers, name) || slices.Contains(u.Options.Servers, "*")
}

// trustsServer says why a server is not trusted, and what to do; nil where it is.
func (u *Setup) trustsServer(s protocol.MCPServer, at mcp.Place) error {
	c, err := u.Config()
	if err != nil {
		return err
	}
	trusted, err := c.TrustsServer(s, at)
	if trusted || err != nil {
		return err
	}
	cid, err := mcp.Key(s, at)
	if err != nil {
		return err
	}
	what := "the program is not trusted"
	switch changed, known, err := c.Changed(s, at.Files); {
	case err != nil:
		return err
	case s.URL != "":
		what = "the server is not trusted"
	case known:
		what = strings.Join(changed, ", ") + " changed since the program was trusted"
	case len(at.Files) > 0:
		what = strings.Join(changed, ", ") + ", which it runs as you from the workspace, is not trusted as it is now"
	}
	return mcp.ErrUntrusted.With(mcp.ErrUntrusted.Hint, "%s: %s (%s)", mcp.Says(s), what, cid)
}

// strangeServer tells the user, once, that a server says what is no message.
func (u *Setup) strangeServer(name string, err error) {
	if _, told := u.strange.LoadOrStore(name, true); !told {
		u.Warn(err)
	}
}

// WantedServers are the servers that a workflow declares, and its sub-workflows, that run programs as the user, or
// that are called elsewhere or with a secret, for runs in this directory.
func (u *Setup) WantedServers(p *lang.Program, file string) ([]config.Want, error) {
	loaded, err := u.Config()
	if err != nil {
		return nil, err
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	var out []config.Want
	for s, role := range serversOf(p, nil) {
		at, err := mcp.PlaceOf(here, filepath.Join(here, role.Dir), s)
		if err != nil {
			return nil, fmt.Errorf("mcp:%s: %w", s.Name, err)
		}
		if at.Confined || mcp.Local(s) {
			continue
		}
		w, err := loaded.WantServer(s, file, at)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(out, func(x config.Want) bool { return x.CID == w.CID }) {
			out = append(out, w)
		}
	}
	return out, nil
}

// serversOf are the servers of which the agents of a workflow have tools, those of sub-workflows included, each
// with the roles that have them. listed gives the servers of the configs for a role, nil has only those that are declared.
func serversOf(p *lang.Program, listed func(*protocol.Role) []protocol.MCPServer) iter.Seq2[protocol.MCPServer, *protocol.Role] {
	return func(yield func(protocol.MCPServer, *protocol.Role) bool) {
		for x := range parts(p) {
			servers := slices.Clone(x.of.Workflow.MCP)
			if listed != nil && slices.ContainsFunc(x.Tools, ofServer) {
				for _, s := range listed(x.Role) {
					if !slices.ContainsFunc(servers, func(own protocol.MCPServer) bool { return own.Name == s.Name }) {
						servers = append(servers, s)
					}
				}
			}
			for _, s := range servers {
				if slices.ContainsFunc(x.Tools, func(tool string) bool { return strings.HasPrefix(tool, mcp.Prefix+s.Name+"/") }) && !yield(s, x.Role) {
					return
				}
			}
		}
	}
}

// unconfinableServers refuses a run with servers that are to be confined where nothing can confine them, or
// not with the network that they say.
func unconfinableServers(probe func() sandbox.Tier, loaded *config.Loaded, c engine.Candidate) error {
	dirOf := func(r *protocol.Role) string { return filepath.Join(c.Workspace, r.Dir) }
	var failed error
	listed := func(r *protocol.Role) []protocol.MCPServer {
		servers, err := loaded.Servers(c.Workspace, dirOf(r))
		if err != nil {
			failed = err
		}
		return servers
	}
	var whys, reasons []string
	for s, role := range serversOf(c.Program, listed) {
		at, err := mcp.PlaceOf(c.Workspace, dirOf(role), s)
		if err != nil || !at.Confined {
			continue // what is wrong with it is reported where it is started
		}
		network, hosts := s.Reach()
		grants := sandbox.Grants{SSHAgent: slices.Contains(loaded.Sandbox.Sockets, config.SSHAgent)}
		tier := probe()
		if why := tier.Lacks(sandbox.Policy{Network: network, Hosts: hosts, Grants: grants}); why != "" {
			reasons = tier.Reasons
			text := fmt.Sprintf("mcp:%s, since %s: %s", s.Name, at.Why(), why)
			if !slices.Contains(whys, text) {
				whys = append(whys, text)
			}
		}
	}
	if failed != nil || len(whys) == 0 {
		return failed
	}
	return ErrUnconfined.With("use a kernel with Landlock and user namespaces (wf doctor says which it lacks); or, where only the namespaces are missing, say  network: allow  on the server; its program then reaches all of "+
		"this machine's network and is confined in files; or say  sandbox: off  on it, and trust it, so that it runs as you; or, in a container with nothing of yours in it, put  container_is_sandbox: true  into your own config",
		"programs of servers are to be confined, and this machine cannot (%s)\n  %s", strings.Join(reasons, "; "), strings.Join(whys, "\n  "))
}
