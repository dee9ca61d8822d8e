package roles

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"wf/protocol"
	"wf/roles/frontmatter"
)

// decodeObject reads one JSON object that can be written as canonical JSON; its numbers keep
// their digits.
func decodeObject(s string) (map[string]any, error) {
	canonical, err := protocol.CanonicalizeJSON([]byte(s))
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(canonical))
	d.UseNumber()
	var out map[string]any
	var other *json.UnmarshalTypeError
	if err := d.Decode(&out); errors.As(err, &other) {
		return nil, fmt.Errorf("want an object, have %s", other.Value)
	} else if err != nil {
		return nil, err
	}
	if out == nil {
		return nil, errors.New("want an object, have null")
	}
	return out, nil
}

// exitData is {exit_code} beside the declared fields.
func exitData(fields map[string]any, code int) protocol.JSON {
	data := map[string]any{}
	maps.Copy(data, fields)
	data["exit_code"] = code
	return object(data)
}

// declaredFields reads the answer of a command, as that of an agent is read: frontmatter, or
// a JSON object that stands alone. A violation is a Failure of phase output_validation.
func declaredFields(schema, text string) (map[string]any, error) {
	var data protocol.JSON
	var wrong []frontmatter.Violation
	if answer := strings.TrimSpace(strings.TrimPrefix(text, "\ufeff")); strings.HasPrefix(answer, "{") {
		var err error
		if data, err = protocol.CanonicalizeJSON([]byte(answer)); err != nil {
			return nil, invalidOutput("stdout: " + err.Error())
		}
		wrong = frontmatter.Validate(data, schema)
	} else {
		data, _, wrong = frontmatter.Parse(text, schema)
	}
	if len(wrong) > 0 {
		return nil, invalidOutput(violations(wrong))
	}
	return decodeObject(string(data))
}

// violations says in one line what is wrong.
func violations(wrong []frontmatter.Violation) string {
	parts := make([]string, len(wrong))
	for i, v := range wrong {
		parts[i] = v.String()
	}
	return strings.Join(parts, "; ")
}

// invalidOutput is the failure of a visit with an output that does not fit its schema.
func invalidOutput(why string) *protocol.Failure {
	return failure("output_validation", "invalid_output", "invalid_output", "%s", why)
}
