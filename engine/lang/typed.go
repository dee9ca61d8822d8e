package lang

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"wf/engine/lint"
	"wf/engine/yaml"
	"wf/protocol"
	"wf/protocol/lazy"
)

// graph has lint look at the graph. What was refused is given to lint as unknown, so
// that it says nothing which follows from that.
func (l *loader) graph() {
	if n := l.root.Get("edges"); len(l.w.Roles) == 0 || n != nil && (n.Kind != yaml.Sequence || l.bad[n]) {
		return
	}
	w, others := l.readable()
	w = inGraph(w)
	for i := range others {
		others[i] = inGraph(others[i])
	}
	for _, f := range lint.Check(w, l.enums, others...) {
		if f.Code == "WF021" && strings.HasPrefix(f.Path, "roles.") && strings.HasSuffix(f.Path, ".prompt") {
			continue // any step there is WF042
		}
		d := Diagnostic{Code: f.Code, Range: l.place(f.Path), Message: l.byLine(f.Message), Hint: l.byLine(f.Hint)}
		if f.Near != "" {
			d.Fix = &Fix{f.Near}
			if k := l.roleKeys[f.Near]; k != nil {
				d.Hint = fmt.Sprintf("did you mean %q? (defined at line %d)", f.Near, k.Pos.Line)
			}
		}
		l.add(d)
	}
}

var edgeRef = lazy.Regexp(`edges\[([0-9]+)\]`)

// byLine replaces the numbers of edges, which count those that wf added, by their lines.
func (l *loader) byLine(s string) string {
	return edgeRef().ReplaceAllStringFunc(s, func(ref string) string {
		i, ok := index(ref, "edges")
		if !ok || i >= len(l.edgeNodes) || l.edgeNodes[i] == nil {
			return "the edge that begins the workflow"
		}
		return fmt.Sprintf("the edge at line %d", l.edgeNodes[i].Pos.Line)
	})
}

// readable is the definition without what was refused, and what it may have meant besides.
func (l *loader) readable() (*protocol.Workflow, []*protocol.Workflow) {
	w := *l.w
	w.Edges = slices.Clone(w.Edges)
	for i := range w.Edges {
		if n := l.edgeNodes[i]; n != nil {
			l.readableEdge(&w.Edges[i], n, i)
			continue
		}
		// wf added the edge: what has a reserved name at the inner end of it is a role.
		if e := &w.Edges[i]; i > 0 && lint.Reserved(e.From[0]) {
			e.From = []string{lint.Unknown}
		} else if lint.Reserved(e.To[0]) && i < len(w.Edges)-1 {
			e.To = []string{lint.Unknown}
		}
	}
	w.Roles = slices.DeleteFunc(slices.Clone(w.Roles), func(r protocol.Role) bool { return lint.Reserved(r.Name) })
	other := w
	other.Roles = slices.Clone(w.Roles)
	differ := false
	for i := range w.Roles {
		n := l.roleNodes[w.Roles[i].Name]
		refused := func(key string) bool { return l.refused(n, key) || l.refused(l.root.Get("defaults"), key) }
		if refused("max_visits") {
			w.Roles[i].MaxVisits, other.Roles[i].MaxVisits = 1, 1
		}
		if refused("route") {
			other.Roles[i].RouteAll, differ = true, true
		}
		if refused("continue_on_error") {
			other.Roles[i].ContinueOnError, differ = true, true
		}
	}
	if differ {
		return &w, []*protocol.Workflow{&other}
	}
	return &w, nil
}

func (l *loader) readableEdge(e *protocol.Edge, n *yaml.Node, i int) {
	ends := func(names []string, key string) []string {
		if len(names) == 0 || l.refused(n, key) {
			return append(slices.Clone(names), lint.Unknown)
		}
		return names
	}
	e.From, e.To = ends(e.From, "from"), ends(e.To, "to")
	if l.refused(n, "on_limit") {
		e.OnLimit = lint.Unknown
	}
	if l.refused(n, "limit") {
		e.Limit = 1
	}
	if l.refused(n, "for_each") {
		e.ForEach = lint.Unknown
	}
	if l.refused(n, "on") && len(e.From) > 1 {
		e.From = []string{lint.Unknown}
	}
	if l.refused(n, "when") || l.refused(n, "on") {
		e.When = fmt.Sprintf("%s %d", lint.Unknown, i) // a condition of its own, of which nothing is known
	}
}

// refused reports whether what stands at a key, or part of it, was reported.
func (l *loader) refused(n *yaml.Node, key string) bool {
	v := n.Get(key)
	return v != nil && (l.bad[v] || slices.ContainsFunc(items(v), func(it *yaml.Node) bool { return l.bad[it] }))
}

// enums are the closed fields of a role's output, for lint: enum values and booleans.
func (l *loader) enums(role string) map[string][]any {
	r, ok := l.w.RoleNamed(role)
	if !ok {
		return nil
	}
	out := map[string][]any{}
	for name, t := range l.outputType(r).fields {
		switch {
		case len(t.enum) > 0:
			out[name] = t.enum
		case t.kind == tBool:
			out[name] = []any{false, true}
		}
	}
	return out
}

