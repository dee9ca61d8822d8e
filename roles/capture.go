package roles

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// OutputMax is how many bytes of a command's output are kept: the first and the last half of
// it, with a marker between them that tells how much is missing.
const OutputMax = 16 << 20

// A Cleaner turns the bytes of a program into text: CRLF becomes LF, invalid UTF-8 becomes
// U+FFFD, NUL bytes are left out, and in what is then left, secrets and what has the shape of a
// key are hidden. Chunks may be cut anywhere.
//
// The order matters: what is removed after the search could join the two halves of a secret.
type Cleaner struct {
	redact *Redactor
	held   []byte // an incomplete rune or a CR, until the next chunk
	plain  []byte
	out    []byte
}

// NewCleaner hides what redact hides, and takes it over.
func NewCleaner(redact *Redactor) *Cleaner { return &Cleaner{redact: redact} }

// Text is what is known of the stream after p; ended says that nothing follows.
func (c *Cleaner) Text(p []byte, ended bool) string {
	c.held = append(c.held, p...)
	var rest []byte
	c.plain, rest = normalise(c.plain[:0], c.held, ended)
	c.held = c.held[:copy(c.held, rest)]
	c.out = c.redact.Write(c.out[:0], c.plain)
	if ended {
		c.out = c.redact.Flush(c.out)
	}
	return string(c.out)
}

// normalise appends to dst the text of in. Unless the stream has ended it gives back an
// incomplete rune, or a CR, at the end.
func normalise(dst, in []byte, ended bool) (out, rest []byte) {
	for len(in) > 0 {
		if !ended && (in[0] == '\r' && len(in) == 1 || !utf8.FullRune(in)) {
			break
		}
		r, n := utf8.DecodeRune(in)
		switch {
		case r == 0:
		case r == '\r' && len(in) > 1 && in[1] == '\n':
		default:
			dst = utf8.AppendRune(dst, r)
		}
		in = in[n:]
	}
	return dst, in
}

// A window holds the text of a command in bounded memory: the first and the last max/2 bytes.
type window struct {
	max  int
	head []byte
	tail []byte // up to max bytes, of which the last max/2 count
	gone int64  // bytes between head and tail
}

func (k *window) write(s string) {
	half := k.max / 2
	if n := half - len(k.head); n > 0 && len(k.tail) == 0 && k.gone == 0 {
		n = CutRunes(s, n)
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
func (k *window) dropTo(n int) {
	from := max(len(k.tail)-n, 0)
	for from < len(k.tail) && !utf8.RuneStart(k.tail[from]) {
		from++
	}
	k.gone += int64(from)
	k.tail = append(k.tail[:0], k.tail[from:]...)
}

// String is the text, without the newlines at its end.
func (k *window) String() string {
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

// CutRunes is the largest length ≤ n at which s can be cut without splitting a rune.
func CutRunes(s string, n int) int {
	if n >= len(s) {
		return len(s)
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}
