package words

import "encoding/binary"

// A cursor reads what was written with appendString and binary.AppendUvarint. What others may have written is damaged at worst: then
// bad is set, and all that is read is zero.
type cursor struct {
	b   string
	bad bool
}

func (c *cursor) uint() uint64 {
	var v uint64
	for i := 0; i < len(c.b) && i < binary.MaxVarintLen64; i++ {
		b := c.b[i]
		v |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			c.b = c.b[i+1:]
			return v
		}
	}
	c.b, c.bad = "", true
	return 0
}

// count is a number of things that take a byte each at least.
func (c *cursor) count() int {
	n := c.uint()
	if n > uint64(len(c.b)) {
		c.b, c.bad = "", true
		return 0
	}
	return int(n)
}

func (c *cursor) bytes(n int) string {
	if n > len(c.b) {
		c.b, c.bad = "", true
		return ""
	}
	s := c.b[:n]
	c.b = c.b[n:]
	return s
}

func (c *cursor) string() string { return c.bytes(c.count()) }

func (c *cursor) strings() []string {
	n := c.count()
	if n == 0 {
		return nil
	}
	out := make([]string, n)
	for i := range out {
		out[i] = c.string()
	}
	return out
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendStrings(b []byte, all []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(all)))
	for _, s := range all {
		b = appendString(b, s)
	}
	return b
}
