package lang

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"wf/protocol"
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
	Unit     string   // in which the definition holds it; "" of what is no quantity
}

// Reference is every key of the language, in the order of the grammar: the file, inputs, servers,
// limits, roles and edges. The keys of defaults are those of roles.
func Reference() []Entry { return slices.Clone(reference()) }

var reference = sync.OnceValue(func() []Entry {
	r := &refer{g: grammar()}
	r.below("", r.g.workflow, nil)
	return r.entries
})

// units of fields that hold a number of something.
var units = map[shapeKind]string{aDuration: "in microseconds", aMoney: "in micro-dollars"}

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
			Fields: strings.Fields(k.field), Effect: k.effect, Unit: units[k.shape.kind], Actions: slices.Clone(actions)}
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
	word := kinds[s.kind].page
	switch {
	case s.enum != nil:
		return "one of `" + strings.Join(s.enum, "`, `") + "`"
	case s.kind == aString && s.like != "":
		return s.like
	case s.only != 0:
		return fmt.Sprintf("the number `%d`", s.only)
	case s.zero:
		return word + ", or `0`"
	case s.kind == anInt && s.max != 0:
		return fmt.Sprintf("%s from %d to %d", word, s.min, s.max)
	case s.kind == anInt:
		return fmt.Sprintf("%s, at least %d", word, s.min)
	case s.elem == nil:
		return word + s.choice("; or ", func(a *shape) string {
			if a.elem == s.alts[0] && a.elem.kind == aString {
				return "a list of them"
			}
			return r.typeOf(a)
		})
	case s.elem == r.g.edge:
		return "list of edges"
	case s.elem == r.g.role, s.elem == r.g.input:
		return "mapping, names with " + s.like
	}
	return word + r.typeOf(s.elem)
}

// helpOn names the command that tells more of a place in a file, such as roles.coder.retry.on[1].
func helpOn(place string) string {
	if place == topPath {
		return "wf help language shows what a workflow is made of"
	}
	for p := place; ; {
		if at := strings.SplitN(p, "[", 2)[0]; len(entriesNamed(at)) > 0 {
			return "wf help language " + protocol.ShellWord(at) + " shows what can stand there"
		}
		i := strings.LastIndex(p, ".")
		if i < 0 {
			return ""
		}
		p = p[:i]
	}
}
