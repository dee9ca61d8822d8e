package schema

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// home is the address of a schema that names none.
const home = "wf:///schema.json"

// resource is a schema with an address of its own.
type resource struct {
	base    *url.URL
	ptr     string // where in the document it lies
	draft   int
	anchors map[string]string // name → pointer into the document
	dynamic map[string]bool   // anchors that are dynamic
	recurs  bool              // $recursiveAnchor
}

// placed is a schema, and the resource that it lies in.
type placed struct {
	value any
	in    *resource
}

// collect finds the schemas, resources and anchors at and below a schema, and what breaks the rules for
// schemas on the way.
func (c *compiler) collect(v any, ptr string, in *resource) error {
	m, ok := v.(map[string]any)
	if !ok {
		if _, ok := v.(bool); !ok {
			c.broken = append(c.broken, Violation{ptr, wrongType(v, "boolean", "object")})
		}
		c.schemas[ptr] = placed{v, in}
		return nil
	}
	in, err := c.resource(m, ptr, in)
	if err != nil {
		return err
	}
	c.schemas[ptr] = placed{v, in}
	_, refers := m["$ref"]
	for key, value := range m {
		k, ok := lookup(key, in.draft)
		if !ok || refers && in.draft < 2019 && key != "$ref" && key != "definitions" {
			continue
		}
		at := ptr + "/" + escape(key)
		if !c.trusted {
			for _, broken := range shaped(k.shape).violations(value) {
				c.broken = append(c.broken, Violation{at + broken.Pointer, broken.Reason})
			}
		}
		for path, child := range k.children(value) {
			if err := c.collect(child, at+path, in); err != nil {
				return err
			}
		}
	}
	return nil
}

// resource is the one that a schema begins, or else in, with the anchors that the schema adds.
func (c *compiler) resource(m map[string]any, ptr string, in *resource) (*resource, error) {
	draft := in.draft
	if named, ok := m["$schema"].(string); ok && (ptr == "" || m["$id"] != nil) {
		if draft = published(named); draft == 0 {
			return nil, outside(named)
		}
	}
	if ptr == "" {
		in.draft = draft
	}
	key := "$id"
	if draft == 4 {
		key = "id"
	}
	id, _ := m[key].(string)
	if _, refers := m["$ref"]; refers && draft < 2019 {
		return in, nil // what stands beside a reference is ignored
	}
	address, fragment, _ := strings.Cut(id, "#")
	if address != "" {
		u, err := url.Parse(address)
		if err != nil {
			return nil, fmt.Errorf("%s of the schema at %q: %w", key, ptr, err)
		}
		u = in.base.ResolveReference(u)
		if ptr != "" {
			in = &resource{ptr: ptr, draft: draft, anchors: map[string]string{}, dynamic: map[string]bool{}}
		}
		in.base = u
		if c.resources[u.String()] != nil && c.resources[u.String()] != in {
			return nil, fmt.Errorf("two schemas have the identifier %s", u)
		}
		c.resources[u.String()] = in
	}
	if recurs, _ := m["$recursiveAnchor"].(bool); recurs && ptr == in.ptr {
		in.recurs = true
	}
	anchors := []string{}
	if draft < 2019 {
		anchors = append(anchors, fragment)
	} else {
		for _, key := range []string{"$anchor", "$dynamicAnchor"} {
			name, _ := m[key].(string)
			anchors = append(anchors, name)
			if key == "$dynamicAnchor" && draft >= 2020 && name != "" {
				in.dynamic[name] = true
			}
		}
	}
	for _, name := range anchors {
		if at, ok := in.anchors[name]; ok && at != ptr && name != "" {
			return nil, fmt.Errorf("two schemas have the anchor %q", name)
		}
		if name != "" {
			in.anchors[name] = ptr
		}
	}
	return in, nil
}

// outside refuses what another document would have to say.
func outside(address string) error {
	return fmt.Errorf("failing loading %q: a schema may refer to its own parts alone, not to %s", address, address)
}

// published is the draft that the address of a meta-schema names, 0 for any other address.
func published(ref string) int { return drafts[strings.TrimSuffix(ref, "#")] }

// rules gives how a value breaks the rules for schemas of a draft, which is what a reference to its
// meta-schema asks for.
func rules(v any, draft int) []Violation {
	c := compiler{doc: v, formats: true, nodes: map[string]*node{}}
	// What else is wrong with it, such as a reference that leads nowhere, no meta-schema tells.
	_ = c.collect(v, "", c.begin(draft))
	return c.broken
}

// resolve gives the pointer that a reference from within a resource leads to, and its fragment.
func (c *compiler) resolve(ref string, from *resource) (ptr, fragment string, err error) {
	u, err := url.Parse(ref)
	if err != nil {
		return "", "", fmt.Errorf("reference %q: %w", ref, err)
	}
	u = from.base.ResolveReference(u)
	fragment = u.Fragment
	u.Fragment, u.RawFragment = "", ""
	in := c.resources[u.String()]
	if u.String() == from.base.String() {
		in = from
	}
	switch {
	case in == nil:
		return "", "", outside(u.String())
	case fragment == "" || strings.HasPrefix(fragment, "/"):
		return in.ptr + canonical(fragment), fragment, nil
	}
	at, ok := in.anchors[fragment]
	if !ok {
		return "", "", fmt.Errorf("no schema has the anchor of %q", ref)
	}
	return at, fragment, nil
}

// at is the value that a pointer leads to in the document.
func (c *compiler) at(ptr string) (any, error) {
	v := c.doc
	for i, step := range strings.Split(ptr, "/") {
		if i == 0 {
			continue
		}
		name, ok := unescape(step), false
		switch in := v.(type) {
		case map[string]any:
			v, ok = in[name]
		case []any:
			if n, err := strconv.Atoi(name); err == nil && n >= 0 && n < len(in) {
				v, ok = in[n], true
			}
		}
		if !ok {
			return nil, fmt.Errorf("there is no %q in the schema", ptr)
		}
	}
	return v, nil
}

// around is the innermost resource that a pointer lies in.
func (c *compiler) around(ptr string) *resource {
	for c.schemas[ptr].in == nil {
		ptr = ptr[:strings.LastIndexByte(ptr, '/')]
	}
	return c.schemas[ptr].in
}

var escaper = strings.NewReplacer("~", "~0", "/", "~1")

func escape(name string) string { return escaper.Replace(name) }

func unescape(step string) string {
	return strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
}

// canonical writes a pointer as collect writes them.
func canonical(ptr string) string {
	steps := strings.Split(ptr, "/")
	for i, step := range steps {
		steps[i] = escape(unescape(step))
	}
	return strings.Join(steps, "/")
}
