package schema

import (
	"slices"
	"strings"
)

// node is a schema as checks. The checks of first stop at the first violation.
type node struct {
	in          *resource
	never       bool // the schema false
	first, rest []func(*visit)
}

// visit is a node looking at a value.
type visit struct {
	frame
	value any
	found []Violation
	seen  map[any]bool // by see
}

// frame is a node on the way to the one that looks now.
type frame struct {
	node *node
	at   *place
	up   *frame
	work *work
}

// place is a step in the value; nil is the whole.
type place struct {
	in   *place
	step string
}

func (p *place) String() string {
	var steps []string
	for ; p != nil; p = p.in {
		steps = append(steps, escape(p.step), "/")
	}
	slices.Reverse(steps)
	return strings.Join(steps, "")
}

// see notes that a schema had something to say about a member, by its name, or about an item, by its place.
func (v *visit) see(part any) {
	if v.seen == nil {
		v.seen = map[any]bool{}
	}
	v.seen[part] = true
}

// eval gives what is wrong with a value, and what was seen of it.
func (n *node) eval(value any, at *place, up *frame) ([]Violation, map[any]bool) {
	v := visit{frame: frame{n, at, up, &work{}}, value: value}
	if up != nil {
		v.work = up.work
	}
	v.work.take(1)
	if n.never {
		v.fail("false schema")
		return v.found, v.seen
	}
	for f := up; f != nil && f.at == at; f = f.up {
		if v.work.take(1); f.node == n {
			v.fail("the schema refers to itself without end")
			return v.found, v.seen
		}
	}
	for _, check := range n.first {
		if check(&v); v.found != nil {
			return v.found, v.seen
		}
	}
	for _, check := range n.rest {
		check(&v)
	}
	return v.found, v.seen
}

func (v *visit) fail(format string, args ...any) {
	deep := failLooks
	for p := v.at; p != nil; p = p.in {
		deep++
	}
	v.work.take(deep)
	v.found = append(v.found, Violation{v.at.String(), sentence(format, args...)})
}

// child looks at a member or an item.
func (v *visit) child(n *node, value any, at *place) {
	found, _ := n.eval(value, at, &v.frame)
	v.found = append(v.found, found...)
}

// self looks at the same value with another node.
func (v *visit) self(n *node) {
	found, _ := v.try(n)
	v.found = append(v.found, found...)
}

// try looks at the same value with another node; violations of that need not be those of this one.
func (v *visit) try(n *node) (found []Violation, fits bool) {
	found, saw := n.eval(v.value, v.at, &v.frame)
	if len(found) > 0 {
		return found, false
	}
	for part := range saw {
		v.see(part)
	}
	return nil, true
}