// scopeType is what an expression at one place may refer to.
type scopeType struct {
	output  *typ   // nil where there is none
	noOut   string // why there is none
	outputs map[string]*typ
	item    *typ // nil outside of a fan-out
	secrets bool
	inputs  bool // and nothing else
	group   bool // of these, in the name of a group
	event   bool // and nothing else
	closing bool // run.verdict, and the steps of the whole graph
	ended   bool // outputs are those of a run that has ended, and run is that run: what a case of a suite expects
}

// types checks every expression of the file (WF010, WF020–WF024, WF040, WF042).
func (l *loader) types() {
	c := newChecker(l)
	for i := range l.w.Edges {
		c.edge(i)
	}
	for i := range l.w.Roles {
		c.role(&l.w.Roles[i])
	}
	c.values(l.root.Get("outputs"), c.ending())
	c.webhook(l.root.Get("on").Get("webhook"))
	c.group(l.root.Get("concurrency"))
	for i := range l.w.Roles {
		c.with(&l.w.Roles[i])
	}
}

func newChecker(l *loader) *checker {
	c := &checker{loader: l, roles: map[string]*typ{}, batch: map[string]bool{}, plain: map[string]bool{}, items: map[string]*typ{}}
	for i := range l.w.Roles {
		c.roles[l.w.Roles[i].Name] = l.outputType(&l.w.Roles[i])
	}
	var fans []int
	for i, e := range l.w.Edges {
		entered := c.plain
		if e.ForEach != "" {
			entered, fans = c.batch, append(fans, i)
		}
		for _, to := range append(slices.Clone(e.To), e.OnLimit) {
			entered[to] = true
		}
	}
	for _, i := range fans { // what one runs over may be of a fan-out itself
		for _, to := range l.w.Edges[i].To {
			c.items[to] = c.items[to].merge(c.elementType(i))
		}
	}
	return c
}

// checker checks expressions against types.
type checker struct {
	*loader
	roles map[string]*typ // output of one visit
	batch map[string]bool // entered by a fan-out
	plain map[string]bool // entered otherwise
	items map[string]*typ // what item is in a role
}

// yields is the type of output behind a role: of a fan-out the list in item order.
func (c *checker) yields(role string) *typ {
	t, ok := c.roles[role]
	switch {
	case !ok:
		return nil
	case c.batch[role] && c.plain[role]:
		return anyT
	case c.batch[role]:
		return listType(t)
	}
	return t
}

// elementType is the type of item of the fan-out of edge i.
func (c *checker) elementType(i int) *typ {
	e := &c.w.Edges[i]
	refs, err := lint.Refs(e.ForEach)
	if err != nil || len(refs) != 1 || refs[0] != e.ForEach {
		return anyT // computed: what it holds shows when it runs
	}
	t := c.scopeOf(e).resolve(strings.Split(e.ForEach, "."), c)
	if t == nil || t.kind != tList {
		return anyT
	}
	return t.elem
}

// scopeOf is what the conditions of an edge see.
func (c *checker) scopeOf(e *protocol.Edge) *scopeType {
	s := &scopeType{outputs: map[string]*typ{}}
	for _, from := range e.From {
		if t := c.yields(from); t != nil {
			s.outputs[from] = t
		}
	}
	switch {
	case len(e.From) == 1 && e.From[0] == protocol.NodeStart:
		s.noOut = "START has no output"
	case len(e.From) == 1:
		if s.output = c.yields(e.From[0]); s.output == nil {
			s.output = anyT // an unknown role, reported as such
		}
	default:
		s.noOut = "a join has several sources"
		for _, from := range e.From {
			if c.roles[from] == nil {
				s.outputs[from] = anyT
			}
		}
	}
	return s
}

// into is what the templates of a role see: the sources of every edge that leads to it.
func (c *checker) into(role string) *scopeType {
	s := &scopeType{outputs: map[string]*typ{}}
	if c.isAlways(role) {
		s.closing, s.noOut = true, "an always role has no single source"
		return s
	}
	for i := range c.w.Edges {
		e := &c.w.Edges[i]
		if !slices.Contains(e.To, role) && e.OnLimit != role {
			continue
		}
		from := c.scopeOf(e)
		s.output = s.output.merge(from.output)
		if len(e.From) > 1 { // outputs is what a join brings along
			maps.Copy(s.outputs, from.outputs)
		}
	}
	if s.output == nil {
		s.noOut = "what leads here has no single source"
	}
	if c.batch[role] {
		s.item = c.items[role]
	}
	return s
}

// ending is what the outputs of the workflow see: output is that of the first role that led
// to END.
func (c *checker) ending() *scopeType {
	s := &scopeType{}
	for i := range c.w.Edges {
		e := &c.w.Edges[i]
		if len(e.From) > 0 && (slices.Contains(e.To, protocol.NodeEnd) || e.OnLimit == protocol.NodeEnd) {
			s.output = s.output.merge(c.yields(e.From[0]))
		}
	}
	if s.output == nil {
		s.noOut = "no role leads to END"
	}
	return s
}

