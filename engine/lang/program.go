package lang

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"wf/protocol"
)

// Program is a definition with its expressions compiled. It is immutable and safe for
// concurrent use.
type Program struct {
	Workflow *protocol.Workflow
	// Children are the programs of the sub-workflows, by the Role.Workflow that names them.
	Children map[protocol.Link]*Program

	source  []byte // the YAML that it was read from; nil where only its canonical form is known
	edges   []edgeCode
	roles   map[string]*roleCode
	inputs  map[string]*inputCode
	outputs []namedValue
	secrets map[string]any       // name → reference
	groups  map[string]*template // of the workflow, "", and of roles
	maybe   []string             // inputs that are read though they may be missing

	outputsUses Uses
	hook        *hookCode // nil without a webhook
}

// Source is the YAML that it was read from; nil where only its canonical form is known.
func (p *Program) Source() []byte { return p.source }

type edgeCode struct {
	when    *code
	prompt  *template
	forEach *code
	uses    EdgeUses
}

type roleCode struct {
	texts   map[string]any // its templates by their places, as compileAny gives them
	choices *code          // ask: what gives the choices, or nil
	uses    Uses
}

type namedValue struct {
	name  string
	value any // as compileAny gives it
}

// Compile makes the program of a stored definition. child gives the definition that a
// Role.Workflow names; it may be nil where there are no sub-workflows. The error wraps
// protocol.ErrInvalid: a definition that Load accepted always compiles, unless the binary
// lacks its rules.
func Compile(w *protocol.Workflow, child func(protocol.Link) (*protocol.Workflow, error)) (*Program, error) {
	c := compiler{child: child, done: map[protocol.Link]*Program{}}
	return c.program(w, 0)
}

// maxNesting bounds sub-workflows within sub-workflows.
const maxNesting = 32

type compiler struct {
	child func(protocol.Link) (*protocol.Workflow, error)
	done  map[protocol.Link]*Program
}

func (c *compiler) program(w *protocol.Workflow, depth int) (*Program, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("workflow %s: sub-workflows nest deeper than %d: %w", w.Name, maxNesting, protocol.ErrInvalid)
	}
	p, err := compileOne(w)
	if err != nil {
		return nil, fmt.Errorf("workflow %s: %v: %w", w.Name, err, protocol.ErrInvalid)
	}
	for i := range w.Roles {
		l := w.Roles[i].Workflow
		if !l.Defined() {
			continue
		}
		if sub, ok := c.done[l]; ok {
			p.Children[l] = sub
			continue
		}
		if c.child == nil {
			return nil, fmt.Errorf("workflow %s: role %s: its sub-workflow %s was not given: %w", w.Name, w.Roles[i].Name, l, protocol.ErrInvalid)
		}
		def, err := c.child(l)
		if err != nil {
			return nil, fmt.Errorf("workflow %s: role %s: sub-workflow %s: %w", w.Name, w.Roles[i].Name, l, err)
		}
		sub, err := c.program(def, depth+1)
		if err != nil {
			return nil, err
		}
		c.done[l], p.Children[l] = sub, sub
	}
	return p, nil
}

