package task

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"wf/protocol"
)

// Bounds of shared values.
const (
	ShareNames    = 50    // names in one call
	ShareNameMax  = 64    // runes of a name
	ShareValueMax = 2_000 // bytes of one value as JSON
)

// shareField reads share: an object of small values.
func shareField(fields map[string]json.RawMessage) (protocol.JSON, error) {
	raw, ok := fields["share"]
	if !ok || bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		return nil, nil
	}
	var values map[string]json.RawMessage
	if json.Unmarshal(raw, &values) != nil {
		return nil, fmt.Errorf("the argument %q must be an object: name → value", "share")
	}
	if len(values) == 0 {
		return nil, nil
	}
	if len(values) > ShareNames {
		return nil, fmt.Errorf("%q has %d names, %d are the most", "share", len(values), ShareNames)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch n := utf8.RuneCountInString(name); {
		case n == 0:
			return nil, fmt.Errorf("a name in %q is empty", "share")
		case n > ShareNameMax:
			return nil, fmt.Errorf("the name %.80q in %q has %d characters, %d are the most", name, "share", n, ShareNameMax)
		case len(values[name]) > ShareValueMax:
			return nil, fmt.Errorf("the value of %q in %q has %d bytes, %d are the most: share a path or a short form", name, "share", len(values[name]), ShareValueMax)
		}
	}
	out, err := protocol.CanonicalizeJSON(raw)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", "share", err)
	}
	return out, nil
}

// Merge lays shared values over earlier ones; both are canonical objects or nil.
func Merge(earlier, later protocol.JSON) (protocol.JSON, error) {
	switch {
	case len(later) == 0:
		return earlier, nil
	case len(earlier) == 0:
		return later, nil
	}
	var all, more map[string]json.RawMessage
	if err := json.Unmarshal(earlier, &all); err != nil {
		return nil, fmt.Errorf("shared values: %w", err)
	}
	if err := json.Unmarshal(later, &more); err != nil {
		return nil, fmt.Errorf("shared values: %w", err)
	}
	maps.Copy(all, more)
	return protocol.CanonicalJSON(all)
}

// Left are the values that a task left shared, from the data of its record; null takes one back.
func Left(data protocol.JSON) (values map[string]json.RawMessage, err error) {
	if !bytes.Contains(data, []byte(`"shared"`)) {
		return nil, nil // most tasks share nothing
	}
	d, _ := Read(data)
	if len(d.Shared) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(d.Shared, &values); err != nil {
		return nil, fmt.Errorf("shared values: %w", err)
	}
	return values, nil
}

// Shared are the values that all tasks left, later ones over earlier ones: a canonical object, or
// nil for none. It alters all.
func Shared(all map[string]json.RawMessage) (protocol.JSON, error) {
	maps.DeleteFunc(all, func(_ string, v json.RawMessage) bool { return string(v) == "null" }) // taken back
	if len(all) == 0 {
		return nil, nil
	}
	return protocol.CanonicalJSON(all)
}
