package roles

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// OutputMax is how many bytes of a command's output are kept: the first and the last half of
// it, with a marker between them that tells how much is missing.
const OutputMax = 16 << 20

// A cleaner turns the bytes of a command into text: secrets and what has the shape of a key
// are hidden, CRLF becomes LF, invalid UTF-8 becomes U+FFFD and NUL bytes are left out. Chunks
// may be cut anywhere.
type cleaner struct {
	redact *Redactor
	held   []byte // an incomplete rune or a CR, until the next chunk
	buf    []byte
}

// text is what is known of the stream after p; ended says that nothing follows.
func (c *cleaner) text(p []byte, ended bool) string {
	c.buf = append(c.buf[:0], c.held...)
	c.held = c.held[:0]
	if bytes.IndexByte(p, 0) >= 0 { // a secret must not lie on both sides of one
		p = bytes.ReplaceAll(p, []byte{0}, nil)
	}
	c.buf = c.redact.Write(c.buf, p)
	if ended {
		c.buf = c.redact.Flush(c.buf)
	}

	var out strings.Builder
	out.Grow(len(c.buf))
	for b := c.buf; len(b) > 0; {
		if b[0] == '\r' && len(b) == 1 && !ended || !ended && !utf8.FullRune(b) {
			c.held = append(c.held, b...)
			break
		}
		r, n := utf8.DecodeRune(b)
		switch {
		case r == '\r' && len(b) > 1 && b[1] == '\n':
		case r == utf8.RuneError && n == 1:
			out.WriteRune(utf8.RuneError)
		default:
			out.Write(b[:n])
		}
		b = b[n:]
	}
	return out.String()
}

// A keeper holds the text of a command in bounded memory: the first and the last max/2 bytes.
type keeper struct {
	max  int
	head []byte
	tail []byte // up to max bytes, of which the last max/2 count
	gone int64  // bytes between head and tail
}

func (k *keeper) write(s string) {
	half := k.max / 2
	if n := half - len(k.head); n > 0 && len(k.tail) == 0 && k.gone == 0 {
		n = cutRunes(s, n)
		k.head = append(k.head, s[:n]...)
		s = s[n:]
	}
	for len(s) > 0 {
		n := min(len(s), half)
		k.tail = append(k.tail, s[:n]...)
		s = s[n:]
		if len(k.tail) > k.max {
			k.dropTo(half)
		}
	}
}

// dropTo shortens the tail to its last n bytes, or less, so that it begins with a rune.
func (k *keeper) dropTo(n int) {
	from := max(len(k.tail)-n, 0)
	for from < len(k.tail) && !utf8.RuneStart(k.tail[from]) {
		from++
	}
	k.gone += int64(from)
	k.tail = append(k.tail[:0], k.tail[from:]...)
}

// String is the text, without the newlines at its end.
func (k *keeper) String() string {
	if len(k.head)+len(k.tail) > k.max {
		k.dropTo(k.max / 2)
	}
	var b strings.Builder
	b.Grow(len(k.head) + len(k.tail) + 64)
	b.Write(k.head)
	if k.gone > 0 {
		fmt.Fprintf(&b, "\n…[%d bytes dropped]…\n", k.gone)
	}
	b.Write(k.tail)
	return strings.TrimRight(b.String(), "\n")
}

// cutRunes is the largest length ≤ n at which s can be cut without splitting a rune.
func cutRunes(s string, n int) int {
	if n >= len(s) {
		return len(s)
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}
