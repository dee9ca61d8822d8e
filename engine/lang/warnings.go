package lang

import (
	"fmt"
	"strings"

	"wf/engine/lint"
	"wf/engine/yaml"
	"wf/protocol"
)

// warnings reports what works and may still surprise (WF500–WF502).
func (l *loader) warnings() {
	var first, agent string
	timed := l.root.Get("limits").Get("duration") != nil || l.root.Get("defaults").Get("timeout") != nil
	for _, name := range l.roleOrder {
		r, ok := l.w.RoleNamed(name)
		if !ok {
			continue
		}
		if r.Action == protocol.ActPrompt && agent == "" {
			agent = name
		}
		if (r.Action == protocol.ActPrompt || r.Action == protocol.ActRun) && first == "" {
			first = name
		}
		timed = timed || l.roleNodes[name].Get("timeout") != nil
		l.routedByText(r)
	}
	if first != "" && !timed {
		l.warn(l.roleKeys[first], "WF501", "no timeout anywhere: a role that hangs never ends", "add  defaults: {timeout: 10m}")
	}
	if agent != "" && l.root.Get("limits").Get("cost_usd") == nil {
		l.warn(l.roleKeys[agent], "WF502", "no limits.cost_usd: nothing bounds what models may cost", "add  limits: {cost_usd: 1.00}")
	}
}

func (l *loader) warn(n *yaml.Node, code, msg, hint string) {
	l.report(n, Diagnostic{Code: code, Message: msg, Hint: hint})
}

// routedByText warns of an agent if its free text decides where a run goes (WF500).
func (l *loader) routedByText(r *protocol.Role) {
	if r.Action != protocol.ActPrompt || r.Output != "" {
		return
	}
	for i := range l.w.Edges {
		e := &l.w.Edges[i]
		refs, err := lint.Refs(e.When)
		if err != nil || l.edgeNodes[i] == nil {
			continue
		}
		for _, ref := range refs {
			own := len(e.From) == 1 && e.From[0] == r.Name && (ref == "output.text" || ref == "output.body")
			if own || strings.HasPrefix(ref, "outputs."+r.Name+".") || strings.HasPrefix(ref, "steps."+r.Name+".output.") || ref == "steps."+r.Name+".text" {
				l.warn(l.edgeNodes[i].Get("when"), "WF500", fmt.Sprintf("role %q has no output schema; its free text decides here", r.Name), fmt.Sprintf("declare the field under roles.%s.output", r.Name))
				return
			}
		}
	}
}
