package dagcbor

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON reads one JSON value by its parts, and lets nothing pass that other readers take for another value:
// invalid UTF-8, lone surrogates. Each error is a *Fault.
type JSON struct {
	B  []byte
	At int // where the next part begins
}

// Fail is the error that what is at hand breaks a rule.
func (r *JSON) Fail(format string, args ...any) error {
	return &Fault{r.At, Rule(fmt.Sprintf(format, args...))}
}

// Space steps over white space.
func (r *JSON) Space() {
	for r.At < len(r.B) && (r.B[r.At] == ' ' || r.B[r.At] == '\t' || r.B[r.At] == '\n' || r.B[r.At] == '\r') {
		r.At++
	}
}

// Next is the byte at hand, 0 at the end.
func (r *JSON) Next() byte {
	if r.At < len(r.B) {
		return r.B[r.At]
	}
	return 0
}

// End is an error unless nothing but white space is left.
func (r *JSON) End() error {
	if r.Space(); r.At < len(r.B) {
		return r.Fail("more than one value")
	}
	return nil
}

// More steps to entry n of a list or object that was opened, or over its end, ] or }.
func (r *JSON) More(n int, end byte) (bool, error) {
	r.Space()
	switch b := r.Next(); {
	case b == end:
		r.At++
		return false, nil
	case n > 0 && b != ',':
		return false, r.Fail("want , or %c in %s", end, map[byte]string{']': "an array", '}': "an object"}[end])
	case n > 0:
		r.At++
		r.Space()
	}
	return true, nil
}

// Key reads the key of an entry, and steps to its value.
func (r *JSON) Key() (string, error) {
	if r.Next() != '"' {
		return "", r.Fail("want a key in an object")
	}
	key, err := r.Text()
	if err != nil {
		return "", err
	}
	if r.Space(); r.Next() != ':' {
		return "", r.Fail("want : after the key %q", key)
	}
	r.At++
	r.Space()
	return key, nil
}

// Word reads true, false or null; anything else begins no value.
func (r *JSON) Word() (string, error) {
	for _, word := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(r.B[r.At:], []byte(word)) {
			r.At += len(word)
			return word, nil
		}
	}
	if r.At >= len(r.B) {
		return "", r.Fail("ends where a value should be")
	}
	return "", r.Fail("%q begins no value", r.B[r.At])
}

// Text reads a string and resolves its escapes.
func (r *JSON) Text() (string, error) {
	r.At++
	start := r.At
	for b := r.Next(); b >= 0x20 && b != '"' && b != '\\'; b = r.Next() {
		r.At++
	}
	s := r.B[start:r.At:r.At] // most strings have no escapes; what follows one is added to a copy
	for r.At < len(r.B) {
		b := r.B[r.At]
		switch {
		case b == '"':
			if !utf8.Valid(s) {
				return "", r.Fail("a string is not UTF-8")
			}
			r.At++
			return string(s), nil
		case b < 0x20:
			return "", r.Fail("control character %#x in a string", b)
		case b != '\\':
			s = append(s, b)
			r.At++
		default:
			c, err := r.escape()
			if err != nil {
				return "", err
			}
			s = utf8.AppendRune(s, c)
		}
	}
	return "", r.Fail("a string does not end")
}

func (r *JSON) escape() (rune, error) {
	if r.At+1 >= len(r.B) {
		return 0, r.Fail("a string does not end")
	}
	kind := r.B[r.At+1]
	if kind != 'u' {
		i := bytes.IndexByte([]byte(`"\/bfnrt`), kind)
		if i < 0 {
			return 0, r.Fail("unknown escape \\%c", kind)
		}
		r.At += 2
		return rune("\"\\/\b\f\n\r\t"[i]), nil
	}
	c, ok := r.hex(r.At)
	if !ok {
		return 0, r.Fail("\\u wants four hexadecimal digits")
	}
	if !utf16.IsSurrogate(c) {
		r.At += 6
		return c, nil
	}
	low, ok := r.hex(r.At + 6)
	pair := utf16.DecodeRune(c, low)
	if !ok || pair == utf8.RuneError {
		return 0, r.Fail("a lone surrogate is no character")
	}
	r.At += 12
	return pair, nil
}

// hex reads an escape, \u and four hexadecimal digits, at a position.
func (r *JSON) hex(at int) (rune, bool) {
	if at+6 > len(r.B) || r.B[at] != '\\' || r.B[at+1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(r.B[at+2:at+6]), 16, 16)
	return rune(n), err == nil
}

// Number reads a number as it is written.
func (r *JSON) Number() (string, error) {
	start := r.At
	digits := func() int {
		from := r.At
		for b := r.Next(); b >= '0' && b <= '9'; b = r.Next() {
			r.At++
		}
		return r.At - from
	}
	if r.Next() == '-' {
		r.At++
	}
	zero := r.Next() == '0'
	n := digits()
	whole := n == 1 || n > 1 && !zero
	if whole && r.Next() == '.' {
		r.At++
		whole = digits() > 0
	}
	if b := r.Next(); whole && (b == 'e' || b == 'E') {
		r.At++
		if s := r.Next(); s == '+' || s == '-' {
			r.At++
		}
		whole = digits() > 0
	}
	if !whole {
		return "", r.Fail("malformed number")
	}
	return string(r.B[start:r.At]), nil
}
