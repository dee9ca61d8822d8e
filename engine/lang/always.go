package lang

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"wf/engine/lint"
	"wf/engine/yaml"
	"wf/protocol"
)

// Always roles are performed once the verdict of a run stands. They are no part of the graph, and must not wait for
// people (WF036).

// decodeAlways reads which roles they are; those that are none of the file are reported and left out.
func (l *loader) decodeAlways(n *yaml.Node) {
	nodes := items(n)
	if l.good(n) && n.Kind == yaml.Scalar {
		nodes = []*yaml.Node{n}
	}
	for _, it := range nodes {
		name := l.str(it)
		switch {
		case name == "":
		case slices.Contains(l.w.Always, name):
			l.report(it, Diagnostic{Code: "WF018", Message: fmt.Sprintf("%s stands twice in always", name), Hint: "remove one: each role is visited once"})
		case l.roleNodes[name] == nil:
			d := Diagnostic{Code: "WF010", Message: fmt.Sprintf("unknown role %q in always", name), Hint: "declare it under roles"}
			d.suggest(name, l.roleOrder)
			l.report(it, d)
		case len(l.w.Always) == protocol.AlwaysMax:
			l.report(it, Diagnostic{Code: "WF036", Message: fmt.Sprintf("always has more than %d roles, which have %d attempts together", protocol.AlwaysMax, protocol.AlwaysMax), Hint: "put commands that belong together into one role"})
			return
		default:
			l.w.Always = append(l.w.Always, name)
		}
	}
}

// isAlways reports whether a role stands under always.
func (l *loader) isAlways(role string) bool { return slices.Contains(l.w.Always, role) }

// graphOrder are the roles of the graph in the order written.
func (l *loader) graphOrder() []string {
	return slices.DeleteFunc(slices.Clone(l.roleOrder), l.isAlways)
}

// alwaysRules refuses always roles that are in the graph too, that can wait, and keys of theirs without an effect.
func (l *loader) alwaysRules() {
	if len(l.w.Always) == 0 {
		return
	}
	wrong := func(n *yaml.Node, msg, hint string) { l.wrongAt(n, "WF036", msg, hint) }
	if len(l.graphOrder()) == 0 {
		wrong(l.root.Get("always"), "every role stands under always: there is nothing that they come after", "add a role that does the work")
	}
	for i := range l.w.Edges {
		e, n := &l.w.Edges[i], l.edgeNodes[i]
		for _, name := range l.w.Always {
			if n != nil && slices.Contains(slices.Concat(e.From, e.To, []string{e.OnLimit}), name) {
				wrong(n, fmt.Sprintf("%s stands under always, and in an edge", name), "remove one of the two: always roles run when the graph has come to its end")
			}
		}
	}
	for _, name := range l.w.Always {
		r, ok := l.w.RoleNamed(name)
		if !ok {
			continue
		}
		n := l.roleNodes[name]
		at := func(key string) *yaml.Node { return cmp.Or(n.Get(key), n) }
		switch r.Action {
		case protocol.ActAsk, protocol.ActWait, protocol.ActWorkflow:
			wrong(at(string(r.Action)), fmt.Sprintf("roles.%s can wait: always roles cannot have %s", name, r.Action), "use run, set or prompt")
		}
		if r.Action == protocol.ActMerge || r.Workspace != nil {
			wrong(at("merge"), fmt.Sprintf("roles.%s works with copies of the workspace: always roles cannot", name), "use a role of the graph")
		}
		if r.Concurrency != nil {
			wrong(at("concurrency"), fmt.Sprintf("roles.%s can wait for its concurrency group", name), "remove concurrency: always roles run while the run holds the group of its workflow")
		}
		if r.Context == protocol.ContextTask {
			wrong(at("context"), fmt.Sprintf("roles.%s can ask a person: always roles cannot have context: task", name), "remove it")
		}
		if asks := mayAsk(r); asks != "" {
			wrong(at("tools"), fmt.Sprintf("roles.%s can wait for an approval of %s", name, asks), fmt.Sprintf("write {%s: auto}, or {%s: deny}", asks, asks))
		}
		for _, key := range []string{"max_visits", "route", "continue_on_error"} {
			if k := n.Get(key); k != nil {
				wrong(k, fmt.Sprintf("%s has no effect on %s, which stands under always", key, name), "remove it: the role is visited once, and its failure changes nothing")
			}
		}
	}
}

// mayAsk is a tool of an agent for which a person may be asked, "" for none.
func mayAsk(r *protocol.Role) string {
	said := map[string]string{}
	for _, a := range r.Approvals {
		said[a.Name] = a.Value
	}
	for _, t := range r.Tools {
		switch policy := said[t]; {
		case policy == "ask", policy == "" && strings.HasPrefix(t, "mcp:"), policy == "" && t == "shell" && r.Sandbox == protocol.SandboxOff:
			return t
		}
	}
	return ""
}

// inGraph is w without the always roles, for the checks of the graph; those that an edge names stay.
func inGraph(w *protocol.Workflow) *protocol.Workflow {
	if len(w.Always) == 0 {
		return w
	}
	out := *w
	out.Roles = slices.DeleteFunc(slices.Clone(w.Roles), func(r protocol.Role) bool {
		return slices.Contains(w.Always, r.Name) && !slices.ContainsFunc(w.Edges, func(e protocol.Edge) bool {
			return slices.Contains(slices.Concat(e.From, e.To, []string{e.OnLimit}), r.Name)
		})
	})
	return &out
}

// runRoot is the name under which always roles see how the run ends.
const runRoot = "run"

// verdictType is run.verdict.
var verdictType = func() *typ {
	return objectType(map[string]*typ{"verdict": objectType(map[string]*typ{
		"status": {kind: tString, enum: []any{"done", "failed", "cancelled"}}, "code": stringT, "message": stringT, "outputs": openT})})
}

// run is the type of run, where closing is set.
func (s *scopeType) run() *typ {
	if s.ended {
		return endedType()
	}
	return verdictType()
}

// verdict checks a reference to the run.
func (x *exprCheck) verdict(ls []lint.Step) {
	if !x.s.closing {
		x.fail("WF020", ls[0].At, "only roles under always see run.verdict", "how a run ends is not known before", nil)
		return
	}
	t := x.s.run()
	x.env[runRoot] = t.expr()
	x.walk(t, ls, 1, runRoot)
}

// runName makes run the run of an always role. In expressions of other roles it may be a variable.
type runName struct{}

// Visit is called by expr for each node.
func (runName) Visit(node *ast.Node) {
	if id, ok := (*node).(*ast.IdentifierNode); ok && id.Value == runRoot {
		id.Value = "the run"
	}
}
