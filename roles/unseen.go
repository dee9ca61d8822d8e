package roles

import (
	"encoding/binary"
	mathbits "math/bits"
	"sort"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// What a terminal or a page does not show: sequences that set colours, titles and links, and characters
// without a width. They hide no key: it is looked for as if they were not there.

const (
	// sequenceMax is how many bytes such a sequence may have, as that of a link with its address.
	sequenceMax = 2 << 10

	// holdMax is how many bytes a key may have with what is not shown within it.
	holdMax = 2 * pemMax

	escapeSign = 0x1b
)

// unseenLead are the bytes with which something may begin that is not shown, or an escape that stands for it.
var unseenLead = setOf("\x1b\\\xc2\xcd\xd8\xdb\xdc\xe0\xe1\xe2\xe3\xef\xf0\xf3")

// unseenSecond has a bit for each byte that follows a first one in a character that is not shown.
var unseenSecond = func() (seconds [64]uint64) {
	add := func(r rune) {
		s := string(r)
		seconds[s[0]&0x3f] |= 1 << (s[1] & 0x3f)
	}
	for _, table := range unseenTables {
		for _, x := range table.R16 {
			for r := rune(x.Lo); r <= rune(x.Hi); r += rune(x.Stride) {
				add(r)
			}
		}
		for _, x := range table.R32 {
			for r := rune(x.Lo); r <= rune(x.Hi); r += rune(x.Stride) {
				add(r)
			}
		}
	}
	for r := range controlStrings {
		add(r)
	}
	return seconds
}()

// unseenTables are the characters without a width.
var unseenTables = []*unicode.RangeTable{unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector}

// mayBeUnseen judges the beginning of a text by its first two bytes.
func mayBeUnseen(in []byte) bool {
	c := in[0]
	return unseenLead[c] && (c < utf8.RuneSelf || len(in) == 1 || unseenSecond[c&0x3f]>>(in[1]&0x3f)&1 != 0)
}

// unseenRune reports whether a character is not shown and does not move what follows it.
func unseenRune(r rune) bool {
	switch {
	case r < 0xa0:
		return false
	case r > 0x3000 && r < 0xfe00 && r != 0x3164:
		return false // the most part of what Chinese and Japanese write
	}
	return unicode.In(r, unseenTables...)
}

// unseen is the length of what stands at a place and is not shown, 0 for none.
func (p *passage) unseen(at int) int {
	if at >= len(p.in) || !mayBeUnseen(p.in[at:]) {
		return 0
	}
	r, n := p.rune(at)
	switch {
	case n == 0, n == 2 && p.in[at] == '\\' && (r != escapeSign || p.lacks(at+n, 1) || !p.has(at+n, "[]")):
	case r == escapeSign, controlStrings[r]:
		if end := p.sequence(at+n, r); end > 0 {
			return end - at
		}
	case unseenRune(r):
		return n
	}
	return 0
}

// rune is the character at a place, as it is or in an escape, and its length there; n is 0 where more must be known.
func (p *passage) rune(at int) (r rune, n int) {
	if p.in[at] == '\\' {
		r, n, _ = p.escape(at)
		return r, n
	}
	if !utf8.FullRune(p.in[at:]) && p.lacks(at, utf8.UTFMax) {
		return 0, 0
	}
	return utf8.DecodeRune(p.in[at:])
}

// sequence is where the control sequence ends whose first character was said by r, 0 if there is none.
func (p *passage) sequence(at int, r rune) (end int) {
	if p.lacks(at, 1) || at == len(p.in) {
		return 0
	}
	kind := byte(r - 0x40) // of the characters that stand for two
	if r == escapeSign {
		kind = p.in[at]
		at++
	}
	switch {
	case kind == ']', kind == 'P', kind == 'X', kind == '^', kind == '_':
		for end = at; end < len(p.in) && end-at < sequenceMax; end++ {
			switch c := p.in[end]; {
			case c == '\a':
				return end + 1
			case c == '\n':
				return 0
			case c == escapeSign || c == '\\' || c == 0xc2:
				switch r, n := p.rune(end); {
				case n == 0 && p.short:
					return 0
				case r == '\a' || r == 0x9c:
					return end + n
				case r == escapeSign:
					if p.lacks(end+n, 1) || !p.has(end+n, `\`) {
						return 0
					}
					if c == '\\' && p.has(end+n+1, `\`) {
						n++ // written in JSON, as the sign itself
					}
					return end + n + 1
				}
			}
		}
		if end-at < sequenceMax {
			p.lacks(end, 1)
		}
		return 0
	case kind == '[':
		at = p.run(at, parameters, sequenceMax)
	case kind >= ' ' && kind < '0':
		at = p.run(at, intermediates, sequenceMax)
	case kind >= '0' && kind <= '~':
		return at
	default:
		return 0
	}
	if at < len(p.in) && p.in[at] >= '0' && p.in[at] <= '~' {
		return at + 1
	}
	return 0
}

var (
	intermediates = setOf(" !\"#$%&'()*+,-./")
	parameters    = setOf(" !\"#$%&'()*+,-./" + digits + ":;<=>?")
)

// escapes are the characters that a letter behind a backslash stands for.
var escapes = map[byte]rune{'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'f': '\f', 'a': '\a', 'v': '\v', 'e': escapeSign, 'E': escapeSign}

// escape is the character that is written at a place as \n, \u00e9, \U000000e9, \xc3\xa9, \303\251 or %C3%A9, and the
// length of that; n is 0 where there is none. bare says that it was a single byte which is no UTF-8.
func (p *passage) escape(at int) (r rune, n int, bare bool) {
	if p.in[at] == '\\' && at+1 < len(p.in) {
		switch c := p.in[at+1]; {
		case c == 'u':
			r, n = p.number(at+2, 4, 16), 6
			if utf16.IsSurrogate(r) && p.begins(at+6, `\u`) {
				if both := utf16.DecodeRune(r, p.number(at+8, 4, 16)); both != utf8.RuneError {
					r, n = both, 12
				}
			}
		case c == 'U':
			r, n = p.number(at+2, 8, 16), 10
		case escapes[c] != 0:
			return escapes[c], 2, false
		}
		if n > 0 {
			if r < 0 || p.short {
				return 0, 0, false
			}
			return r, n, false
		}
	}
	var one [utf8.UTFMax]byte
	for i := range one {
		c, size := p.octet(at + n)
		if size == 0 {
			break
		}
		one[i], n = c, n+size
		if utf8.FullRune(one[:i+1]) {
			if r, size := utf8.DecodeRune(one[:i+1]); r != utf8.RuneError || size == 3 {
				return r, n, false
			}
			break
		}
	}
	if _, n = p.octet(at); n == 0 || p.short {
		return 0, 0, false
	}
	return rune(one[0]), n, true
}

// octet is a byte that is written in hexadecimal or octal digits, behind a backslash or a percent sign.
func (p *passage) octet(at int) (c byte, n int) {
	if p.lacks(at, 2) || at+1 >= len(p.in) {
		return 0, 0
	}
	r := rune(-1)
	switch next := p.in[at+1]; {
	case p.in[at] == '%':
		r, n = p.number(at+1, 2, 16), 3
	case p.in[at] != '\\':
	case next == 'x':
		r, n = p.number(at+2, 2, 16), 4
	case next >= '0' && next <= '3':
		r, n = p.number(at+1, 3, 8), 4
	}
	if r < 0 {
		return 0, 0
	}
	return byte(r), n
}

// number is a number of so many digits, negative if there is none.
func (p *passage) number(at, size int, base rune) (r rune) {
	for i := at; i < at+size; i++ {
		if p.lacks(i, 1) || i >= len(p.in) {
			return -1
		}
		d := strings.IndexByte("0123456789abcdef", p.in[i]|0x20)
		if d < 0 || rune(d) >= base || p.in[i] < '0' {
			return -1
		}
		r = r*base + rune(d)
	}
	return r
}

// A sight is what is seen of a passage. Its gaps say where something is not, in order: from which place of the sight
// on, and which place of the passage that is.
type sight struct {
	in   []byte
	room []byte // for in, where it is not all of the passage
	gaps []gap
	end  int // of what is known of the passage
}

type gap struct{ seen, place int }

// controlStrings are the single characters with which a control sequence may begin.
var controlStrings = map[rune]bool{0x90: true, 0x98: true, 0x9b: true, 0x9d: true, 0x9e: true, 0x9f: true}

// look is what is seen of a passage that begins with so many bytes which are not.
func (s *sight) look(p *passage, skip int) {
	s.gaps, s.end = s.gaps[:0], len(p.in)
	from, in := skip, s.room[:0]
	if skip > 0 {
		s.gaps = append(s.gaps, gap{0, skip})
	}
	for at := nextUnseen(p.in, from); at < len(p.in); at = nextUnseen(p.in, at) {
		p.short = false
		n := p.unseen(at)
		if p.short {
			s.end = at
			break
		}
		if n == 0 {
			at++
			continue
		}
		in = append(in, p.in[from:at]...)
		at += n
		if last := len(s.gaps) - 1; last >= 0 && s.gaps[last].seen == len(in) {
			s.gaps[last].place = at
		} else {
			s.gaps = append(s.gaps, gap{len(in), at})
		}
		from = at
	}
	p.short = false
	if len(s.gaps) == 0 {
		s.in = p.in[:s.end]
		return
	}
	s.room = append(in, p.in[from:s.end]...)
	s.in = s.room
}

// nextUnseen is the next place, from at on, where something unseen may begin.
func nextUnseen(in []byte, at int) int {
	for ; at+8 <= len(in); at += 8 {
		for some := maybeLeads(binary.LittleEndian.Uint64(in[at:])); some != 0; some &= some - 1 {
			if i := at + mathbits.TrailingZeros64(some)/8; mayBeUnseen(in[i:]) {
				return i
			}
		}
	}
	for at < len(in) && !mayBeUnseen(in[at:]) {
		at++
	}
	return at
}

// maybeLeads has the top bit of each of eight bytes set that may be in unseenLead: it is the escape sign, a backslash, or
// begins a character in UTF-8 outside of the most part of what Chinese and Japanese write, which begins with E4 to EE.
func maybeLeads(b uint64) uint64 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	slash, sign := b^'\\'*ones, b^escapeSign*ones
	first := b & (b << 1)
	most := (b << 2) &^ (b << 3) & (b<<4 | b<<5) &^ (b << 4 & (b << 5) & (b << 6) & (b << 7))
	return ((slash-ones)&^slash | (sign-ones)&^sign | first&^most) & tops
}

// place is where something of the sight stands in the passage, and cut reports whether something unseen stands before it.
func (s *sight) place(seen int) (place int, cut bool) {
	i := sort.Search(len(s.gaps), func(i int) bool { return s.gaps[i].seen > seen }) - 1
	if i < 0 {
		return seen, false
	}
	g := s.gaps[i]
	return g.place + seen - g.seen, g.seen == seen
}

// from is the first of the sight that stands at a place of the passage or behind it.
func (s *sight) from(place int) (seen int) {
	i := sort.Search(len(s.gaps), func(i int) bool { return s.gaps[i].place > place })
	if i > 0 {
		place += s.gaps[i-1].seen - s.gaps[i-1].place
	}
	if i < len(s.gaps) {
		place = min(place, s.gaps[i].seen)
	}
	return max(0, min(place, len(s.in)))
}

// within is how many bytes from a place on belong to something unseen that begins before it. The first of the passage
// that are unseen are skip bytes.
func (p *passage) within(s *sight, place, skip int) int {
	i := s.from(place)
	if next, _ := s.place(i); next == place {
		return 0
	}
	end := skip
	if i > 0 {
		end, _ = s.place(i - 1)
		end++
	}
	for end < place {
		end += max(1, p.unseen(end))
	}
	return end - place
}
