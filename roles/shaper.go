package roles

import (
	"encoding/binary"
	"slices"
	"strings"
	"sync"
)

// A shaper hides what has the shape of a key, in a stream that may be cut anywhere: what it
// gives does not depend on where.
type shaper struct {
	// buf is the end of what was given out, contextMax bytes at most, and then what is held
	// because more of it may make a key.
	buf    []byte
	given  int    // bytes of buf that were given out
	after  bool   // the last of what was given out was a key
	unseen int    // bytes at the beginning of buf that belong to something unseen
	first  string // kind of the first key

	seen        sight   // of buf
	text, shown passage // buf, and what is seen of it
}

// contextMax is how many bytes before a key may decide whether it is one, as with curl … -u.
const contextMax = 256

// pieceMax is how many bytes are looked at together, where none are held.
const pieceMax = 32 << 10

// write appends to dst what is known of the stream after p; ended says that nothing follows.
func (h *shaper) write(dst, p []byte, ended bool) []byte {
	for len(p) > pieceMax {
		dst, p = h.piece(dst, p[:pieceMax], false), p[pieceMax:]
	}
	dst = h.piece(dst, p, ended)
	if ended {
		*h = shaper{first: h.first}
	}
	return dst
}

func (h *shaper) piece(dst, p []byte, ended bool) []byte {
	h.buf = append(h.buf, p...)
	in := h.buf
	from, edge := h.given, -1 // what lies before was given out
	if h.after {
		edge = from
	}
	seen := &h.seen
	h.text = passage{in: in, ended: ended}
	seen.look(&h.text, h.unseen)
	h.shown = passage{in: seen.in, ended: ended}
	at := seen.end
	for i := seen.from(from); ; {
		if i = candidate(seen.in, i); i == len(seen.in) {
			break
		}
		var f finding
		if len(seen.gaps) == 0 {
			f = h.shown.find(i, i == edge)
		} else {
			f = h.text.judge(seen, i, edge)
		}
		if f.verdict == undecided {
			at, _ = seen.place(i)
			break
		}
		if f.verdict == isNone {
			i++
			continue
		}
		dst = append(append(dst, in[from:f.from]...), "[redacted:"+f.kind+"]"...)
		if h.first == "" {
			h.first = f.kind
		}
		from, edge = f.to, f.to
		i = seen.from(f.to)
	}
	dst = append(dst, in[from:at]...)
	keep := max(0, at-contextMax)
	h.unseen = h.text.within(seen, keep, h.unseen)
	h.buf, h.given, h.after = in[:copy(in, in[keep:])], at-keep, at == edge
	return dst
}

// judge is the finding for a place of what is seen, by that and, where it is none, by all of the text.
func (p *passage) judge(seen *sight, i, edge int) finding {
	at, cut := seen.place(i)
	first, last := seen.from(at-contextMax), seen.from(at+holdMax)
	q := passage{in: seen.in[first:last], ended: p.ended || seen.end >= at+holdMax}
	f := q.find(i-first, cut || at == edge)
	switch f.verdict {
	case isKey:
		f.from, _ = seen.place(first + f.from)
		f.to, _ = seen.place(first + f.to - 1)
		f.to++
	case isNone:
		f = p.find(at, at == edge)
	}
	return f
}

// A verdict is what is known of a place in the text.
type verdict int

const (
	isNone verdict = iota
	isKey
	undecided // the text ends too early
)

// finding is a verdict; from and to say what is replaced.
type finding struct {
	verdict
	kind     string
	from, to int
}

// A passage is a text in which keys may stand, as far as it is known.
type passage struct {
	in    []byte
	ended bool // nothing follows
	short bool // what was asked of it depends on what follows
}

// run is where a run of characters of a set ends, up to most of them.
func (p *passage) run(at int, of *set, most int) (to int) {
	for to = at; to < len(p.in) && to-at < most && of[p.in[to]]; {
		to++
	}
	p.lacks(to, 1)
	return to
}

