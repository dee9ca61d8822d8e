package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"wf/protocol/dagcbor"
)

// JSONMaxDepth is how deep canonical JSON may nest.
const JSONMaxDepth = 256

// CanonicalJSON is v as canonical JSON (RFC 8785): keys sorted, no spaces, the shortest form
// of every number. The numbers of our data lie within ±(2^53−1); beyond is an error.
func CanonicalJSON(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("canonical JSON of %T: %w", v, err)
	}
	return CanonicalizeJSON(buf.Bytes())
}

// CanonicalizeJSON rewrites one JSON value as canonical JSON (RFC 8785). Invalid UTF-8, lone
// surrogates, repeated keys and numbers beyond ±(2^53−1) are errors that give the byte offset:
// other readers would see another value.
func CanonicalizeJSON(raw []byte) ([]byte, error) {
	c := canonical{in: raw, out: make([]byte, 0, len(raw))}
	c.space()
	if err := c.value(0); err != nil {
		return nil, err
	}
	if c.space(); c.pos < len(c.in) {
		return nil, c.fail("more than one value")
	}
	return c.out, nil
}

type canonical struct {
	in  []byte
	pos int
	out []byte
}

func (c *canonical) fail(format string, args ...any) error {
	return fmt.Errorf("JSON, byte %d: %s", c.pos, fmt.Sprintf(format, args...))
}

func (c *canonical) space() {
	for c.pos < len(c.in) {
		switch c.in[c.pos] {
		case ' ', '\t', '\n', '\r':
			c.pos++
		default:
			return
		}
	}
}

// next is the byte at hand, 0 at the end.
func (c *canonical) next() byte {
	if c.pos < len(c.in) {
		return c.in[c.pos]
	}
	return 0
}

func (c *canonical) value(depth int) error {
	if depth > JSONMaxDepth {
		return c.fail("nested deeper than %d", JSONMaxDepth)
	}
	switch b := c.next(); {
	case b == '{':
		return c.object(depth)
	case b == '[':
		return c.array(depth)
	case b == '"':
		s, err := c.text()
		if err != nil {
			return err
		}
		c.out = dagcbor.AppendString(c.out, s)
		return nil
	case b == '-' || b >= '0' && b <= '9':
		return c.number()
	}
	for _, word := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(c.in[c.pos:], []byte(word)) {
			c.pos += len(word)
			c.out = append(c.out, word...)
			return nil
		}
	}
	if c.pos >= len(c.in) {
		return c.fail("ends where a value should be")
	}
	return c.fail("%q begins no value", c.in[c.pos])
}

func (c *canonical) array(depth int) error {
	c.pos++
	c.out = append(c.out, '[')
	c.space()
	if c.next() == ']' {
		c.pos++
		c.out = append(c.out, ']')
		return nil
	}
	for {
		if err := c.value(depth + 1); err != nil {
			return err
		}
		c.space()
		b := c.next()
		if b != ',' && b != ']' {
			return c.fail("want , or ] in an array")
		}
		c.pos++
		c.out = append(c.out, b)
		if b == ']' {
			return nil
		}
		c.space()
	}
}

// member is one key of an object and the bytes of its canonical form in the output.
type member struct {
	key      string
	from, to int
}

func (c *canonical) object(depth int) error {
	c.pos++
	c.out = append(c.out, '{')
	begin := len(c.out)
	c.space()
	if c.next() == '}' {
		c.pos++
		c.out = append(c.out, '}')
		return nil
	}
	var members []member
	sorted := true
	for {
		if c.next() != '"' {
			return c.fail("want a key in an object")
		}
		key, err := c.text()
		if err != nil {
			return err
		}
		c.space()
		if c.next() != ':' {
			return c.fail("want : after the key %q", key)
		}
		c.pos++
		c.space()
		if len(members) > 0 {
			c.out = append(c.out, ',')
		}
		from := len(c.out)
		c.out = append(dagcbor.AppendString(c.out, key), ':')
		if err := c.value(depth + 1); err != nil {
			return err
		}
		if n := len(members); n > 0 && compareKeys(members[n-1].key, key) >= 0 {
			sorted = false
		}
		members = append(members, member{key, from, len(c.out)})
		c.space()
		b := c.next()
		if b != ',' && b != '}' {
			return c.fail("want , or } in an object")
		}
		c.pos++
		if b == '}' {
			break
		}
		c.space()
	}
	if !sorted {
		if err := c.sort(begin, members); err != nil {
			return err
		}
	}
	c.out = append(c.out, '}')
	return nil
}

