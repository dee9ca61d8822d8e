package lang

import (
	"slices"
	"strings"

	"wf/protocol"
	"wf/protocol/lazy"
)

var secretExpr = lazy.Regexp(`^secrets\.([A-Za-z_][A-Za-z0-9_]*)$`)

// isSecretExpr reports whether an expression is exactly secrets.NAME.
func isSecretExpr(src string) bool { return secretExpr().MatchString(src) }

// Needs are the secrets that are passed to roles and to the servers of the tools that agents name, those of
// sub-workflows included; sorted. A run for which one of them is not set would stop at that role.
func (p *Program) Needs() []string {
	found := map[string]bool{}
	p.needs(found)
	return sortedKeys(found)
}

func (p *Program) needs(found map[string]bool) {
	for _, c := range p.roles {
		for _, text := range c.texts {
			for _, ref := range refsOf(text) {
				if name, ok := strings.CutPrefix(ref, "secrets."); ok {
					found[name] = true
				}
			}
		}
	}
	for i := range p.Workflow.MCP {
		s := &p.Workflow.MCP[i]
		if !p.serves(s.Name) {
			continue
		}
		for _, v := range append(slices.Clone(s.Env), s.Headers...) {
			if v.Secret != "" {
				found[v.Secret] = true
			}
		}
	}
	for _, child := range p.Children {
		child.needs(found)
	}
}

// serves reports whether an agent names a tool of a server.
func (p *Program) serves(server string) bool {
	return slices.ContainsFunc(p.Workflow.Roles, func(r protocol.Role) bool {
		return slices.ContainsFunc(r.Tools, func(t string) bool { return strings.HasPrefix(t, "mcp:"+server+"/") })
	})
}
