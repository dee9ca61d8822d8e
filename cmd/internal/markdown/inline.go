package markdown

import (
	"strings"

	"charm.land/lipgloss/v2"
)

// mark is what stands around a part of a line. What is between holds no marks of its own.
type mark struct {
	text  string
	style *lipgloss.Style
	next  bool // only the next such mark closes it
	tight bool // no space is inside of it, at either end
	word  bool // it is no part of a word
}

// marks are in the order in which they are tried.
var marks = [...]mark{
	{text: "``", style: &code},
	{text: "`", style: &code, next: true},
	{text: "**", style: &strong, tight: true},
	{text: "__", style: &strong, tight: true, word: true},
	{text: "~~", style: &struck, tight: true},
	{text: "*", style: &slanted, next: true, tight: true},
	{text: "_", style: &slanted, next: true, tight: true, word: true},
}

// inline gives the marks of a line their looks.
func (p *printer) inline(s string) string {
	return p.marked(s, func(style *lipgloss.Style, text string) string { return style.Render(text) })
}

// plainly takes the marks of a line away.
func (p *printer) plainly(s string) string {
	return p.marked(s, func(_ *lipgloss.Style, text string) string { return text })
}

func (p *printer) marked(s string, show func(*lipgloss.Style, string) string) string {
	r := reading{s: s, show: show}
	shown := r.all()
	p.looked += len(s) + r.looked
	return shown
}

// reading is a line as far as it was read. What closes a mark is looked for once along the line, however many marks it could close: the
// time for a line grows with its length.
type reading struct {
	s      string
	show   func(*lipgloss.Style, string) string
	closes [len(marks)]int // the place where each was found to close last; len(s) is nowhere
	label  int             // the ] found last; len(s) is none
	target int             // the ) that ends a target behind label; 0 is none
	looked int             // at how many bytes in search of them
}

func (r *reading) all() string {
	s := r.s
	if !strings.ContainsAny(s, "`*_~[\\") {
		return s
	}
	var b strings.Builder
	for i, word := 0, false; i < len(s); { // word: behind a letter, where _ is a part of a name
		n := strings.IndexAny(s[i:], "`*_~[!\\")
		if n < 0 {
			b.WriteString(s[i:])
			break
		}
		if n > 0 {
			b.WriteString(s[i : i+n])
			i += n
			word = letter(s[i-1])
			continue
		}
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("\\`*_~[]()#-+.!>|", s[i+1]) >= 0 {
			b.WriteByte(s[i+1])
			word, i = false, i+2
			continue
		}
		shown, end := "", 0
		if !word || s[i] != '_' {
			shown, end = r.span(i)
		}
		if end > 0 {
			b.WriteString(shown)
			word, i = false, end
			continue
		}
		b.WriteByte(s[i])
		word, i = letter(s[i]), i+1
	}
	return b.String()
}

// span shows the marked text at a place, and tells where it ends; 0 is none.
func (r *reading) span(at int) (shown string, end int) {
	for k, m := range marks {
		if !strings.HasPrefix(r.s[at:], m.text) {
			continue
		}
		from := at + len(m.text)
		if to := r.closing(k, from); to < len(r.s) {
			return r.show(m.style, r.s[from:to]), to + len(m.text)
		}
	}
	return r.link(at)
}

// closing is where the mark k that opened before from closes; len(r.s) is nowhere.
func (r *reading) closing(k, from int) int {
	m, nowhere := marks[k], len(r.s)
	if from >= nowhere || m.tight && space(r.s[from]) {
		return nowhere
	}
	if m.next {
		to := r.seek(&r.closes[k], from, func(i int) bool { return strings.HasPrefix(r.s[i:], m.text) })
		if to == from || to < nowhere && !r.ends(m, to) {
			return nowhere
		}
		return to
	}
	return r.seek(&r.closes[k], from+1, func(i int) bool { return strings.HasPrefix(r.s[i:], m.text) && r.ends(m, i) })
}

// ends reports whether a mark can close where it stands.
func (r *reading) ends(m mark, at int) bool {
	behind := at + len(m.text)
	return !(m.tight && space(r.s[at-1])) && !(m.word && behind < len(r.s) && r.s[behind] < 0x80 && letter(r.s[behind]))
}

// link shows the link at a place, and tells where it ends; 0 is none.
func (r *reading) link(at int) (shown string, end int) {
	from := at
	if r.s[from] == '!' {
		from++
	}
	if !strings.HasPrefix(r.s[from:], "[") {
		return "", 0
	}
	from++
	before := r.label
	if r.seek(&r.label, from, func(i int) bool { return r.s[i] == ']' }) != before {
		r.target = r.targetEnd(r.label + 1)
	}
	if r.target == 0 || r.label == from {
		return "", 0
	}
	label, target := r.s[from:r.label], r.s[r.label+2:r.target]
	if label == target {
		return r.show(&code, target), r.target + 1
	}
	return label + " " + r.show(&dim, "("+target+")"), r.target + 1
}

// targetEnd is the ) that closes the target of a link, which opens at a place; 0 is none.
func (r *reading) targetEnd(at int) int {
	if at >= len(r.s) || r.s[at] != '(' {
		return 0
	}
	n := strings.IndexAny(r.s[at+1:], "() \t\n\f\r")
	if n < 0 {
		n = len(r.s) - at - 1
	}
	r.looked += n
	if end := at + 1 + n; n > 0 && end < len(r.s) && r.s[end] == ')' {
		return end
	}
	return 0
}

// seek is the first place from from on for which is is true, len(r.s) where there is none. last is what it gave before, for a from that
// was not larger: where that is still ahead it is the answer.
func (r *reading) seek(last *int, from int, is func(int) bool) int {
	if *last >= from {
		return *last
	}
	i := from
	for i < len(r.s) && !is(i) {
		i++
	}
	r.looked += i - from + 1
	*last = min(i, len(r.s))
	return *last
}

func space(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' && c != '\v' }

func letter(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= 0x80
}
