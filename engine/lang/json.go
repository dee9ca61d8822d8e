package lang

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"wf/protocol"
	"wf/roles/schema"
)

// checkSchema reports what keeps canonical JSON from being a schema; "" is none.
func checkSchema(s string) error {
	if s == "" {
		return nil
	}
	_, err := schema.Compile(s, true)
	return err
}

// DecodeJSON reads one JSON value as expressions see it: integers as int, other numbers as
// float64.
func DecodeJSON(b []byte) (any, error) {
	if v, ok := plainJSON(b); ok {
		return v, nil
	}
	return generalJSON(b)
}

func generalJSON(b []byte) (any, error) {
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
