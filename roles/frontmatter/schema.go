package frontmatter

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"wf/protocol"
)

// Validate checks data against a JSON Schema and tells every violation, in the order of their
// pointers. Schema "" accepts anything. A schema that is none itself is a violation too: the
// linter has refused it long before.
func Validate(data protocol.JSON, schema string) []Violation {
	if schema == "" {
		return nil
	}
	compiled, err := compile(schema)
	if err != nil {
		return []Violation{{Reason: fmt.Sprintf("the role's output schema is not valid: %v", err)}}
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
	if err != nil {
		return []Violation{{Reason: fmt.Sprintf("not JSON: %v", err)}}
	}
	err = compiled.Validate(value)
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return []Violation{{Reason: err.Error()}}
	}
	found := leaves(nil, invalid)
	slices.SortStableFunc(found, func(a, b Violation) int {
		if n := strings.Compare(a.Pointer, b.Pointer); n != 0 {
			return n
		}
		return strings.Compare(a.Reason, b.Reason)
	})
	return slices.Compact(found)
}

// english is the printer of reasons: never the machine's locale.
var english = message.NewPrinter(language.English)

func leaves(out []Violation, e *jsonschema.ValidationError) []Violation {
	if len(e.Causes) == 0 {
		return append(out, Violation{pointer(e.InstanceLocation), e.ErrorKind.LocalizedString(english)})
	}
	for _, cause := range e.Causes {
		out = leaves(out, cause)
	}
	return out
}

func pointer(path []string) string {
	var b strings.Builder
	for _, p := range path {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(p))
	}
	return b.String()
}

// compiled keeps the schemas of this process; a workflow has few.
var compiled sync.Map // string → *jsonschema.Schema

func compile(schema string) (*jsonschema.Schema, error) {
	if s, ok := compiled.Load(schema); ok {
		return s.(*jsonschema.Schema), nil
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		return nil, err
	}
	const name = "output.json"
	c := jsonschema.NewCompiler()
	c.UseLoader(sealed{})
	if err := c.AddResource(name, doc); err != nil {
		return nil, err
	}
	s, err := c.Compile(name)
	if err != nil {
		return nil, err
	}
	compiled.Store(schema, s)
	return s, nil
}

// sealed refuses to load what a $ref names: neither files nor the network are part of a
// definition.
type sealed struct{}

func (sealed) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s: only references within the schema are followed", url)
}
