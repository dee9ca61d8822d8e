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
	for {
		if at = candidate(in, at); at == len(in) {
			break
		}
		f := findAt(in, at, at == edge, ended)
		if f.verdict == undecided {
			break
		}
		if f.verdict == isNone {
			at++
			continue
		}
		dst = append(append(dst, in[from:at+f.from]...), "[redacted:"+f.kind+"]"...)
		at += f.to
		from, edge = at, at
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

// finding is a verdict; from and to, relative to the place, say what is replaced.
type finding struct {
	verdict
	kind     string
	from, to int
}

// A finder judges the place at; the prefix of its shape stands there, n bytes long.
type finder func(in []byte, at, n int, ended bool) finding

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

// findAt judges the place at; after says that a key ends there.
func findAt(in []byte, at int, after, ended bool) finding {
	if at+1 == len(in) {
		if ended {
			return finding{}
		}
		return finding{verdict: undecided}
	}
	begins := after || !under[in[at]] || boundary(in, at)
	rest := in[at:]
	for _, s := range byPrefix().at(in, at) {
		if !begins && !s.name {
			continue
		}
		if len(rest) < len(s.prefix) {
			if !ended && strings.HasPrefix(s.prefix, string(rest)) {
				return finding{verdict: undecided}
			}
			continue
		}
		if string(rest[:len(s.prefix)]) != s.prefix {
			continue
		}
		var f finding
		if s.find != nil {
			f = s.find(in, at, len(s.prefix), ended)
		} else {
			f = s.run(rest, ended)
		}
		if f.verdict != isNone {
			f.kind = s.kind
			return f
		}
	}
	return finding{}
}

// run judges a text that begins with the prefix.
func (s *shape) run(in []byte, ended bool) finding {
	begin, none := len(s.prefix), finding{}
	if s.name {
		n, ok := runOf(in[begin:], between, separatorsMax, ended)
		if !ok {
			return finding{verdict: undecided}
		}
		if n == 0 {
			return none
		}
		begin += n
	}
	n, ok := runOf(in[begin:], s.set, s.max, ended)
	if !ok {
		return finding{verdict: undecided}
	}
	body := in[begin : begin+n]
	for s.set['.'] && len(body) > 0 && body[len(body)-1] == '.' {
		body = body[:len(body)-1] // the end of a sentence
	}
	switch next := begin + n; {
	case len(body) < s.min, same(body), s.mixed && !isMixed(body), s.form != nil && !s.form().Match(body):
		return none
	case next < len(in) && n < open && (under[in[next]] || s.set[in[next]]):
		return none
	}
	f := finding{verdict: isKey, to: begin + len(body)}
	if s.name {
		f.from = begin
	}
	return f
}

// separatorsMax is how many characters may stand between a name and its value.
const separatorsMax = 8

// runOf counts the characters of a set at the beginning of in, up to most; ok is false where
// in ends before that is known.
func runOf(in []byte, of *set, most int, ended bool) (n int, ok bool) {
	for n < len(in) && n < most && of[in[n]] {
		n++
	}
	return n, ended || n < len(in)
}

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