// lacks reports whether more must be known of the text than there is, for n bytes from at on.
func (p *passage) lacks(at, n int) bool {
	if p.ended || len(p.in)-at >= n {
		return false
	}
	p.short = true
	return true
}

// has reports whether one of some characters stands at a place.
func (p *passage) has(at int, chars string) bool {
	return at < len(p.in) && strings.IndexByte(chars, p.in[at]) >= 0
}

// upTo is the passage up to a place, as if it ended there. What is asked of it counts once known is called.
func (p *passage) upTo(end int) (q *passage, known func()) {
	q = &passage{in: p.in[:min(len(p.in), end)], ended: p.ended || len(p.in) > end}
	return q, func() { p.short = p.short || q.short }
}

// A finder judges the place at; the prefix of its shape stands there, n bytes long. It says what is replaced; no key
// ends at 0. What it says of a passage that is then short does not count.
type finder func(p *passage, at, n int) (from, to int)

// prefixes are those of all shapes by their first two bytes: starts tells which row of seconds
// belongs to the first, 0 for none; seconds which list of lists belongs to the second. triples has a bit for what is
// hashed of the first three, so that a single look passes over almost every place.
type prefixes struct {
	starts  [256]uint8
	seconds [][256]uint16
	lists   [][]*shape
	triples [1 << 10]uint64
}

// hashed takes a byte into what is hashed of the two before it; of earlier ones nothing is left.
func hashed(h uint16, c byte) uint16 { return h<<6 ^ uint16(c) }

var (
	table   prefixes
	tabling sync.Once // no initialiser: finders read the lists, and the lists hold finders
)

// byPrefix is the table, made when it is first asked for.
func byPrefix() *prefixes {
	tabling.Do(table.fill)
	return &table
}

func (p *prefixes) fill() {
	p.seconds, p.lists = make([][256]uint16, 1), make([][]*shape, 1)
	all := shapes()
	for i := range all {
		s := &all[i]
		row := &p.starts[s.prefix[0]]
		if *row == 0 {
			*row = uint8(len(p.seconds))
			p.seconds = append(p.seconds, [256]uint16{})
		}
		list := &p.seconds[*row][s.prefix[1]]
		if *list == 0 {
			*list = uint16(len(p.lists))
			p.lists = append(p.lists, nil)
		}
		p.lists[*list] = append(p.lists[*list], s)
		for c := range 256 {
			if len(s.prefix) == 2 || s.prefix[2] == byte(c) {
				h := hashed(hashed(hashed(0, s.prefix[0]), s.prefix[1]), byte(c))
				p.triples[h>>6] |= 1 << (h & 63)
			}
		}
	}
}

// at are the shapes with a prefix that may begin at a place that is not the last.
func (p *prefixes) at(in []byte, at int) []*shape {
	return p.lists[p.seconds[p.starts[in[at]]][in[at+1]]]
}

// anyAt reports whether a text begins with a prefix, or may as it goes on.
func (p *prefixes) anyAt(in []byte) bool {
	if len(in) == 1 {
		return p.starts[in[0]] != 0
	}
	return slices.ContainsFunc(p.at(in, 0), func(s *shape) bool {
		n := min(len(in), len(s.prefix))
		return string(in[:n]) == s.prefix[:n]
	})
}

// candidate is the next place, from at on, where a prefix begins, or may as the text goes on; len(in) is none.
func candidate(in []byte, at int) int {
	p := byPrefix()
	const stretch = 32
	for at+2 < len(in) {
		if at+8 <= len(in) && notASCII(binary.LittleEndian.Uint64(in[at:])) {
			at += 8
			continue
		}
		h := hashed(hashed(0, in[at]), in[at+1])
		for i, c := range in[at+2 : min(at+2+stretch, len(in))] {
			if h = hashed(h, c); p.triples[h>>6]>>(h&63)&1 != 0 && p.anyAt(in[at+i:]) {
				return at + i
			}
		}
		at = min(at+stretch, len(in)-2)
	}
	for at < len(in) && !p.anyAt(in[at:]) {
		at++
	}
	return at
}

