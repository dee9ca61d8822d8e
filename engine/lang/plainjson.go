package lang

import (
	"errors"
	"strconv"

	"wf/protocol"
	"wf/protocol/dagcbor"
)

// plainJSON reads JSON with short integers as its only numbers, which nearly all values of a run are:
// each is read several times. ok is false for any other, and for what is no JSON; DecodeJSON then reads
// it, or says what is wrong.
func plainJSON(b []byte) (v any, ok bool) {
	r := plainReader{dagcbor.JSON{B: b}}
	r.Space()
	v, err := r.value(0)
	return v, err == nil && r.End() == nil
}

type plainReader struct{ dagcbor.JSON }

var errNotPlain = errors.New("not plain")

func (r *plainReader) value(depth int) (any, error) {
	if depth > protocol.JSONMaxDepth {
		return nil, errNotPlain
	}
	switch b := r.Next(); {
	case b == '{':
		return r.object(depth + 1)
	case b == '[':
		return r.list(depth + 1)
	case b == '"':
		return r.Text()
	case b == '-' || b >= '0' && b <= '9':
		s, err := r.Number()
		if err != nil || len(s) > 15 { // else it lies within ±(2^53−1)
			return nil, errNotPlain
		}
		return strconv.Atoi(s)
	}
	switch word, err := r.Word(); word {
	case "true", "false":
		return word == "true", nil
	default:
		return nil, err
	}
}

func (r *plainReader) object(depth int) (any, error) {
	r.At++
	m := map[string]any{}
	for n := 0; ; n++ {
		more, err := r.More(n, '}')
		if err != nil || !more {
			return m, err
		}
		key, err := r.Key()
		if err == nil {
			m[key], err = r.value(depth)
		}
		if err != nil {
			return nil, err
		}
	}
}

func (r *plainReader) list(depth int) (any, error) {
	r.At++
	l := []any{}
	for {
		more, err := r.More(len(l), ']')
		if err != nil || !more {
			return l, err
		}
		v, err := r.value(depth)
		if err != nil {
			return nil, err
		}
		l = append(l, v)
	}
}
