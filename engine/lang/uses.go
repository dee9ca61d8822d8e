package lang

import "strings"

// Uses is what expressions look at behind a token, so that no more of it need be read. The zero
// Uses looks at nothing.
type Uses struct {
	output bool            // the output of the edge's source
	all    bool            // a name is computed: any role
	roles  map[string]bool // by name, below steps or outputs
	files  map[string]bool // roles of which it looks at the artifacts
}

// Everything is the Uses of expressions that are not known.
var Everything = Uses{output: true, all: true}

// Role reports whether an expression looks at the newest step of a role. source says that it is
// the role from which the edge comes.
func (u Uses) Role(name string, source bool) bool {
	return u.all || u.roles[name] || source && u.output
}

// Files reports whether an expression looks at the artifacts of a role, by its name: a tree is read for that alone, and a
// step as a whole is without them.
func (u Uses) Files(name string) bool { return u.files[name] }

// With is u, and the artifacts that other expressions look at.
func (u Uses) With(other Uses) Uses {
	u.files = other.files
	return u
}

// usesOf is what expressions look at, given as refsOf takes them.
func usesOf(list ...any) (u Uses) {
	u.add(list...)
	return u
}

func (u *Uses) add(list ...any) {
	for _, ref := range refsOf(list...) {
		switch parts := strings.Split(ref, "."); {
		case parts[0] == "output":
			u.output = true
		case parts[0] != "steps" && parts[0] != "outputs":
		case len(parts) < 2:
			u.all = true
		default:
			if u.roles == nil {
				u.roles = map[string]bool{}
			}
			u.roles[parts[1]] = true
			if len(parts) > 2 && parts[0] == "steps" && (parts[2] == filesField || parts[2] == filesCountField) {
				if u.files == nil {
					u.files = map[string]bool{}
				}
				u.files[parts[1]] = true
			}
		}
	}
}

// EdgeUses are what the expressions of an edge look at.
type EdgeUses struct{ When, Prompt, ForEach Uses }

// EdgeUses are those of an edge.
func (p *Program) EdgeUses(edge int) EdgeUses { return p.edges[edge].uses }

// RoleUses is what the templates of a role look at.
func (p *Program) RoleUses(role string) Uses {
	if c := p.roles[role]; c != nil {
		return c.uses
	}
	return Uses{}
}

// OutputsUses is what the outputs of the workflow look at.
func (p *Program) OutputsUses() Uses { return p.outputsUses }
