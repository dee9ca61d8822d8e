package mcp

import (
	"cmp"

	"wf/agentkit/tool"
	"wf/protocol"
	"wf/roles/workspace/appear"
)

// watched is a call of a server, with what appeared in the workspace by its program.
func (p *Pool) watched(s protocol.MCPServer, call func() (tool.Result, error)) (tool.Result, error) {
	if len(s.Command) == 0 {
		return call()
	}
	watch, err := appear.Of(cmp.Or(p.Root, p.Dir))
	if err != nil {
		return tool.Result{}, err
	}
	span := watch.Begin()
	r, err := call()
	r.Appeared = span.End()
	return r, err
}
