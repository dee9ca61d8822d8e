package render

import (
	"strings"

	"wf/protocol"
)

// Cast counts the roles of a workflow by what they are, and names what runs without a sandbox.
func Cast(w *protocol.Workflow) string {
	names := map[protocol.Action]string{
		protocol.ActPrompt: "agent", protocol.ActRun: "command", protocol.ActAsk: "question",
		protocol.ActWorkflow: "sub-workflow", protocol.ActWait: "wait", protocol.ActSet: "value",
	}
	var parts []string
	for _, action := range []protocol.Action{
		protocol.ActPrompt, protocol.ActRun, protocol.ActAsk, protocol.ActWorkflow, protocol.ActWait, protocol.ActSet,
	} {
		n := 0
		for _, r := range w.Roles {
			if r.Action == action {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, protocol.Plural(n, names[action]))
		}
	}
	var off []string
	for _, r := range w.Roles {
		if r.Sandbox == protocol.SandboxOff {
			off = append(off, r.Name)
		}
	}
	for _, s := range w.MCP {
		if s.Sandbox == protocol.SandboxOff {
			off = append(off, "mcp:"+s.Name)
		}
	}
	if len(off) > 0 {
		parts = append(parts, "runs as you: "+strings.Join(off, ", "))
	}
	return strings.Join(parts, ", ")
}
