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

	"wf/protocol/dagcbor"
)

// JSONMaxDepth is how deep canonical JSON may nest.
const JSONMaxDepth = 256

// CanonicalJSON is v as canonical JSON (RFC 8785): keys sorted, no spaces, the shortest form
// of every number. The numbers of our data lie within ±(2^53−1); beyond is an error.
func CanonicalJSON(v any) ([]byte, error) {
	b, err := PlainJSON(v)
	if err != nil {
		return nil, fmt.Errorf("canonical JSON of %T: %w", v, err)
	}
	return CanonicalizeJSON(b)
}

// PlainJSON is v as JSON that has each character as itself: json.Marshal writes <, > and & in six bytes each, so that a text
// within the bounds of a request is one beyond them when it was sent on.
func PlainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// CanonicalizeJSON rewrites one JSON value as canonical JSON (RFC 8785). Invalid UTF-8, lone
// surrogates, repeated keys and numbers beyond ±(2^53−1) are errors that give the byte offset:
// other readers would see another value.
func CanonicalizeJSON(raw []byte) ([]byte, error) {
	c := canonical{JSON: dagcbor.JSON{B: raw}, out: make([]byte, 0, len(raw))}
	c.Space()
	err := c.value(0)
	if err == nil {
		err = c.End()
	}
	if err != nil {
		return nil, fmt.Errorf("JSON, %w", err)
	}
	return c.out, nil
}

type canonical struct {
	dagcbor.JSON
	out []byte
}

func (c *canonical) value(depth int) error {
	if depth > JSONMaxDepth {
		return c.Fail("nested deeper than %d", JSONMaxDepth)
	}
	switch b := c.Next(); {
	case b == '{':
		return c.object(depth)
	case b == '[':
		return c.array(depth)
	case b == '"':
		s, err := c.Text()
		c.out = dagcbor.AppendString(c.out, s)
		return err
	case b == '-' || b >= '0' && b <= '9':
		return c.number()
	}
	word, err := c.Word()
	c.out = append(c.out, word...)
	return err
}

func (c *canonical) array(depth int) error {
	c.At++
	c.out = append(c.out, '[')
	for n := 0; ; n++ {
		more, err := c.More(n, ']')
		if err != nil || !more {
			c.out = append(c.out, ']')
			return err
		}
		if n > 0 {
			c.out = append(c.out, ',')
		}
		if err := c.value(depth + 1); err != nil {
			return err
		}
	}
}

// member is one key of an object and the bytes of its canonical form in the output.
type member struct {
	key      string
	from, to int
}

func (c *canonical) object(depth int) error {
	c.At++
	c.out = append(c.out, '{')
	begin := len(c.out)
	var members []member
	sorted := true
	for n := 0; ; n++ {
		more, err := c.More(n, '}')
		if err != nil {
			return err
		}
		if !more {
			break
		}
		key, err := c.Key()
		if err != nil {
			return err
		}
		if n > 0 {
			c.out = append(c.out, ',')
			sorted = sorted && compareKeys(members[n-1].key, key) < 0
		}
		from := len(c.out)
		c.out = append(dagcbor.AppendString(c.out, key), ':')
		if err := c.value(depth + 1); err != nil {
			return err
		}
		members = append(members, member{key, from, len(c.out)})
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
				return c.Fail("the key %q appears twice in the object that ends here", m.key)
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

func (c *canonical) number() error {
	start := c.At
	literal, err := c.Number()
	if err != nil {
		return err
	}
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil || math.Abs(f) > MaxSafeInt {
		c.At = start
		return c.Fail("the number %s lies beyond ±(2^53−1); write it as a string", literal)
	}
	c.out = appendNumber(c.out, f)
	return nil
}

// appendNumber writes f as ECMAScript does (RFC 8785, section 3.2.2.3); |f| < 2^53.
func appendNumber(out []byte, f float64) []byte {
	if f == math.Trunc(f) {
		return strconv.AppendInt(out, int64(f), 10) // also for −0
	}
	b, err := json.Marshal(f)
	if err != nil {
		panic(err) // it is finite
	}
	return append(out, b...)
}
