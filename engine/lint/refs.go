package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"

	"wf/protocol"
)

// Refs lists what an expression refers to, sorted, each as its dotted path: "inputs.package",
// "output.status", "steps.coder.output.summary", "item". A step in brackets counts like one
// after a dot when its name is a literal; a path ends where the name is computed. The error
// is that of the expression's syntax.
func Refs(expression string) ([]string, error) {
	root, err := parse(expression)
	if err != nil {
		return nil, err
	}
	v := &refVisitor{inner: map[ast.Node]bool{}}
	// Walk goes from the leaves up, so the longest path of a chain comes last.
	ast.Walk(&root, v)
	var refs []string
	for _, n := range v.order {
		if v.inner[n] {
			continue
		}
		if path, ok := dotted(n); ok && !slices.Contains(v.local, path[0]) {
			refs = append(refs, strings.Join(path, "."))
		}
	}
	slices.Sort(refs)
	return slices.Compact(refs), nil
}

// expressionMax is the longest expression that is read, in bytes: the parser goes as deep as
// brackets are nested.
const expressionMax = 64 << 10

func parse(expression string) (ast.Node, error) {
	if len(expression) > expressionMax {
		return nil, fmt.Errorf("read expression: %d bytes are more than the %d that an expression may have", len(expression), expressionMax)
	}
	tree, err := parser.Parse(expression)
	if err != nil {
		return nil, fmt.Errorf("read expression: %w", err)
	}
	return tree.Node, nil
}

type refVisitor struct {
	order []ast.Node
	inner map[ast.Node]bool // part of a longer path
	local []string          // names that let declares
}

// Visit implements ast.Visitor.
func (v *refVisitor) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.VariableDeclaratorNode:
		v.local = append(v.local, n.Name)
	case *ast.IdentifierNode, *ast.MemberNode, *ast.ChainNode:
		if _, ok := dotted(n); !ok {
			return
		}
		v.order = append(v.order, n)
		switch n := n.(type) {
		case *ast.MemberNode:
			v.inner[n.Node] = true
		case *ast.ChainNode:
			v.inner[n.Node] = true
		}
	}
}

// dotted is the path of a chain of literal members that starts at a name.
func dotted(n ast.Node) ([]string, bool) {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		return []string{n.Value}, true
	case *ast.ChainNode:
		return dotted(n.Node)
	case *ast.MemberNode:
		property, ok := n.Property.(*ast.StringNode)
		if !ok {
			return nil, false
		}
		path, ok := dotted(n.Node)
		return append(path, property.Value), ok
	}
	return nil, false
}

// TemplateRefs lists what the ${{ }} parts of a template refer to, like Refs. Parts that do
// not parse are passed over: they are reported where they are compiled.
func TemplateRefs(template string) []string {
	var refs []string
	for rest := template; ; {
		_, after, ok := strings.Cut(rest, "${{")
		if !ok {
			break
		}
		end := closing(after)
		if end < 0 {
			break
		}
		if found, err := Refs(after[:end]); err == nil {
			refs = append(refs, found...)
		}
		rest = after[end+2:]
	}
	slices.Sort(refs)
	return slices.Compact(refs)
}

// closing finds the }} that ends an expression, −1 if none does; those in strings and of
// nested maps do not.
func closing(s string) int {
	var quote byte
	depth := 0
	for i := 0; i < len(s); i++ {
		switch ch := s[i]; {
		case quote != 0:
			if ch == '\\' && quote != '`' {
				i++
			} else if ch == quote {
				quote = 0
			}
		case ch == '"' || ch == '\'' || ch == '`':
			quote = ch
		case ch == '{':
			depth++
		case ch == '}' && depth > 0:
			depth--
		case ch == '}' && i+1 < len(s) && s[i+1] == '}':
			return i
		}
	}
	return -1
}

// steps are the roles named by steps.<role> in refs.
func steps(refs []string) []string {
	var names []string
	for _, ref := range refs {
		if rest, ok := strings.CutPrefix(ref, "steps."); ok {
			name, _, _ := strings.Cut(rest, ".")
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// references reports steps.<role> where no run can have been in that role (WF021). An
// unknown role is no finding here: the expression does not compile.
func (c *check) references() {
	c.paths = map[int][]bool{}
	for i := range c.w.Edges {
		e := &c.w.Edges[i]
		for _, text := range []struct {
			part string
			refs []string
		}{
			{"when", expressionRefs(e.When)},
			{"for_each", expressionRefs(e.ForEach)},
			{"prompt", slices.Concat(TemplateRefs(e.Prompt), e.Mentions)},
		} {
			for _, name := range steps(text.refs) {
				n, known := c.g.index[name]
				before := slices.ContainsFunc(e.From, func(from string) bool {
					return from == name || known && c.leads(n, c.g.index[from])
				})
				if known && !before {
					c.tooEarly(i, edgePath(i, text.part), name, strings.Join(e.From, ", "))
				}
			}
		}
	}
	for i := range c.w.Roles {
		c.roleReferences(i)
	}
}

func expressionRefs(text string) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	refs, err := Refs(text)
	if err != nil {
		return nil // reported where it is compiled
	}
	return refs
}

func (c *check) roleReferences(i int) {
	r := &c.w.Roles[i]
	texts := []protocol.NamedTemplate{{Name: "prompt", Value: r.Prompt}, {Name: "ask", Value: r.Ask}}
	if r.Wait != nil {
		texts = append(texts, protocol.NamedTemplate{Name: "wait.for", Value: r.Wait.For},
			protocol.NamedTemplate{Name: "wait.until", Value: r.Wait.Until})
	}
	for key, list := range map[string][]protocol.NamedTemplate{"with": r.With, "set": r.Set, "env": r.Env} {
		for _, t := range list {
			texts = append(texts, protocol.NamedTemplate{Name: key + "." + t.Name, Value: t.Value, JSON: t.JSON})
		}
	}
	slices.SortFunc(texts, func(a, b protocol.NamedTemplate) int { return strings.Compare(a.Name, b.Name) })
	for _, t := range texts {
		for _, name := range steps(slices.Concat(TemplateRefs(t.Value), TemplateRefs(t.JSON))) {
			if n, known := c.g.index[name]; known && !c.leads(n, i+1) {
				c.tooEarly(c.firstEdge(r.Name), "roles."+r.Name+"."+t.Name, name, r.Name)
			}
		}
	}
}

func (c *check) tooEarly(at int, path, name, here string) {
	c.edge(at, "WF021", path, fmt.Sprintf("steps.%s is always null here: no path leads from %s to %s", name, name, here),
		"refer to a role that runs before, or add the edge that is missing")
}

// leads reports whether a token can go from a to b in one step or more.
func (c *check) leads(a, b int) bool {
	seen, ok := c.paths[a]
	if !ok {
		next := c.g.next(false)
		seen = flood(next, next[a]...)
		c.paths[a] = seen
	}
	return seen[b]
}