// notASCII reports whether none of eight bytes is.
func notASCII(b uint64) bool { return b&0x8080808080808080 == 0x8080808080808080 }

// find judges the place at; after says that a key ends there.
func (p *passage) find(at int, after bool) finding {
	p.short = false
	if at+1 == len(p.in) {
		if p.lacks(at, 2) {
			return finding{verdict: undecided}
		}
		return finding{}
	}
	begins := after || !under[p.in[at]] || boundary(p.in, at)
	for _, s := range byPrefix().at(p.in, at) {
		var from, to int
		if (begins || s.name) && p.begins(at, s.prefix) {
			from, to = s.look(p, at)
		}
		switch {
		case p.short:
			return finding{verdict: undecided}
		case to > 0:
			return finding{isKey, s.kind, from, to}
		}
	}
	return finding{}
}

// begins reports whether a text stands at a place.
func (p *passage) begins(at int, text string) bool {
	rest := p.in[at:min(len(p.in), at+len(text))]
	if len(rest) < len(text) && strings.HasPrefix(text, string(rest)) {
		p.lacks(at, len(text))
	}
	return string(rest) == text
}

// look judges a text that begins with the prefix.
func (s *shape) look(p *passage, at int) (from, to int) {
	if s.find != nil {
		return s.find(p, at, len(s.prefix))
	}
	return s.run(p, at, len(s.prefix))
}

// run judges a text that is a plain run.
func (s *shape) run(p *passage, at, n int) (from, to int) {
	begin := at + n
	if s.name {
		at = p.run(begin, between, separatorsMax)
		if at == begin {
			return 0, 0
		}
		begin = at
	}
	next := p.run(begin, s.set, s.max)
	body := p.in[begin:next]
	for s.set['.'] && len(body) > 0 && body[len(body)-1] == '.' {
		body = body[:len(body)-1] // the end of a sentence
	}
	if s.set['.'] && p.has(next, ".") && !p.lacks(next+1, 1) {
		next++ // the same behind the longest run
	}
	switch {
	case len(body) < s.min, same(body), s.mixed && !isMixed(body), s.form != nil && !s.form().Match(body):
		return 0, 0
	case next < len(p.in) && next-begin < open && (under[p.in[next]] || s.set[p.in[next]]):
		return 0, 0
	}
	return at, begin + len(body)
}

// separatorsMax is how many characters may stand between a name and its value.
const separatorsMax = 8

// same reports whether all characters are the same.
func same(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return c != b[0] })
}

// isMixed reports whether there are letters and at least two digits.
func isMixed(b []byte) bool {
	letters, numbers := 0, 0
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9':
			numbers++
		case under[c] && c != '_':
			letters++
		}
	}
	return letters > 0 && numbers > 1
}

// boundary reports whether a word begins at a place: what stands before is no letter or digit,
// or belongs to an escape sequence such as \n, \u0026, %3D or that of a colour.
func boundary(in []byte, at int) bool {
	if at == 0 || !under[in[at-1]] {
		return true
	}
	before := in[max(0, at-16):at]
	n := len(before)
	c := before[n-1]
	switch {
	case n >= 2 && before[n-2] == '\\' && strings.IndexByte("nrtbf", c) >= 0:
		return true
	case n >= 6 && before[n-6] == '\\' && before[n-5] == 'u':
		return true
	case n >= 3 && before[n-3] == '%':
		return true
	case c == 'm':
		i := n - 2
		for i > 0 && (before[i] == ';' || before[i] >= '0' && before[i] <= '9') {
			i--
		}
		return i > 0 && before[i] == '[' && before[i-1] == 0x1b
	}
	return false
}
