package main

import (
	"slices"

	"github.com/spf13/pflag"

	"wf/agentkit/mcp"
	"wf/protocol"
)

// servers are the servers of tools that the configs name.
func (a *app) servers() ([]protocol.MCPServer, error) {
	c, err := a.config()
	if err != nil {
		return nil, err
	}
	var out []protocol.MCPServer
	for _, name := range sortedKeys(c.MCP) {
		s, err := mcp.Parse(name, c.MCP[name])
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// serverNames are their names, for those who check a workflow; a config that cannot be read
// names none.
func (a *app) serverNames() []string {
	c, err := a.config()
	if err != nil {
		return nil
	}
	return c.MCPNames()
}

// trustsServer reports whether the program of a server that the workflow declares was allowed.
func (a *app) trustsServer(s protocol.MCPServer) bool {
	return slices.Contains(a.mcp, s.Name) || slices.Contains(a.mcp, "*")
}

func (a *app) trustFlag(flags *pflag.FlagSet) {
	flags.StringArrayVar(&a.mcp, "trust-mcp", nil, "start the program of this server, which the workflow declares under mcp; * is all")
	flags.StringArrayVar(&a.trusted, "trust", nil, "trust the definition of this CID, for this command alone (WF_TRUST=CID,…)")
}
