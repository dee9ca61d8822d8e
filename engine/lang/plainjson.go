package lang

import (
	"unicode/utf8"

	"wf/protocol"
)

// plainJSON reads JSON without escapes in its texts and with short integers as its only numbers,
// which nearly all values of a run are: each is read several times. ok is false for any other, and
// for what is no JSON; DecodeJSON then reads it, or says what is wrong.
func plainJSON(b []byte) (v any, ok bool) {
	r := plainReader{b: b}
	v = r.value(0)
	r.space()
	return v, !r.other && len(r.b) == 0
}

type plainReader struct {
	b     []byte
	other bool // it is not plain; b is then empty
}

func (r *plainReader) fail() any {
	r.b, r.other = nil, true
	return nil
}

func (r *plainReader) space() {
	for len(r.b) > 0 && (r.b[0] == ' ' || r.b[0] == '\n' || r.b[0] == '\t' || r.b[0] == '\r') {
		r.b = r.b[1:]
	}
}

// take steps over c, behind spaces, if it comes next.
func (r *plainReader) take(c byte) bool {
	if r.space(); len(r.b) > 0 && r.b[0] == c {
		r.b = r.b[1:]
		return true
	}
	return false
}

func (r *plainReader) value(depth int) any {
	if r.space(); len(r.b) == 0 || depth > protocol.JSONMaxDepth {
		return r.fail()
	}
	switch r.b[0] {
	case '{':
		return r.object(depth + 1)
	case '[':
		return r.list(depth + 1)
	case '"':
		return r.text()
	case 't':
		return r.word("true", true)
	case 'f':
		return r.word("false", false)
	case 'n':
		return r.word("null", nil)
	}
	return r.integer()
}

func (r *plainReader) word(s string, v any) any {
	if len(r.b) < len(s) || string(r.b[:len(s)]) != s {
		return r.fail()
	}
	r.b = r.b[len(s):]
	return v
}

func (r *plainReader) object(depth int) any {
	r.b = r.b[1:]
	m := map[string]any{}
	if r.take('}') {
		return m
	}
	for !r.other {
		if r.space(); len(r.b) == 0 || r.b[0] != '"' {
			return r.fail()
		}
		key, _ := r.text().(string)
		if !r.take(':') {
			return r.fail()
		}
		m[key] = r.value(depth)
		switch {
		case r.take('}'):
			return m
		case !r.take(','):
			return r.fail()
		}
	}
	return nil
}

func (r *plainReader) list(depth int) any {
	r.b = r.b[1:]
	l := []any{}
	if r.take(']') {
		return l
	}
	for !r.other {
		l = append(l, r.value(depth))
		switch {
		case r.take(']'):
			return l
		case !r.take(','):
			return r.fail()
		}
	}
	return nil
}

func (r *plainReader) text() any {
	for i, c := range r.b[1:] {
		switch {
		case c == '"':
			s := r.b[1 : i+1]
			if !utf8.Valid(s) {
				return r.fail()
			}
			r.b = r.b[i+2:]
			return string(s)
		case c < ' ' || c == '\\':
			return r.fail()
		}
	}
	return r.fail()
}

// integer reads one of at most 15 digits: it lies within ±(2^53−1).
func (r *plainReader) integer() any {
	digits := r.b
	negative := digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	n, i := 0, 0
	for i < len(digits) && digits[i] >= '0' && digits[i] <= '9' {
		n = n*10 + int(digits[i]-'0')
		if i++; i > 15 {
			return r.fail()
		}
	}
	if i == 0 || i > 1 && digits[0] == '0' || i < len(digits) && (digits[i] == '.' || digits[i] == 'e' || digits[i] == 'E') {
		return r.fail()
	}
	r.b = digits[i:]
	if negative {
		n = -n
	}
	return n
}
