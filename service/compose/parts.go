package compose

import (
	"iter"

	"wf/engine/lang"
	"wf/protocol"
)

// A part is a role of a workflow, or of one of its sub-workflows.
type part struct {
	*protocol.Role
	of   *lang.Program // the workflow that has it
	path string        // of that among the sub-workflows: the roles that call it, each with a slash behind; "" is no sub-workflow
}

// parts are the roles of a workflow in their order, those of a sub-workflow behind the role that calls it.
func parts(p *lang.Program) iter.Seq[part] { return partsOf(p, "") }

func partsOf(p *lang.Program, path string) iter.Seq[part] {
	return func(yield func(part) bool) {
		for i := range p.Workflow.Roles {
			role := &p.Workflow.Roles[i]
			if !yield(part{role, p, path}) {
				return
			}
			if child := p.Children[role.Workflow]; child != nil {
				for x := range partsOf(child, path+role.Name+"/") {
					if !yield(x) {
						return
					}
				}
			}
		}
	}
}
