package roles

import (
	"slices"
	"strings"
	"sync"
)

// A shaper hides what has the shape of a key, in a stream that may be cut anywhere: what it
// gives does not depend on where.
type shaper struct {
	// buf is the end of what was given out, contextMax bytes at most, and then what is held
	// because more of it may make a key.
	buf   []byte
	given int  // bytes of buf that were given out
	after bool // the last of what was given out was a key
}

// contextMax is how many bytes before a key may decide whether it is one, as with curl … -u.
const contextMax = 256

// write appends to dst what is known of the stream after p; ended says that nothing follows.
func (h *shaper) write(dst, p []byte, ended bool) []byte {
	in := p
	if len(h.buf) > 0 {
		in = append(h.buf, p...)
	}
	from := h.given // what lies before was given out
	at, edge := from, -1
	if h.after {
		edge = at
	}
	text := passage{in: in, ended: ended}
	for {
		if at = candidate(in, at); at == len(in) {
			break
		}
		f := text.find(at, at == edge)
		if f.verdict == undecided {
			break
		}
		if f.verdict == isNone {
			at++
			continue
		}
		dst = append(append(dst, in[from:f.from]...), "[redacted:"+f.kind+"]"...)
		at, from, edge = f.to, f.to, f.to
	}
	dst = append(dst, in[from:at]...)
	if ended {
		*h = shaper{}
		return dst
	}
	keep := max(0, at-contextMax)
	h.buf, h.given, h.after = append(h.buf[:0:0], in[keep:]...), at-keep, at == edge
	return dst
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
// belongs to the first, 0 for none; seconds which list of lists belongs to the second.
type prefixes struct {
	starts  [256]uint8
	seconds [][256]uint16
	lists   [][]*shape
}

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
	}
}

// at are the shapes with a prefix that may begin at a place that is not the last.
func (p *prefixes) at(in []byte, at int) []*shape {
	return p.lists[p.seconds[p.starts[in[at]]][in[at+1]]]
}

// candidate is the next place, from at on, where a prefix may begin; len(in) is none.
func candidate(in []byte, at int) int {
	p := byPrefix()
	for ; at < len(in); at++ {
		row := p.starts[in[at]]
		if row == 0 {
			continue
		}
		if at+1 == len(in) || p.seconds[row][in[at+1]] != 0 {
			return at
		}
	}
	return at
}

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