// sort puts the members of an object, written from begin on, in order.
func (c *canonical) sort(begin int, members []member) error {
	slices.SortStableFunc(members, func(a, b member) int { return compareKeys(a.key, b.key) })
	written := slices.Clone(c.out[begin:])
	c.out = c.out[:begin]
	for i, m := range members {
		if i > 0 {
			if members[i-1].key == m.key {
				return c.fail("the key %q appears twice in the object that ends here", m.key)
			}
			c.out = append(c.out, ',')
		}
		c.out = append(c.out, written[m.from-begin:m.to-begin]...)
	}
	return nil
}

// compareKeys orders keys by their UTF-16 code units (RFC 8785, section 3.2.3). That differs
// from the order of bytes only above the basic plane.
func compareKeys(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			continue
		}
		if a[i] < 0xee || b[i] < 0xee {
			break
		}
		return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
	}
	return strings.Compare(a, b)
}

// text reads a string and resolves its escapes.
func (c *canonical) text() (string, error) {
	c.pos++
	start := c.pos
	for b := c.next(); b >= 0x20 && b != '"' && b != '\\'; b = c.next() {
		c.pos++
	}
	s := c.in[start:c.pos:c.pos] // most strings have no escapes; what follows one is added to a copy
	for c.pos < len(c.in) {
		b := c.in[c.pos]
		switch {
		case b == '"':
			if !utf8.Valid(s) {
				return "", c.fail("a string is not UTF-8")
			}
			c.pos++
			return string(s), nil
		case b < 0x20:
			return "", c.fail("control character %#x in a string", b)
		case b != '\\':
			s = append(s, b)
			c.pos++
		default:
			r, err := c.escape()
			if err != nil {
				return "", err
			}
			s = utf8.AppendRune(s, r)
		}
	}
	return "", c.fail("a string does not end")
}

func (c *canonical) escape() (rune, error) {
	if c.pos+1 >= len(c.in) {
		return 0, c.fail("a string does not end")
	}
	kind := c.in[c.pos+1]
	if kind != 'u' {
		i := bytes.IndexByte([]byte(`"\/bfnrt`), kind)
		if i < 0 {
			return 0, c.fail("unknown escape \\%c", kind)
		}
		c.pos += 2
		return rune("\"\\/\b\f\n\r\t"[i]), nil
	}
	r, ok := c.hex(c.pos)
	if !ok {
		return 0, c.fail("\\u wants four hexadecimal digits")
	}
	if !utf16.IsSurrogate(r) {
		c.pos += 6
		return r, nil
	}
	low, ok := c.hex(c.pos + 6)
	pair := utf16.DecodeRune(r, low)
	if !ok || pair == utf8.RuneError {
		return 0, c.fail("a lone surrogate is no character")
	}
	c.pos += 12
	return pair, nil
}

// hex reads an escape, \u and four hexadecimal digits, at a position.
func (c *canonical) hex(at int) (rune, bool) {
	if at+6 > len(c.in) || c.in[at] != '\\' || c.in[at+1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(c.in[at+2:at+6]), 16, 16)
	return rune(n), err == nil
}

func (c *canonical) number() error {
	start := c.pos
	digits := func() int {
		from := c.pos
		for b := c.next(); b >= '0' && b <= '9'; b = c.next() {
			c.pos++
		}
		return c.pos - from
	}
	if c.next() == '-' {
		c.pos++
	}
	zero := c.next() == '0'
	if n := digits(); n == 0 || zero && n > 1 {
		return c.fail("malformed number")
	}
	if c.next() == '.' {
		c.pos++
		if digits() == 0 {
			return c.fail("malformed number")
		}
	}
	if b := c.next(); b == 'e' || b == 'E' {
		c.pos++
		if s := c.next(); s == '+' || s == '-' {
			c.pos++
		}
		if digits() == 0 {
			return c.fail("malformed number")
		}
	}
	literal := string(c.in[start:c.pos])
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil || math.Abs(f) > MaxSafeInt {
		c.pos = start
		return c.fail("the number %s lies beyond ±(2^53−1); write it as a string", literal)
	}
	c.out = appendNumber(c.out, f)
	return nil
}

// appendNumber writes f as ECMAScript does (RFC 8785, section 3.2.2.3); |f| < 2^53.
func appendNumber(out []byte, f float64) []byte {
	if f == 0 {
		return append(out, '0') // also for −0
	}
	if abs := math.Abs(f); abs >= 1e-6 {
		return strconv.AppendFloat(out, f, 'f', -1, 64)
	}
	out = strconv.AppendFloat(out, f, 'e', -1, 64)
	if n := len(out); out[n-2] == '0' && out[n-3] == '-' { // 1e-07 is written 1e-7
		out[n-2] = out[n-1]
		out = out[:n-1]
	}
	return out
}
