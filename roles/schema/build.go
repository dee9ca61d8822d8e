package schema

import (
	"encoding/json"
	"maps"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// compiler makes the nodes of one document.
type compiler struct {
	doc       any
	formats   bool
	trusted   bool // a shape of ours: it is not checked itself
	nodes     map[string]*node
	schemas   map[string]placed // by their pointers
	resources map[string]*resource
	broken    []Violation
}

// compile makes the node of the whole document, and of all that it refers to.
func (c *compiler) compile() (*node, error) {
	if err := c.collect(c.doc, "", c.begin(newest)); err != nil {
		return nil, err
	}
	if len(c.broken) > 0 {
		slices.SortFunc(c.broken, func(a, b Violation) int { return strings.Compare(a.String(), b.String()) })
		return nil, &Invalid{c.broken}
	}
	return c.node("")
}

// begin gives the resource that the whole document is, of a draft unless it says another.
func (c *compiler) begin(draft int) *resource {
	base := &resource{base: &url.URL{Scheme: "wf", Path: "/schema.json"}, draft: draft, anchors: map[string]string{}, dynamic: map[string]bool{}}
	c.resources, c.schemas = map[string]*resource{home: base}, map[string]placed{}
	return base
}

// node is that of the schema at a pointer: made once, so that references may lead in circles.
func (c *compiler) node(ptr string) (*node, error) {
	if n := c.nodes[ptr]; n != nil {
		return n, nil
	}
	if _, ok := c.schemas[ptr]; !ok { // a reference leads to where no schema was expected
		v, err := c.at(ptr)
		if err != nil {
			return nil, err
		}
		if err := c.collect(v, ptr, c.around(ptr)); err != nil {
			return nil, err
		}
		if len(c.broken) > 0 {
			return nil, &Invalid{c.broken}
		}
	}
	s := c.schemas[ptr]
	n := &node{in: s.in}
	c.nodes[ptr] = n
	switch v := s.value.(type) {
	case bool:
		n.never = !v
	case map[string]any:
		return n, (&object{c: c, n: n, m: v, ptr: ptr, draft: s.in.draft}).build()
	}
	return n, nil
}

// object is a schema on its way into a node.
type object struct {
	c     *compiler
	n     *node
	m     map[string]any
	ptr   string
	draft int
	err   error
}

// get is the value of a keyword, nil where there is none or the draft does not know it.
func (o *object) get(key string) any {
	if _, ok := lookup(key, o.draft); !ok {
		return nil
	}
	return o.m[key]
}

func (o *object) sub(path string) *node {
	n, err := o.c.node(o.ptr + "/" + path)
	if o.err == nil {
		o.err = err
	}
	return n
}

// one is the schema of a keyword, nil for none.
func (o *object) one(key string) *node {
	if o.get(key) == nil {
		return nil
	}
	return o.sub(key)
}

func (o *object) list(key string) []*node {
	values, _ := o.get(key).([]any)
	out := make([]*node, len(values))
	for i := range values {
		out[i] = o.sub(key + "/" + strconv.Itoa(i))
	}
	return out
}

func (o *object) named(key string) map[string]*node {
	values, _ := o.get(key).(map[string]any)
	out := make(map[string]*node, len(values))
	for name, v := range ordered(values) {
		if _, isNames := v.([]any); !isNames {
			out[name] = o.sub(key + "/" + escape(name))
		}
	}
	return out
}

// number is the value of a keyword that is one, nil for none.
func (o *object) number(key string) *big.Rat {
	v, ok := o.get(key).(json.Number)
	if !ok {
		return nil
	}
	return rational(v)
}

// count is the value of a keyword that counts, or otherwise.
func (o *object) count(key string, otherwise int) int {
	n := o.number(key)
	switch {
	case n == nil:
		return otherwise
	case !n.Num().IsInt64():
		return int(^uint(0) >> 1)
	}
	return int(n.Num().Int64())
}

func (o *object) first(check func(*visit)) { o.n.first = append(o.n.first, check) }
func (o *object) then(check func(*visit))  { o.n.rest = append(o.n.rest, check) }

func (o *object) build() error {
	ref, _ := o.get("$ref").(string)
	if ref == "" || o.draft >= 2019 {
		o.values()
		o.objects()
		o.arrays()
		o.combined()
	}
	o.reference("$ref")
	o.reference("$recursiveRef")
	o.reference("$dynamicRef")
	o.unevaluated()
	return o.err
}

func (o *object) reference(key string) {
	ref, ok := o.get(key).(string)
	if !ok {
		return
	}
	if draft := published(ref); draft != 0 {
		o.then(func(v *visit) {
			for _, broken := range rules(v.value, draft) {
				v.found = append(v.found, Violation{v.at.String() + broken.Pointer, broken.Reason})
			}
		})
		return
	}
	ptr, fragment, err := o.c.resolve(ref, o.n.in)
	if err != nil {
		o.err = err
		return
	}
	target, err := o.c.node(ptr)
	if err != nil {
		o.err = err
		return
	}
	// A dynamic reference leads to the outermost resource that the visit came through.
	var leads func(in *resource) (ptr string, ok bool)
	switch {
	case key == "$recursiveRef" && target.in.recurs:
		leads = func(in *resource) (string, bool) { return in.ptr, in.recurs }
	case key == "$dynamicRef" && target.in.dynamic[fragment]:
		leads = func(in *resource) (string, bool) { return in.anchors[fragment], in.dynamic[fragment] }
	default:
		o.then(func(v *visit) { v.self(target) })
		return
	}
	for _, in := range ordered(o.c.resources) {
		if ptr, ok := leads(in); ok {
			if _, err := o.c.node(ptr); err != nil {
				o.err = err
				return
			}
		}
	}
	nodes := o.c.nodes
	o.then(func(v *visit) {
		to := target
		for f := &v.frame; f != nil; f = f.up {
			if ptr, ok := leads(f.node.in); ok {
				to = nodes[ptr]
			}
		}
		v.self(to)
	})
}

// pattern is a schema for the names that an expression matches.
type pattern struct {
	*expression
	node *node
}

func (o *object) patterns() []pattern {
	var out []pattern
	all := o.named("patternProperties")
	for _, expr := range slices.Sorted(maps.Keys(all)) {
		re, err := newExpression(expr)
		if err != nil {
			o.err = err
			return nil
		}
		out = append(out, pattern{re, all[expr]})
	}
	return out
}
