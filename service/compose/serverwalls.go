package compose

import (
	"fmt"
	"iter"
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
