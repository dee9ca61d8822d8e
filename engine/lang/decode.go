package lang

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"wf/engine/lint"
	"wf/engine/yaml"
	"wf/protocol"
)

func (l *loader) decodeInputs(n *yaml.Node) {
	for _, p := range l.pairs(n) {
		if l.w.Inputs == nil {
			l.w.Inputs = map[string]protocol.Input{}
		}
		in := protocol.Input{}
		if p.Value.Kind == yaml.Scalar {
			in.Type = l.str(p.Value)
		} else {
			in.Type = l.str(p.Value.Get("type"))
			in.Required = l.yes(p.Value.Get("required"))
			in.Description = trimEnd(l.str(p.Value.Get("description")))
			if d := p.Value.Get("default"); l.good(d) {
				in.Default = l.canonical(d)
			}
			if e := p.Value.Get("enum"); l.good(e) {
				in.Enum = l.canonical(e)
			}
		}
		l.w.Inputs[p.Key.Value] = in
		l.inputRules(p.Key.Value, in, p.Value)
	}
}

// inputRules checks a default and an enum against the type (WF032).
func (l *loader) inputRules(name string, in protocol.Input, n *yaml.Node) {
	c, err := compileInput(in)
	if err != nil {
		return // reported as no JSON
	}
	if in.Type != "" {
		for i, v := range c.enum {
			if !isType(in.Type, v) {
				l.report(n.Get("enum").Items[i], Diagnostic{Code: "WF032", Message: fmt.Sprintf("inputs.%s: %s in enum is not %s", name, typeName(v), protocol.Article(in.Type))})
			}
		}
	}
	if in.Default == "" {
		return
	}
	if why := c.fits(c.def); why != "" {
		l.report(n.Get("default"), Diagnostic{Code: "WF032", Message: fmt.Sprintf("the default of inputs.%s does not fit: it %s", name, why)})
	} else if in.Required {
		l.wrongAt(n.Get("required"), "WF032", fmt.Sprintf("inputs.%s is required and has a default", name), "remove one of them")
	}
}

func (l *loader) decodeLimits(n *yaml.Node) {
	cost, _ := parseMoney(l.str(n.Get("cost_usd")))
	l.w.Limits = protocol.Limits{Steps: l.integer(n.Get("steps")), Duration: l.duration(n.Get("duration")),
		Cost: cost, Tokens: int64(l.integer(n.Get("tokens")))}
}

func (l *loader) decodeSecrets(n *yaml.Node) {
	for _, it := range items(n) {
		switch {
		case !l.good(it):
		case slices.Contains(l.w.Secrets, it.Value):
			l.report(it, Diagnostic{Code: "WF018", Message: fmt.Sprintf("secret %s is named twice", it.Value), Hint: "remove one"})
		default:
			l.w.Secrets = append(l.w.Secrets, it.Value)
		}
	}
	slices.Sort(l.w.Secrets)
}

// decodeEdges reads the edges in declared order and writes out what was left unsaid: without
// edges the chain of roles, without an edge from START one to the first role.
func (l *loader) decodeEdges(n *yaml.Node) {
	if n == nil || n.Kind != yaml.Sequence || l.bad[n] {
		if n == nil {
			l.chain()
		}
		return
	}
	started := false
	for i, e := range n.Items {
		if e.Kind != yaml.Mapping {
			continue
		}
		started = started || slices.Contains(l.words(e.Get("from")), protocol.NodeStart)
		l.w.Edges = append(l.w.Edges, l.edge(e, i))
		l.edgeNodes = append(l.edgeNodes, e)
	}
	if first := l.graphOrder(); !started && len(first) > 0 {
		l.w.Edges = slices.Insert(l.w.Edges, 0, protocol.Edge{From: []string{protocol.NodeStart}, To: []string{first[0]}})
		l.edgeNodes = slices.Insert(l.edgeNodes, 0, nil)
	}
}

func (l *loader) chain() {
	from := protocol.NodeStart
	for _, to := range append(l.graphOrder(), protocol.NodeEnd) {
		l.w.Edges = append(l.w.Edges, protocol.Edge{From: []string{from}, To: []string{to}})
		l.edgeNodes = append(l.edgeNodes, nil)
		from = to
	}
}

func (l *loader) edge(n *yaml.Node, i int) protocol.Edge {
	e := protocol.Edge{
		From: l.words(n.Get("from")), To: l.words(n.Get("to")),
		When: strings.TrimSpace(l.str(n.Get("when"))), OnFailure: l.str(n.Get("on")) == "failure",
		Prompt: trimEnd(l.str(n.Get("prompt"))), Limit: l.integer(n.Get("limit")), OnLimit: l.str(n.Get("on_limit")),
		ForEach: strings.TrimSpace(l.str(n.Get("for_each"))), MaxParallel: l.integer(n.Get("max_parallel")),
	}
	e.When, e.ForEach = unwrap(e.When), unwrap(e.ForEach)
	e.Mentions = mentions(e.Prompt)
	if e.OnFailure && len(e.From) > 1 {
		l.wrong(n.Get("on"), fmt.Sprintf("edges[%d]: on: failure has one source; this edge has %d", i, len(e.From)), "write one edge per role")
	}
	if e.MaxParallel > 0 && e.ForEach == "" {
		l.wrongAt(n.Get("max_parallel"), "WF002", fmt.Sprintf("edges[%d]: max_parallel needs for_each", i), "add for_each: a list")
	}
	if e.ForEach != "" && (len(e.To) != 1 || lint.Reserved(e.To[0])) {
		l.wrongAt(n.Get("for_each"), "WF023", fmt.Sprintf("edges[%d]: a fan-out leads to one role", i), "name one role in to")
	}
	for _, key := range []string{"from", "to"} {
		for k, it := range items(n.Get(key)) {
			if slices.ContainsFunc(items(n.Get(key))[:k], func(o *yaml.Node) bool { return o.Value == it.Value }) {
				l.report(it, Diagnostic{Code: "WF018", Message: fmt.Sprintf("%s stands twice in %s", it.Value, key), Hint: "remove one"})
			}
		}
	}
	return e
}

func items(n *yaml.Node) []*yaml.Node {
	if n == nil {
		return nil
	}
	return n.Items
}

// unwrap takes the braces off a condition that is only one ${{ }}; when and for_each are
// bare, yet both forms mean the same.
func unwrap(s string) string {
	if pieces, _, err := lint.Split(s); err == nil && len(pieces) == 1 && pieces[0].Expr {
		return pieces[0].Text
	}
	return s
}

// mentions is what a prompt refers to, as Edge.Mentions says it: inputs by name, the other
// roots by their first step.
func mentions(prompt string) []string {
	var out []string
	for _, ref := range lint.TemplateRefs(prompt) {
		parts := strings.Split(ref, ".")
		switch parts[0] {
		case "output", "item":
			out = append(out, parts[0])
		case "inputs", "outputs", "steps":
			out = append(out, strings.Join(parts[:min(2, len(parts))], "."))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// named reads name → template or value, sorted by name.
func (l *loader) named(n *yaml.Node) []protocol.NamedTemplate {
	var out []protocol.NamedTemplate
	for _, p := range l.pairs(n) {
		t := protocol.NamedTemplate{Name: p.Key.Value}
		if p.Value.Kind == yaml.Scalar && p.Value.Type == yaml.String && p.Value.Value != "" {
			t.Value = p.Value.Value
		} else {
			t.JSON = l.canonical(p.Value)
		}
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b protocol.NamedTemplate) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