func (c *checker) edge(i int) {
	e, n := &c.w.Edges[i], c.edgeNodes[i]
	if n == nil {
		return
	}
	s := c.scopeOf(e)
	if v := n.Get("when"); c.good(v) {
		if t := c.bare(v, s); t != nil && t.kind != tAny && t.kind != tBool {
			c.report(v, Diagnostic{Code: "WF020", Message: fmt.Sprintf("when is %s, not true or false", t), Hint: "compare it with something"})
		}
	}
	if v := n.Get("for_each"); c.good(v) {
		c.list(v, s, "for_each")
	}
	if e.ForEach != "" {
		s.item = c.elementType(i)
	}
	c.template(n.Get("prompt"), s)
}

// list checks an expression that gives a list.
func (c *checker) list(n *yaml.Node, s *scopeType, key string) {
	if t := c.bare(n, s); t != nil && t.kind != tAny && t.kind != tList {
		c.report(n, Diagnostic{Code: "WF023", Message: fmt.Sprintf("%s is %s, not a list", key, t)})
	}
}

func (c *checker) role(r *protocol.Role) {
	n := c.roleNodes[r.Name]
	if n == nil || n.Kind != yaml.Mapping {
		return
	}
	s := c.into(r.Name)
	c.template(n.Get("prompt"), &scopeType{inputs: true})
	c.template(n.Get("ask"), s)
	if v := n.Get("choices"); c.good(v) && v.Kind == yaml.Scalar {
		c.list(v, s, "choices")
	}
	if w := n.Get("wait"); c.good(w) && w.Kind == yaml.Mapping {
		c.template(w.Get("for"), s)
		c.template(w.Get("until"), s)
	} else {
		c.template(w, s)
	}
	if in := n.Get("stdin"); c.good(in) && in.Kind == yaml.Mapping {
		c.template(in.Get("file"), s)
	} else {
		c.template(in, s)
	}
	c.values(n.Get("set"), s)
	c.values(n.Get("with"), s)
	c.group(n.Get("concurrency"))
	withSecrets := *s
	withSecrets.secrets = true
	for _, p := range c.pairs(n.Get("env")) {
		c.template(p.Value, &withSecrets)
	}
	if d := c.root.Get("defaults"); d != nil && inherits("env", r.Action) {
		own := n.Get("env")
		for _, p := range c.pairs(d.Get("env")) {
			if own == nil || !hasKey(own, p.Key.Value) {
				c.template(p.Value, &withSecrets)
			}
		}
	}
}

// values checks the templates in a mapping, however deep.
func (c *checker) values(n *yaml.Node, s *scopeType) {
	switch {
	case n == nil || c.bad[n]:
	case n.Kind == yaml.Mapping:
		for _, p := range n.Pairs {
			c.values(p.Value, s)
		}
	case n.Kind == yaml.Sequence:
		for _, it := range n.Items {
			c.values(it, s)
		}
	case n.Type == yaml.String:
		c.template(n, s)
	}
}

// with holds what a workflow role hands over against the inputs of its child (WF031).
func (c *checker) with(r *protocol.Role) {
	child := c.children[r.Workflow]
	if child == nil {
		return
	}
	n := c.roleNodes[r.Name]
	c.handed(handing{n.Get("with"), n.Get("workflow"), r.With, child.inputs, "sub-workflow " + child.Workflow.Name, strict})
}

// handing is what is handed over to the inputs of a workflow.
type handing struct {
	n      *yaml.Node // the mapping, nil where there is none
	at     *yaml.Node // what the inputs belong to
	with   []protocol.NamedTemplate
	inputs map[string]*inputCode
	whose  string
	mode   mode // of its expressions
}

// handed holds what is handed over against the inputs (WF031).
func (c *checker) handed(h handing) {
	declared := sortedKeys(h.inputs)
	for _, v := range h.with {
		var key, val *yaml.Node
		for _, p := range c.pairs(h.n) {
			if p.Key.Value == v.Name {
				key, val = p.Key, p.Value
			}
		}
		in, ok := h.inputs[v.Name]
		if !ok {
			d := Diagnostic{Code: "WF031", Message: fmt.Sprintf("%s has no input %q", h.whose, v.Name)}
			d.suggest(v.Name, declared)
			c.report(key, d)
			continue
		}
		value, err := compileNamed(v, h.mode)
		switch code := value.(type) {
		case []any, map[string]any:
			continue // its value shows when it runs
		case *template:
			if code.single() != nil || in.decl.Type == "" || in.decl.Type == "string" {
				continue
			}
			value = "text"
		}
		if err != nil {
			continue // reported
		}
		if why := in.fits(value); why != "" {
			c.report(val, Diagnostic{Code: "WF031", Message: fmt.Sprintf("input %q of %s %s", v.Name, h.whose, why)})
		}
	}
	for _, name := range declared {
		in := h.inputs[name].decl
		if in.Required && !slices.ContainsFunc(h.with, func(v protocol.NamedTemplate) bool { return v.Name == name }) {
			c.wrongAt(h.at, "WF031", fmt.Sprintf("%s needs the input %q%s", h.whose, name, inputHint(in)), "add it under with")
		}
	}
}