// compileOne compiles w without its sub-workflows.
func compileOne(w *protocol.Workflow) (*Program, error) {
	p := &Program{Workflow: w, Children: map[protocol.Link]*Program{}, edges: make([]edgeCode, len(w.Edges)),
		roles: make(map[string]*roleCode, len(w.Roles)), inputs: map[string]*inputCode{}, secrets: map[string]any{}}
	for _, name := range w.Secrets {
		p.secrets[name] = protocol.SecretRef(name)
	}
	var err error
	for name, in := range w.Inputs {
		if p.inputs[name], err = compileInput(in); err != nil {
			return nil, fmt.Errorf("input %s: %w", name, err)
		}
	}
	for i := range w.Edges {
		if p.edges[i], err = compileEdge(&w.Edges[i]); err != nil {
			return nil, fmt.Errorf("edge %d: %w", i, err)
		}
	}
	for i := range w.Roles {
		r := &w.Roles[i]
		m := strict
		if slices.Contains(w.Always, r.Name) {
			m = ofClosing
		}
		if p.roles[r.Name], err = compileRole(r, m); err != nil {
			return nil, fmt.Errorf("role %s: %w", r.Name, err)
		}
	}
	if p.groups, err = compileGroups(w); err != nil {
		return nil, err
	}
	for _, o := range w.Outputs {
		value, err := compileNamed(o, nullSafe)
		if err != nil {
			return nil, fmt.Errorf("outputs: %s: %w", o.Name, err)
		}
		p.outputs = append(p.outputs, namedValue{o.Name, value})
		p.outputsUses.add(value)
	}
	if p.hook, err = compileHook(w.Webhook); err != nil {
		return nil, fmt.Errorf("on.webhook: %w", err)
	}
	return p, nil
}

func compileEdge(e *protocol.Edge) (c edgeCode, err error) {
	if c.when, err = compile(e.When, strict); err != nil {
		return c, err
	}
	if c.forEach, err = compile(e.ForEach, strict); err != nil {
		return c, err
	}
	c.prompt, err = compileTemplate(e.Prompt, strict)
	c.uses = EdgeUses{When: usesOf(c.when), ForEach: usesOf(c.forEach), Prompt: usesOf(c.prompt)}
	return c, err
}

func compileRole(r *protocol.Role, m mode) (*roleCode, error) {
	c := &roleCode{texts: map[string]any{}}
	var err error
	if c.choices, err = compile(r.ChoicesOf, m); err != nil {
		return nil, fmt.Errorf("choices: %w", err)
	}
	c.uses.add(c.choices)
	for _, t := range r.Templates() {
		if c.texts[t.Name], err = compileNamed(t, m); err != nil {
			return nil, fmt.Errorf("%s: %w", t.Name, err)
		}
		c.uses.add(c.texts[t.Name])
	}
	if err := checkSchema(r.Output); err != nil {
		return nil, fmt.Errorf("output: %w", err)
	}
	if err := checkSchema(r.Form); err != nil {
		return nil, fmt.Errorf("form: %w", err)
	}
	return c, nil
}

func compileNamed(n protocol.NamedTemplate, m mode) (any, error) {
	if n.JSON == "" {
		return compileAny(n.Value, m)
	}
	v, err := DecodeJSON([]byte(n.JSON))
	if err != nil {
		return nil, err
	}
	return compileAny(v, m)
}

// compileAny replaces the texts of a JSON value that are templates by *template, in place.
func compileAny(v any, m mode) (any, error) {
	var err error
	switch v := v.(type) {
	case string:
		if hasExpr(v) {
			return compileTemplate(v, m)
		}
	case []any:
		for i := range v {
			if v[i], err = compileAny(v[i], m); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for _, k := range sortedKeys(v) {
			if v[k], err = compileAny(v[k], m); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// DecodeObject is DecodeJSON for what must be an object.
func DecodeObject(b json.RawMessage) (map[string]any, error) {
	v, err := DecodeJSON(b)
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%.40q is no object", b)
	}
	return m, nil
}

// Closes reports whether the workflow, or a sub-workflow, has always roles.
func (p *Program) Closes() bool {
	if len(p.Workflow.Always) > 0 {
		return true
	}
	for _, child := range p.Children {
		if child.Closes() {
			return true
		}
	}
	return false
}

// HasAgent reports whether a role of the workflow, or of a sub-workflow, is an agent.
func (p *Program) HasAgent() bool {
	if slices.ContainsFunc(p.Workflow.Roles, func(r protocol.Role) bool { return r.Action == protocol.ActPrompt }) {
		return true
	}
	for _, child := range p.Children {
		if child.HasAgent() {
			return true
		}
	}
	return false
}
