package roles

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// A written text is looked for however each of its characters is written: as it is, behind backslashes as in JSON, a
// shell or JSON within JSON, as an escape such as \n, \u00e9, \xc3\xa9 or \303\251, in an address as %C3%A9, and with
// what is not shown between them. Line ends are LF or CRLF.
type written struct {
	text string
	long bool // enough of it to be looked for in addresses
}

const (
	// gapMax is how many bytes may stand between two characters, of what is not shown and of backslashes.
	gapMax = 2 * sequenceMax

	// nestedMax is how many backslashes more than its own may stand before a character.
	nestedMax = 16
)

// writtenMax is how many bytes a text of n bytes may have in all.
func writtenMax(n int) int { return gapMax + 64*n }

// A sign is a character of a text, and how many backslashes stand before it there.
type sign struct {
	text    string // one character, or "" for the end
	slashes int
}

// sign is the one at a place of the text, and where the next one begins.
func (w *written) sign(at int) (s sign, next int) {
	for next = at; next < len(w.text) && w.text[next] == '\\'; next++ {
	}
	_, n := utf8.DecodeRuneInString(w.text[next:])
	return sign{w.text[next : next+n], next - at}, next + n
}

// leads reports whether in begins with the text: with its first n bytes, 0 for no. wait says that more must be known.
func (w *written) leads(in []byte, ended bool) (n int, wait bool) {
	// Most texts differ in their first two characters already.
	if first := w.text[0]; len(in) > 1 && in[0] < utf8.RuneSelf && first < utf8.RuneSelf && first != '\\' && first != '%' {
		switch {
		case under[in[0]] && in[0] != first, in[0] == first && len(w.text) > 1 && under[in[1]] && in[1] != w.text[1]:
			return 0, false
		}
	}
	tail := strings.HasSuffix(w.text, `\`)
	if k := min(len(in), len(w.text)); string(in[:k]) == w.text[:k] && !tail {
		if k == len(w.text) {
			return k, false
		}
		if !ended {
			return 0, true
		}
	}
	p := passage{in: in, ended: ended}
	if most := writtenMax(len(w.text)); len(in) > most {
		p = passage{in: in[:most], ended: true}
	}
	var room [2][8]int
	ends, next := append(room[0][:0], 0), room[1][:0]
	for at := 0; at < len(w.text); {
		s, after := w.sign(at)
		next = next[:0]
		for _, end := range ends {
			if s.text == "" {
				next = p.backslashes(next, end, s.slashes)
			} else {
				read := reader{passage: &p, sign: s, first: at == 0, long: w.long, ends: next}
				read.r, _ = utf8.DecodeRuneInString(s.text)
				read.last = end + gapMax
				read.read(end, 0)
				next = read.ends
			}
		}
		switch {
		case p.short:
			return 0, true
		case len(next) == 0:
			return 0, false
		}
		ends, next, at = next, ends, after
	}
	return slices.Max(ends), false
}

// backslashes appends where so many backslashes end, or the same twice, as JSON has them.
func (p *passage) backslashes(ends []int, at, n int) []int {
	run := p.run(at, setOfSlash, 2*n) - at
	switch {
	case run == 2*n:
		return append(ends, at+run)
	case run >= n:
		return append(ends, at+n)
	}
	for range n {
		r, size, _ := p.escape(min(at, len(p.in)-1))
		if size == 0 || r != '\\' {
			return ends
		}
		at += size
	}
	return append(ends, at)
}

var setOfSlash = setOf(`\`)

// A reader looks for a sign of a written text.
type reader struct {
	*passage
	sign
	r           rune // of the sign
	first, long bool // it is the first one; its text is long
	last        int  // where it may begin at the latest
	ends        []int
}

func (p *reader) end(at int) {
	if !slices.Contains(p.ends, at) {
		p.ends = append(p.ends, at)
	}
}

// fits reports whether the sign may stand as it is behind so many backslashes in a row. JSON doubles them, and has one
// more before some signs; what stands before the first sign of a text is no part of it.
func (p *reader) fits(slashes int) bool {
	n := p.slashes
	if p.r >= utf8.RuneSelf || under[byte(p.r)] {
		return slashes == n || slashes == 2*n || slashes == 4*n && !p.first
	}
	return slashes >= n && (!p.first || slashes <= 2*n+1)
}

// read finds where the sign ends in each way in which it can be read at a place, behind so many backslashes in a row.
func (p *reader) read(at, slashes int) {
	most := 4*p.slashes + nestedMax
	if p.first {
		most = 2*p.slashes + 1
	}
	for at <= p.last && slashes <= most && !p.lacks(at, 1) && at < len(p.in) {
		c := p.in[at]
		if p.fits(slashes) {
			switch {
			case c == p.text[0] && p.begins(at, p.text):
				p.end(at + len(p.text))
			case c == '+' && p.long && p.r == ' ':
				p.end(at + 1)
			case p.r == utf8.RuneError && c >= utf8.RuneSelf:
				if got, n := p.rune(at); got == p.r && n > 0 {
					p.end(at + n)
				}
			}
		}
		got, n, bare := rune(c), 1, false
		if escaped := c == '\\' || p.long && c == '%'; escaped {
			got, n, bare = p.escape(at)
			if n > 0 && slashes >= p.slashes && (got == p.r || bare && p.r == utf8.RuneError) {
				p.end(at + n)
			}
			if n > 0 && got == '\\' {
				p.read(at+n, slashes+1)
			}
		}
		if n > 0 && got == '\r' && p.r == '\n' {
			at += n
			continue
		}
		unseen := 0
		if !p.first {
			unseen = p.unseen(at)
		}
		switch {
		case c == '\\':
			if unseen > 0 {
				p.read(at+unseen, slashes)
			}
			at++
			slashes++
		case unseen > 0:
			at += unseen
		default:
			return
		}
	}
}

// bits are a set of bytes.
type bits [4]uint64

func (b *bits) has(c byte) bool { return b[c>>6]>>(c&63)&1 != 0 }

func (b *bits) add(chars string) *bits {
	for i := range len(chars) {
		b[chars[i]>>6] |= 1 << (chars[i] & 63)
	}
	return b
}

var (
	anyByte     = &bits{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}
	hexBits     = new(bits).add("abcdefABCDEF" + digits)
	betweenBits = func() *bits { // what may stand between two characters, and be no part of the second as it is
		b := new(bits).add("%+\r")
		for c, unseen := range unseenLead {
			if unseen {
				b.add(string([]byte{byte(c)}))
			}
		}
		return b
	}()
)

// begins calls add with each byte with which the text may begin, and the bytes that may follow it.
func (w *written) begins(add func(first byte, second *bits)) {
	s, next := w.sign(0)
	letters := new(bits).add("uUx0123")
	if s.slashes > 0 {
		letters.add(`\`)
	}
	for c, r := range escapes {
		if string(r) == s.text {
			letters.add(string(rune(c)))
		}
	}
	add('\\', letters)
	if w.long {
		add('%', hexBits)
	}
	if s.text == "" {
		return
	}
	after := anyByte
	if next < len(w.text) {
		if t, _ := w.sign(next); t.text == "" || t.text[0] < utf8.RuneSelf {
			b := *betweenBits
			after = b.add(t.text[:min(1, len(t.text))])
		}
	}
	switch c := s.text[0]; {
	case c >= utf8.RuneSelf:
		for c := utf8.RuneSelf; c < 256; c++ {
			add(byte(c), anyByte)
		}
		return
	case c == '\n':
		add('\r', anyByte)
		letters.add("r")
	case c == ' ':
		add('+', after)
	}
	if s.slashes > 0 || !under[s.text[0]] {
		letters.add(s.text)
	}
	add(s.text[0], after)
	add('\\', letters)
}
