package lang

import (
	"fmt"
	"math"
	"reflect"
	"time"

	"wf/protocol"
)

// json brings what an expression yields to JSON values: nil, bool, int, float64, string, []any,
// map[string]any. What JSON cannot hold is an error. A value that holds the same part many times
// over is charged for each.
func (b *budget) json(v any) (any, error) {
	switch v := v.(type) {
	case nil, bool, string, int:
		return v, nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("the result is %v, which is no JSON number", v)
		}
		return v, nil
	case time.Duration, time.Time:
		return nil, fmt.Errorf("the result is a %T; only JSON values leave an expression", v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			got, err := b.part(e)
			if err != nil {
				return nil, err
			}
			out[k] = got
		}
		return out, nil
	}
	return b.jsonReflect(reflect.ValueOf(v))
}

// part is json of an element.
func (b *budget) part(v any) (any, error) {
	size := elementSize
	if s, ok := v.(string); ok {
		size += len(s)
	}
	if err := b.take(1, size); err != nil {
		return nil, err
	}
	return b.json(v)
}

// jsonReflect handles lists, and the other Go types that functions of expr return.
func (b *budget) jsonReflect(r reflect.Value) (any, error) {
	switch r.Kind() {
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return int(r.Int()), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if r.Uint() > protocol.MaxSafeInt {
			return nil, fmt.Errorf("%d is beyond 2^53−1", r.Uint())
		}
		return int(r.Uint()), nil
	case reflect.Float32:
		return b.json(r.Float())
	case reflect.Slice, reflect.Array:
		out := make([]any, r.Len())
		for i := range out {
			v, err := b.part(r.Index(i).Interface())
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
		return out, nil
	case reflect.Map:
		out := make(map[string]any, r.Len())
		for _, k := range r.MapKeys() {
			for k.Kind() == reflect.Interface {
				k = k.Elem()
			}
			if k.Kind() != reflect.String {
				return nil, fmt.Errorf("an object has text as keys, not %s", k.Kind())
			}
			v, err := b.part(r.MapIndex(k).Interface())
			if err != nil {
				return nil, err
			}
			out[k.String()] = v
		}
		return out, nil
	case reflect.String:
		return r.String(), nil
	case reflect.Bool:
		return r.Bool(), nil
	case reflect.Pointer, reflect.Interface:
		if r.IsNil() {
			return nil, nil
		}
	}
	return nil, fmt.Errorf("the result is a %s; only JSON values leave an expression", r.Type())
}

// textOf is a value inside text: null is nothing, a string itself, the rest canonical JSON.
func textOf(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	}
	b, err := protocol.CanonicalJSON(v)
	return string(b), err
}

// valueOf puts the values of templates in their places, in what compileAny gave.
func valueOf(v any, e *env) (any, error) {
	var err error
	switch v := v.(type) {
	case *template:
		return v.value(e)
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			if out[i], err = valueOf(x, e); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, k := range sortedKeys(v) {
			if out[k], err = valueOf(v[k], e); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

// renderedText is valueOf for a text: a template is rendered, and not its value taken.
func renderedText(v any, e *env) (string, error) {
	if t, ok := v.(*template); ok {
		return t.text(e)
	}
	s, _ := v.(string)
	return s, nil
}

// refsOf are what expressions, templates and the values of compileAny refer to.
func refsOf(list ...any) []string {
	var out []string
	for _, v := range list {
		switch v := v.(type) {
		case *code:
			if v != nil {
				out = append(out, v.refs...)
			}
		case *template:
			if v != nil {
				for _, p := range v.parts {
					out = append(out, refsOf(p.code)...)
				}
			}
		case []any:
			out = append(out, refsOf(v...)...)
		case map[string]any:
			for _, e := range v {
				out = append(out, refsOf(e)...)
			}
		}
	}
	return out
}
