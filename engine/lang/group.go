package lang

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"wf/engine/yaml"
	"wf/protocol"
)

// concurrency reads a group; nil where there is none. What holds by default is not written down.
func (l *loader) concurrency(n *yaml.Node) *protocol.Concurrency {
	if !l.good(n) {
		return nil
	}
	c := &protocol.Concurrency{Group: strings.TrimSpace(l.str(n))}
	at := n
	if n.Kind == yaml.Mapping {
		at = n.Get("group")
		*c = protocol.Concurrency{Group: strings.TrimSpace(l.str(at)), Max: l.integer(n.Get("max")), OnBusy: l.str(n.Get("on_busy")), ReleaseOnSuspend: l.yes(n.Get("release_on_suspend"))}
	}
	if c.Max == 1 {
		c.Max = 0
	}
	if c.OnBusy == protocol.BusyQueue {
		c.OnBusy = ""
	}
	if l.good(at) && !hasExpr(c.Group) {
		if why := badGroup(c.Group); why != "" {
			l.wrong(at, "concurrency: the name of the group "+why, "")
		}
	}
	return c
}

// badGroup is why a text cannot be the name of a group, "" where it can.
func badGroup(name string) string {
	switch {
	case name == "":
		return "is empty"
	case len(name) > protocol.MaxGroupName:
		return fmt.Sprintf("has %d bytes; at most %d are allowed", len(name), protocol.MaxGroupName)
	case strings.ContainsFunc(name, unicode.IsControl):
		return "has a control character"
	}
	return ""
}

// group checks the expressions in the name of a group.
func (c *checker) group(n *yaml.Node) {
	if c.good(n) && n.Kind == yaml.Mapping {
		n = n.Get("group")
	}
	c.template(n, &scopeType{inputs: true, group: true})
}

func compileGroups(w *protocol.Workflow) (map[string]*template, error) {
	var out map[string]*template
	for role, c := range declaredGroups(w) {
		t, err := compileTemplate(c.Group, strict)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", groupPlace(role), err)
		}
		if out == nil {
			out = map[string]*template{}
		}
		out[role] = t
	}
	return out, nil
}

// declaredGroups are the groups of a workflow, "", and of its roles.
func declaredGroups(w *protocol.Workflow) map[string]*protocol.Concurrency {
	out := map[string]*protocol.Concurrency{}
	if w.Concurrency != nil {
		out[""] = w.Concurrency
	}
	for i := range w.Roles {
		if c := w.Roles[i].Concurrency; c != nil {
			out[w.Roles[i].Name] = c
		}
	}
	return out
}

func groupPlace(role string) string {
	if role == "" {
		return "concurrency.group"
	}
	return "roles." + role + ".concurrency.group"
}

// Groups are the names of the concurrency groups for the inputs of a run: of the workflow under "", of roles under
// their names; nil where there are none. An error wraps protocol.ErrInputs.
func (p *Program) Groups(inputs map[string]any) (map[string]string, error) {
	var out map[string]string
	for _, role := range slices.Sorted(maps.Keys(p.groups)) {
		name, err := p.groups[role].text(&env{Inputs: orEmpty(inputs), Budget: newBudget()})
		if err != nil {
			return nil, fmt.Errorf("%s: %v: %w", groupPlace(role), err, protocol.ErrInputs)
		}
		if name = strings.TrimSpace(name); badGroup(name) != "" {
			return nil, fmt.Errorf("%s: the name %s: %w", groupPlace(role), badGroup(name), protocol.ErrInputs)
		}
		if out == nil {
			out = map[string]string{}
		}
		out[role] = name
	}
	return out, nil
}

// groupRules refuses groups in which a run would wait for itself (WF034), and groups that are entered one within
// the other in two orders, in which two runs would wait for each other (WF035). Names are compared as they are written.
func (l *loader) groupRules() {
	own := l.w.Concurrency
	for _, name := range l.roleOrder {
		r, ok := l.w.RoleNamed(name)
		if ok && own != nil && r.Concurrency != nil && r.Concurrency.Group == own.Group {
			l.wrongAt(l.roleNodes[name].Get("concurrency"), "WF034", fmt.Sprintf("roles.%s is in the group of its own workflow, %q, which the run holds already", name, own.Group), "remove one of the two, or give them groups of their own")
		}
	}
	within := nesting{}
	within.workflow(l.w, l.children, nil)
	alone := map[protocol.Link]bool{} // a sub-workflow may be run by itself too
	var each func(map[protocol.Link]*Program)
	each = func(children map[protocol.Link]*Program) {
		for link, p := range children {
			if !alone[link] {
				alone[link] = true
				within.workflow(p.Workflow, p.Children, nil)
				each(p.Children)
			}
		}
	}
	each(l.children)
	for _, outer := range slices.Sorted(maps.Keys(within)) {
		for _, inner := range slices.Sorted(maps.Keys(within[outer])) {
			if outer < inner && within.leads(inner, outer) {
				l.wrongAt(l.groupNode(outer, inner), "WF035", fmt.Sprintf("the groups %q and %q are entered one within the other in both orders; two runs could wait for each other for ever", outer, inner), "enter them in one order everywhere")
				return
			}
		}
	}
}

// groupNode is where the file names one of two groups, or leads to them.
func (l *loader) groupNode(a, b string) *yaml.Node {
	named := func(c *protocol.Concurrency) bool { return c != nil && (c.Group == a || c.Group == b) }
	if named(l.w.Concurrency) {
		return l.root.Get("concurrency")
	}
	for _, name := range l.roleOrder {
		if r, ok := l.w.RoleNamed(name); ok && named(r.Concurrency) {
			return l.roleNodes[name].Get("concurrency")
		}
	}
	return l.root
}

// nesting are the groups that are entered within a group, directly.
type nesting map[string]map[string]bool

// workflow adds the groups of a workflow and of its sub-workflows, which are entered within those of around.
func (g nesting) workflow(w *protocol.Workflow, children map[protocol.Link]*Program, around []string) {
	around = g.enter(w.Concurrency, around)
	for i := range w.Roles {
		r := &w.Roles[i]
		inner := g.enter(r.Concurrency, around)
		if p := children[r.Workflow]; p != nil {
			g.workflow(p.Workflow, p.Children, inner)
		}
	}
}

// enter notes a group within others, and gives all that is held then. What is held already is not entered.
func (g nesting) enter(c *protocol.Concurrency, around []string) []string {
	if c == nil || c.Group == "" || slices.Contains(around, c.Group) {
		return around
	}
	for _, outer := range around {
		if g[outer] == nil {
			g[outer] = map[string]bool{}
		}
		g[outer][c.Group] = true
	}
	return append(slices.Clone(around), c.Group)
}

// leads reports whether a group is entered within another, at any depth.
func (g nesting) leads(from, to string) bool {
	seen := map[string]bool{}
	var walk func(string) bool
	walk = func(at string) bool {
		if at == to {
			return true
		}
		if seen[at] {
			return false
		}
		seen[at] = true
		for next := range g[at] {
			if walk(next) {
				return true
			}
		}
		return false
	}
	return walk(from)
}

// Grouped reports whether the workflow or a role of it has a concurrency group.
func (p *Program) Grouped() bool { return len(p.groups) > 0 }
