package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"wf/protocol"
)

// ShowInputs writes what a workflow takes.
func (p *Printer) ShowInputs(w *protocol.Workflow) error {
	inputs := w.Inputs
	if p.AsJSON() {
		return p.Answer(map[string]any{"schema": "wf.inputs/v1", "workflow": w.Name, "inputs": inputs})
	}
	if len(inputs) == 0 {
		_, err := fmt.Fprintf(p.Out, "%s takes no inputs\n", w.Name)
		return err
	}
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		in := inputs[name]
		need := "optional"
		switch {
		case in.Required:
			need = "required"
		case in.Default != "":
			need = "default " + in.Default
		}
		rows = append(rows, []string{"-i " + name + "=…", cmp.Or(in.Type, "any"), need, in.Description})
	}
	return Table(p.Out, rows)
}

// Cast counts the roles of a workflow by what they are, and names what runs without a sandbox.
func Cast(w *protocol.Workflow) string {
	count := map[protocol.Action]int{}
	var parts, off []string
	for _, r := range w.Roles {
		count[r.Action]++
		if r.Sandbox == protocol.SandboxOff {
			off = append(off, r.Name)
		}
	}
	for _, kind := range []struct {
		action protocol.Action
		name   string
	}{
		{protocol.ActPrompt, "agent"}, {protocol.ActRun, "command"}, {protocol.ActAsk, "question"},
		{protocol.ActWorkflow, "sub-workflow"}, {protocol.ActWait, "wait"}, {protocol.ActSet, "value"}, {protocol.ActMerge, "merge"},
	} {
		if n := count[kind.action]; n > 0 {
			parts = append(parts, protocol.Plural(n, kind.name))
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
