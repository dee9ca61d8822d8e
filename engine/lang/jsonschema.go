package lang

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"wf/protocol"
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

// noFetch refuses references to other documents: a definition stands alone.
type noFetch struct{}

// Load is called by the schema compiler for every $ref to another document.
func (noFetch) Load(url string) (any, error) {
	return nil, fmt.Errorf("a schema may refer to its own parts alone, not to %s", url)
}

// compileSchema compiles canonical JSON; "" is no schema. Formats are asserted.
func compileSchema(s string) (*jsonschema.Schema, error) {
	if s == "" {
		return nil, nil
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(s))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noFetch{})
	c.AssertFormat()
	const self = "wf:///schema.json"
	if err := c.AddResource(self, doc); err != nil {
		return nil, err
	}
	return c.Compile(self)
}

// violations lists every leaf of a validation error, in order of place.
func violations(err error) []Violation {
	var ve *jsonschema.ValidationError
	if !errors.As(err, &ve) {
		return []Violation{{Reason: err.Error()}}
	}
	p := message.NewPrinter(language.English)
	var out []Violation
	var walk func(*jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if len(e.Causes) == 0 {
			v := Violation{pointer(e.InstanceLocation), e.ErrorKind.LocalizedString(p)}
			if !slices.Contains(out, v) {
				out = append(out, v)
			}
			return
		}
		for _, c := range e.Causes {
			walk(c)
		}
	}
	walk(ve)
	slices.SortFunc(out, func(a, b Violation) int {
		return strings.Compare(a.Pointer+"\x00"+a.Reason, b.Pointer+"\x00"+b.Reason)
	})
	return out
}

func pointer(loc []string) string {
	var b strings.Builder
	for _, s := range loc {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(s))
	}
	return b.String()
}

// validate checks JSON bytes against a schema; nil means that they fit.
func validate(s *jsonschema.Schema, data []byte) []Violation {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return []Violation{{Reason: "not JSON: " + err.Error()}}
	}
	if err := s.Validate(v); err != nil {
		return violations(err)
	}
	return nil
}

// ValidateOutput checks the declared fields of a role's output: every violation at once, in
// order of place. A role without `output` accepts everything.
func (p *Program) ValidateOutput(role string, data json.RawMessage) []Violation {
	c := p.roles[role]
	if c == nil || c.output == nil {
		return nil
	}
	return validateStored(c.output, data)
}

// ValidateForm checks the fields that a person filled in, as ValidateOutput does.
func (p *Program) ValidateForm(role string, data json.RawMessage) []Violation {
	c := p.roles[role]
	if c == nil || c.form == nil {
		return nil
	}
	return validateStored(c.form, data)
}

// validateStored also refuses what canonical JSON cannot hold: other readers would see
// another value.
func validateStored(s *jsonschema.Schema, data []byte) []Violation {
	if _, err := protocol.CanonicalizeJSON(data); err != nil {
		return []Violation{{Reason: err.Error()}}
	}
	return validate(s, data)
}

// decodeJSON reads one value with integers as int.
func decodeJSON(b []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("not JSON: more than one value")
	}
	return numbers(v), nil
}

// numbers replaces json.Number by int where the number is one, else by float64.
func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return int(i)
		}
		f, err := v.Float64()
		if err != nil {
			return v.String()
		}
		if f == float64(int64(f)) && f <= protocol.MaxSafeInt && f >= -protocol.MaxSafeInt {
			return int(f)
		}
		return f
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	}
	return v
}
