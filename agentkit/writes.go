package agentkit

import (
	"slices"

	"wf/agentkit/mcp"
	"wf/agentkit/memory"
	"wf/agentkit/tool"
	"wf/protocol"
)

// MayWrite reports whether a role, or a tool that it calls, may change the files of the workspace; see roles.Writer. What
// the tools of servers do is not known: they may.
func (a Agent) MayWrite(role *protocol.Role, name string) bool {
	names := []string{name}
	if name == "" {
		names = role.Tools
	}
	all := a.tools()
	return slices.ContainsFunc(names, func(name string) bool {
		i := slices.IndexFunc(all, func(t tool.Tool) bool { return t.Name == name })
		if i >= 0 {
			return !all[i].ReadOnly
		}
		_, _, served := mcp.Split(name)
		return served && !slices.Contains(memory.Names, name)
	})
}
