package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
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
	t := Walk(root)
	var refs []string
	for _, n := range t.Nodes {
		if chain := Chain(n); len(chain) > 0 && !t.Inner[n] && !t.Local[chain[0].Name] {
			refs = append(refs, dotted(chain))
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

// Tree is an expression, walked.
type Tree struct {
	Nodes []ast.Node        // children first
	Inner map[ast.Node]bool // those that are part of a longer chain
	Local map[string]bool   // names that let declares
}

// Walk gathers the nodes of an expression.
func Walk(root ast.Node) *Tree {
	t := &Tree{Inner: map[ast.Node]bool{}, Local: map[string]bool{}}
	ast.Walk(&root, t)
	return t
}

// Visit implements ast.Visitor.
func (t *Tree) Visit(node *ast.Node) {
	t.Nodes = append(t.Nodes, *node)
	switch n := (*node).(type) {
	case *ast.MemberNode:
		t.Inner[n.Node] = true
	case *ast.ChainNode:
		t.Inner[n.Node] = true
	case *ast.VariableDeclaratorNode:
		t.Local[n.Name] = true
	}
}

// Step is one of a chain a.b["c"].
type Step struct {
	Name string // "" where it is computed
	At   file.Location
}

// Chain are the steps of a chain that begins at a name, up to the first that is computed; nil for
// anything else.
func Chain(n ast.Node) []Step {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		return []Step{{n.Value, n.Location()}}
	case *ast.ChainNode:
		return Chain(n.Node)
	case *ast.MemberNode:
		before := Chain(n.Node)
		if len(before) == 0 || before[len(before)-1].Name == "" {
			return before
		}
		if p, ok := n.Property.(*ast.StringNode); ok {
			return append(before, Step{p.Value, p.Location()})
		}
		return append(before, Step{})
	}
	return nil
}

// dotted is the path of a chain as far as its steps are literal.
func dotted(chain []Step) string {
	var path []string
	for _, s := range chain {
		if s.Name != "" {
			path = append(path, s.Name)
		}
	}
	return strings.Join(path, ".")
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
	look := func(part string, refs []string) {
		for _, name := range steps(refs) {
			if n, known := c.g.index[name]; known && !c.leads(n, i+1) {
				c.tooEarly(c.firstEdge(r.Name), "roles."+r.Name+"."+part, name, r.Name)
			}
		}
	}
	for _, t := range r.Templates() {
		look(t.Name, slices.Concat(TemplateRefs(t.Value), TemplateRefs(t.JSON)))
	}
	look("choices", expressionRefs(r.ChoicesOf))
	if r.Artifacts == nil {
		return
	}
	for k, name := range r.Artifacts.From {
		if n, known := c.g.index[name]; known && !c.leads(n, i+1) {
			c.edge(c.firstEdge(r.Name), "WF037", "roles."+r.Name+"."+partAt("artifacts.from", k), fmt.Sprintf("%s never has files of %s: no path leads from %s to %s", r.Name, name, name, r.Name),
				"name a role that runs before, or add the edge that is missing")
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
		_, seen = flood(c.g.forth, nil, c.g.forth[a]...)
		c.paths[a] = seen
	}
	return seen[b]
}
