package lang

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// An Entry is what the reference says of one key.
type Entry struct {
	// Path is where the key can be: roles.*.retry.delay. A * is any name, or any element of a list.
	Path     string
	Required bool
	Type     string   // in words
	Doc      string   // sentences
	Default  string   // what holds where the key is left out, as it would be written; "" where it cannot be
	Without  string   // what holds where the key is left out, in words or written; "" of what is required
	Example  string   // YAML of the node that has the key: the file, a role, an edge, an input or a server
	Fields   []string // of the canonical definition that it becomes: roles[].retry.delay
	Effect   string   // instead of Fields, where it becomes none
	Actions  []string // of a key of a role: the actions beside which it has an effect; nil is all of them
}

// Reference is every key of the language, in the order of the grammar: the file, inputs, servers,
// limits, roles and edges. The keys of defaults are those of roles.
func Reference() []Entry { return slices.Clone(reference()) }

var reference = sync.OnceValue(func() []Entry {
	r := &refer{g: grammar()}
	r.below("", r.g.workflow, nil)
	return r.entries
})

type refer struct {
	g       *language
	entries []Entry
}

// below adds the keys below a shape, in order; actions are those beside which they have an effect.
func (r *refer) below(path string, s *shape, actions []string) {
	switch {
	case s == nil || s == r.g.defaults:
		return
	case s.kind == aList, s.kind == aMap:
		r.below(path+".*", s.elem, actions)
	}
	for _, a := range s.alts {
		r.below(path, a, actions)
	}
	for i := range s.keys {
		k := &s.keys[i]
		at := strings.TrimPrefix(path+"."+k.name, ".")
		e := Entry{Path: at, Required: k.required, Type: r.typeOf(k.shape), Doc: k.doc, Default: k.def, Without: k.without(), Example: k.example,
			Fields: strings.Fields(k.field), Effect: k.effect, Actions: slices.Clone(actions)}
		if k.doc == "" {
			e.Doc = k.shape.doc
		}
		if s == r.g.role {
			for _, a := range works()[k.name] {
				e.Actions = append(e.Actions, string(a))
			}
			if tasked[k.name] {
				e.Actions = append(e.Actions, "workflow")
			}
		}
		r.entries = append(r.entries, e)
		r.below(at, k.shape, e.Actions)
	}
}

// typeOf says what a value looks like.
func (r *refer) typeOf(s *shape) string {
	switch s.kind {
	case aString:
		switch {
		case s.enum != nil:
			return "one of `" + strings.Join(s.enum, "`, `") + "`"
		case s.like != "":
			return s.like
		}
		return "text"
	case aText:
		return "text, with expressions"
	case anExpr:
		return "expression"
	case anInt:
		switch {
		case s.only != 0:
			return fmt.Sprintf("the number `%d`", s.only)
		case s.max != 0:
			return fmt.Sprintf("whole number from %d to %d", s.min, s.max)
		}
		return fmt.Sprintf("whole number, at least %d", s.min)
	case aDecimal:
		return "number above 0"
	case aBool:
		return "`true` or `false`"
	case aDuration:
		return "duration, such as `90s`, `10m` or `1h30m`"
	case aMoney:
		return "US dollars, with at most six decimals"
	case aList:
		if s.elem == r.g.edge {
			return "list of edges"
		}
		return "list of: " + r.typeOf(s.elem)
	case aMap:
		switch s.elem {
		case r.g.role, r.g.input:
			return "mapping, names with " + s.like
		}
		return "mapping of names to: " + r.typeOf(s.elem)
	case anObject:
		return "mapping"
	case aSchema:
		return "JSON Schema with `type: object`"
	case oneOf:
		if len(s.alts) == 2 && s.alts[1].elem == s.alts[0] && s.alts[0].kind == aString {
			return r.typeOf(s.alts[0]) + "; or a list of them"
		}
		alts := make([]string, len(s.alts))
		for i, a := range s.alts {
			alts[i] = r.typeOf(a)
		}
		return strings.Join(alts, "; or ")
	}
	return "any value"
}

// units of fields that hold a number of something.
var units = map[shapeKind]string{aDuration: "in microseconds", aMoney: "in micro-dollars"}

// unitOf is the unit in which the definition holds the key of a path.
func unitOf(path string) string {
	s := grammar().workflow
	for _, name := range strings.Split(path, ".") {
		if s = s.under(name); s == nil {
			return ""
		}
	}
	return units[s.kind]
}

// under is the shape of a key below s, or of what * stands for.
func (s *shape) under(name string) *shape {
	if name == "*" && s.elem != nil {
		return s.elem
	}
	if k, ok := s.key(name); ok {
		return k.shape
	}
	for _, a := range s.alts {
		if u := a.under(name); u != nil {
			return u
		}
	}
	return nil
}

// helpOn names the command that tells more of a place in a file, such as roles.coder.retry.on[1].
func helpOn(place string) string {
	if place == topPath {
		return "wf help language shows what a workflow is made of"
	}
	for p := place; ; {
		if at := strings.SplitN(p, "[", 2)[0]; len(entriesNamed(at)) > 0 {
			return "wf help language " + at + " shows what can stand there"
		}
		i := strings.LastIndex(p, ".")
		if i < 0 {
			return ""
		}
		p = p[:i]
	}
}
