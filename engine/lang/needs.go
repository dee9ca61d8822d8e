package lang

import (
	"cmp"
	"fmt"
	"strings"

	"wf/protocol"
)

// WorkerNeeds is what a worker must have that performs the roles of the workflow and of its sub-workflows; sorted.
func (p *Program) WorkerNeeds() []string { return workerNeeds(p.Workflow, p.Children) }

func workerNeeds(w *protocol.Workflow, children map[protocol.Link]*Program) []string {
	found := map[string]bool{}
	for _, r := range w.Roles {
		for _, n := range r.Needs {
			found[n] = true
		}
	}
	for _, child := range children {
		for _, n := range child.WorkerNeeds() {
			found[n] = true
		}
	}
	return sortedKeys(found)
}

// needsRules finds roles that are named as in other tools, where needs says what comes before, and more than a run can wait for.
func (l *loader) needsRules() {
	for i := range l.w.Roles {
		r := &l.w.Roles[i]
		for _, need := range r.Needs {
			if _, isRole := l.w.RoleNamed(need); isRole {
				n := l.roleNodes[r.Name]
				l.wrongAt(cmp.Or(n.Get("needs"), n), "WF002", fmt.Sprintf("roles.%s: needs names the role %s; it says what a worker has, such as gpu", r.Name, need), "use edges, a key at the top of the file, for what comes before")
			}
		}
	}
	if all := workerNeeds(l.w, l.children); len(all) > protocol.NeedsMost {
		l.wrongAt(cmp.Or(l.root.Get("roles"), l.root), "WF002", fmt.Sprintf("the roles, with those of sub-workflows, need %d things of a worker (%s): at most %d", len(all), strings.Join(all, ", "), protocol.NeedsMost), "name what they have in common by one name")
	}
}
