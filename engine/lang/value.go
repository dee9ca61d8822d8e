package lang

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"wf/protocol"
)

// jsonValue brings what an expression yields to JSON values: nil, bool, int, float64, string,
// []any, map[string]any. What JSON cannot hold is an error.
func jsonValue(v any) (any, error) {
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
	case []any:
		return jsonList(v)
	case map[string]any:
		return jsonObject(v)
	}
	return jsonReflect(reflect.ValueOf(v))
}

func jsonList(list []any) (any, error) {
	for _, e := range list {
		got, err := jsonValue(e)
		if err != nil {
			return nil, err
		}
		if !sameScalar(got, e) {
			return jsonReflect(reflect.ValueOf(list))
		}
	}
	return list, nil
}

func jsonObject(m map[string]any) (any, error) {
	out := make(map[string]any, len(m))
	for k, e := range m {
		got, err := jsonValue(e)
		if err != nil {
			return nil, err
		}
		out[k] = got
	}
	return out, nil
}

// sameScalar reports whether a value passed jsonValue unchanged; collections count as
// changed, since their inside may be.
func sameScalar(a, b any) bool {
	switch a.(type) {
	case nil, bool, string, int, float64:
		return reflect.TypeOf(a) == reflect.TypeOf(b)
	}
	return false
}

// jsonReflect handles the other Go types that functions of expr return.
func jsonReflect(r reflect.Value) (any, error) {
	switch r.Kind() {
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return int(r.Int()), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if r.Uint() > protocol.MaxSafeInt {
			return nil, fmt.Errorf("%d is beyond 2^53−1", r.Uint())
		}
		return int(r.Uint()), nil
	case reflect.Float32:
		return jsonValue(r.Float())
	case reflect.Slice, reflect.Array:
		out := make([]any, r.Len())
		for i := range out {
			v, err := jsonValue(r.Index(i).Interface())
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
			v, err := jsonValue(r.MapIndex(k).Interface())
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

// valueCode is a value with templates in it: a template, or JSON whose strings may be ones.
type valueCode struct {
	tmpl  *template
	list  []*valueCode
	keys  []string // of object, sorted
	vals  []*valueCode
	plain any // where there is no template inside
	kind  valueKind
}

type valueKind int

const (
	isPlain valueKind = iota
	isTemplate
	isList
	isObject
)

func (c *valueCode) eval(e *env) (any, error) {
	switch c.kind {
	case isTemplate:
		return c.tmpl.value(e)
	case isList:
		out := make([]any, len(c.list))
		for i, x := range c.list {
			v, err := x.eval(e)
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
		return out, nil
	case isObject:
		out := make(map[string]any, len(c.keys))
		for i, k := range c.keys {
			v, err := c.vals[i].eval(e)
			if err != nil {
				return nil, err
			}
			out[k] = v
		}
		return out, nil
	}
	return c.plain, nil
}

// sources are the expressions in c.
func (c *valueCode) sources() []string {
	out := c.tmpl.sources()
	for _, x := range append(slices.Clone(c.list), c.vals...) {
		out = append(out, x.sources()...)
	}
	return out
}
