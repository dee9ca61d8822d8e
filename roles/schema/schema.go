// Package schema checks JSON against JSON Schema.
//
// The drafts 4 to 2020-12 are read, the newest where a schema names none. Every violation is
// found, not the first alone, each with the place in the value that it is about.
//
//	schema ──Compile──► nodes, one for each subschema ──Validate──► violations, by place
//
// # Words
//
// A keyword has a shape: what its value must look like (keywords.go). A node is a subschema made
// into checks (build.go). A resource is a part of a schema with an identifier of its own, inside
// of which references are resolved (refs.go).
//
// # Not here
//
// A schema stands alone: references to other documents, but for the meta-schemas of the drafts, and
// meta-schemas of one's own are refused.
// Patterns are those of package regexp. What contentEncoding and contentMediaType say is not checked.
//
// No work is done when a program starts: it is started anew for each command of an agent.
package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Violation is one way in which a value breaks a schema.
type Violation struct {
	Pointer string `json:"pointer"` // JSON pointer into the value; "" is the whole
	Reason  string `json:"reason"`
}

func (v Violation) String() string {
	if v.Pointer == "" {
		return v.Reason
	}
	return v.Pointer + ": " + v.Reason
}

// Invalid is the error of a schema that is none: its violations of the rules for schemas, the
// pointers leading into it.
type Invalid struct{ Violations []Violation }

func (e *Invalid) Error() string {
	lines := make([]string, len(e.Violations))
	for i, v := range e.Violations {
		lines[i] = v.String()
	}
	return strings.Join(lines, "; ")
}

// Schema is a compiled schema. It may be used by many goroutines at once.
type Schema struct{ root *node }

// Compile reads a schema. formats says that the keyword format is checked, which the drafts from
// 2019-09 on otherwise take for a remark. The error is an *Invalid where the schema breaks a rule
// for schemas.
func Compile(text string, formats bool) (*Schema, error) {
	doc, err := decode([]byte(text))
	if err != nil {
		return nil, err
	}
	c := compiler{doc: doc, formats: formats, nodes: map[string]*node{}}
	root, err := c.compile()
	if err != nil {
		return nil, err
	}
	return &Schema{root}, nil
}

// Validate gives the violations of JSON text, in the order of their pointers and then of their
// reasons, each once; nil means that it fits. A value that has more than a thousand, or takes more than ten million looks, has one
// which says that.
func (s *Schema) Validate(data []byte) []Violation {
	v, err := decode(data)
	if err != nil {
		return []Violation{{Reason: fmt.Sprintf("not JSON: %v", err)}}
	}
	return s.root.violations(v)
}

func (n *node) violations(v any) (found []Violation) {
	defer ended(&found)
	found, _ = n.eval(v, nil, nil)
	slices.SortFunc(found, func(a, b Violation) int {
		return cmp.Or(strings.Compare(a.Pointer, b.Pointer), strings.Compare(a.Reason, b.Reason))
	})
	return bounded(slices.Compact(found))
}

// decode reads one JSON value, with numbers as they are written.
func decode(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("invalid character after top-level value")
	}
	return v, nil
}
