package lang

import (
	"strings"

	"wf/engine/lint"
)

// Uses is what expressions look at behind a token, so that no more of it need be read. The zero
// Uses looks at nothing.
type Uses struct {
	output bool            // the output of the edge's source
	all    bool            // a name is computed: any role
	roles  map[string]bool // by name, below steps or outputs
}

// Everything is the Uses of expressions that are not known.
var Everything = Uses{output: true, all: true}

// Role reports whether an expression looks at the newest step of a role. source says that it is
// the role from which the edge comes.
func (u Uses) Role(name string, source bool) bool {
	return u.all || u.roles[name] || source && u.output
}

// add takes in what an expression refers to. It was compiled, so it parses.
func (u *Uses) add(sources ...string) {
	for _, src := range sources {
		refs, err := lint.Refs(src)
		if err != nil {
			u.all = true
		}
		for _, ref := range refs {
			switch parts := strings.Split(ref, "."); parts[0] {
			case "output":
				u.output = true
			case "steps", "outputs":
				if len(parts) < 2 || parts[1] == "" {
					u.all = true
					continue
				}
				if u.roles == nil {
					u.roles = map[string]bool{}
				}
				u.roles[parts[1]] = true
			}
		}
	}
}

func usesOfCode(c *code) (u Uses) {
	if c != nil {
		u.add(c.src)
	}
	return u
}

func usesOfTemplates(list ...*template) (u Uses) {
	for _, t := range list {
		if t != nil {
			u.add(t.sources()...)
		}
	}
	return u
}

// WhenUses is what the condition of an edge looks at.
func (p *Program) WhenUses(edge int) Uses { return p.edges[edge].whenUses }

// PromptUses is WhenUses for the prompt of an edge.
func (p *Program) PromptUses(edge int) Uses { return p.edges[edge].promptUses }

// ForEachUses is WhenUses for the for_each of an edge.
func (p *Program) ForEachUses(edge int) Uses { return p.edges[edge].forEachUses }

// RoleUses is what the templates of a role look at.
func (p *Program) RoleUses(role string) Uses {
	if c := p.roles[role]; c != nil {
		return c.uses
	}
	return Uses{}
}

// OutputsUses is what the outputs of the workflow look at.
func (p *Program) OutputsUses() (u Uses) {
	for _, o := range p.outputs {
		u.add(o.code.sources()...)
	}
	return u
}
