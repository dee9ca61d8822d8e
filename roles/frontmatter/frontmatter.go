// Package frontmatter reads the output contract: Markdown that begins with YAML fields.
//
//	---
//	status: done          ◄── the fields of the role's schema
//	summary: fixed
//	---
//	What follows is the body.
//
// # What is tolerated
//
// A byte order mark and empty lines in front, CRLF, spaces after a fence. YAML is read as 1.2
// with the core schema: yes, no, on, off and dates are strings. Nothing else is guessed: text
// in front of the fence, a repeated key, a number beyond ±(2^53−1), .inf and .nan are
// violations.
//
// # Limits
//
// Fields of more than MaxFields bytes, or that grow beyond MaxNodes values through aliases,
// are violations; neither costs more time than reading them.
package frontmatter

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"

	"wf/protocol"
	"wf/roles/schema"
)

// Bounds of the fields.
const (
	MaxFields = 1 << 20  // bytes between the fences
	MaxFile   = 64 << 20 // bytes of a file that a user wrote
	MaxNodes  = 100_000  // values, aliases written out
)

// A Violation is one way in which a text breaks the contract; its pointer leads into the fields.
type Violation = schema.Violation

// Parse splits a text into its fields, as canonical JSON, and its body, and checks the fields
// against a JSON Schema. All violations are returned at once; then data is nil, and body still
// what follows the fence, if there is one. With schema "" any fields will do.
func Parse(text, schema string) (data protocol.JSON, body string, violations []Violation) {
	fields, body, err := Split(text)
	if err != nil {
		return nil, body, []Violation{{Reason: err.Error()}}
	}
	data, err = Fields(fields)
	if err != nil {
		return nil, body, []Violation{{Reason: err.Error()}}
	}
	if violations = Validate(data, schema); len(violations) > 0 {
		return nil, body, violations
	}
	return data, body, nil
}

// Split gives what stands between the fences and what follows. Without fences it is an error,
// and the body is the whole text.
func Split(text string) (fields, body string, err error) {
	rest := strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	whole := rest
	line, rest, more := strings.Cut(rest, "\n")
	for strings.TrimSpace(line) == "" && more {
		line, rest, more = strings.Cut(rest, "\n")
	}
	if !isFence(line) {
		return "", whole, fmt.Errorf("the answer must begin with a line ---, then the fields, then a line ---; it begins with %q", clip(line))
	}
	for at := 0; ; {
		line, _, more := strings.Cut(rest[at:], "\n")
		if isFence(line) {
			end := min(at+len(line)+1, len(rest))
			return rest[:at], strings.TrimLeft(rest[end:], "\n"), nil
		}
		if !more {
			return "", whole, fmt.Errorf("the fields do not end: a second line --- is missing")
		}
		at += len(line) + 1
	}
}

func isFence(line string) bool { return strings.TrimRight(line, " \t\r") == "---" }

func clip(s string) string {
	const most = 40
	if r := []rune(s[:min(len(s), 4*most)]); len(r) > most {
		return string(r[:most]) + "…"
	}
	return strings.ToValidUTF8(s, "�")
}

// Fields reads a YAML mapping as canonical JSON. No text at all is an empty object.
func Fields(text string) (protocol.JSON, error) { return fieldsWithin(text, MaxFields) }

// File is Fields for the text of a file, of up to MaxFile bytes.
func File(text string) (protocol.JSON, error) { return fieldsWithin(text, MaxFile) }

func fieldsWithin(text string, most int) (protocol.JSON, error) {
	if len(text) > most {
		return nil, fmt.Errorf("the fields take %d bytes; at most %d are read", len(text), most)
	}
	var doc yaml.Node
	if err := unmarshal([]byte(text), &doc); err != nil {
		return nil, fmt.Errorf("the fields are not YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if doc.Kind == 0 {
		return protocol.JSON("{}"), nil
	}
	v, err := new(reader).value(&doc, 0)
	if err != nil {
		return nil, err
	}
	if v == nil {
		return protocol.JSON("{}"), nil
	}
	if _, ok := v.(map[string]any); !ok {
		return nil, fmt.Errorf("the fields are not a mapping of names to values")
	}
	data, err := protocol.CanonicalJSON(v)
	if err != nil {
		_, why, _ := strings.Cut(err.Error(), ": ")
		return nil, fmt.Errorf("the fields: %s", why)
	}
	return data, nil
}

// unmarshal keeps a fault of the YAML reader from taking the program down: the text comes
// from a model.
func unmarshal(text []byte, doc *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return yaml.Unmarshal(text, doc)
}
