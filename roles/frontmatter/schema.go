package frontmatter

import (
	"fmt"
	"sync"

	"wf/protocol"
	"wf/roles/schema"
)

// Validate checks data against a JSON Schema and tells every violation, in the order of their
// pointers. Schema "" accepts anything. A schema that is none itself is a violation too: the
// linter has refused it long before.
func Validate(data protocol.JSON, text string) []Violation {
	if text == "" {
		return nil
	}
	s, err := compile(text)
	if err != nil {
		return []Violation{{Reason: fmt.Sprintf("the role's output schema is not valid: %v", err)}}
	}
	return s.Validate([]byte(data))
}

// compiled keeps the schemas of this process; a workflow has few.
var compiled sync.Map // string → *schema.Schema

func compile(text string) (*schema.Schema, error) {
	if s, ok := compiled.Load(text); ok {
		return s.(*schema.Schema), nil
	}
	s, err := schema.Compile(text, false)
	if err != nil {
		return nil, err
	}
	compiled.Store(text, s)
	return s, nil
}
