package tree

import (
	"bytes"
	"strings"
)

// An IgnoreList is what one file of rules says, as gitignore(5) has it, byte by byte as git does, on top of the list of the
// directory above. It is immutable, and nil ignores nothing.
//
//	.gitignore ◄── src/.gitignore ◄── src/gen/.gitignore
//
// The deepest file with a rule that fits decides, and in it the last such rule.
type IgnoreList struct {
	above *IgnoreList
	dir   string // with a slash at its end, "" is the top
	rules []ignoreRule
}

// With adds the text of a file of rules that lies in the directory dir, with slashes, "" for the top. Lines that git cannot
// read match nothing.
func (l *IgnoreList) With(dir string, text []byte) *IgnoreList {
	own := &IgnoreList{above: l}
	if dir != "" {
		own.dir = dir + "/"
	}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte("\n"))
		if r, ok := newIgnoreRule(strings.TrimSuffix(string(line), "\r")); ok {
			own.rules = append(own.rules, r)
		}
	}
	if own.rules == nil {
		return l
	}
	return own
}

// Ignores reports whether a path from the top is left out, leaving aside whether one of the directories it lies in is: a walk
// does not enter such a directory.
func (l *IgnoreList) Ignores(path string, dir bool) bool {
	for ; l != nil; l = l.above {
		below, ok := strings.CutPrefix(path, l.dir)
		if !ok {
			continue
		}
		name := below[strings.LastIndexByte(below, '/')+1:]
		for i := len(l.rules) - 1; i >= 0; i-- {
			r, from := &l.rules[i], below
			if r.names {
				from = name
			}
			if (dir || !r.dirs) && match(r.tokens, from) {
				return !r.not
			}
		}
	}
	return false
}

type ignoreRule struct {
	tokens []token
	names  bool // it fits names, at any depth; else paths from the directory
	not    bool
	dirs   bool // directories alone
}

func newIgnoreRule(line string) (r ignoreRule, ok bool) {
	line, _, _ = strings.Cut(line, "\x00")
	if strings.HasPrefix(line, "#") {
		return r, false
	}
	line = withoutSpaces(line)
	line, r.not = strings.CutPrefix(line, "!")
	line, r.dirs = strings.CutSuffix(line, "/")
	r.names = !strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return r, false
	}
	r.tokens, ok = tokens(line)
	return r, ok
}

// withoutSpaces is a line without the spaces at its end that no backslash stands before.
func withoutSpaces(line string) string {
	end := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			continue
		case '\\':
			if i++; i == len(line) {
				return line
			}
		}
		end = i + 1
	}
	return line[:end]
}

// A token is what fits one byte of a path, or some.
type token struct {
	set  *[4]uint64 // the bytes of which one fits
	many many
}

// many is how much a token fits that has no set.
type many int

const (
	some many = iota + 1 // any bytes of one name
	any_                 // any bytes
	dirs                 // any bytes with a slash behind them, or nothing
)

func one(b byte) *[4]uint64 {
	var set [4]uint64
	set[b>>6] |= 1 << (b & 63)
	return &set
}

func (t *token) fits(b byte) bool { return t.set[b>>6]&(1<<(b&63)) != 0 }

// noSlash is what ? fits.
var noSlash = func() *[4]uint64 {
	set := one('/')
	for i := range set {
		set[i] = ^set[i]
	}
	return set
}()

// tokens reads a pattern; ok is false for one that fits nothing. Two stars or more stand for directories where they are
// alone between slashes, and, as git reads it, behind the text without signs that the pattern begins with.
func tokens(p string) (out []token, ok bool) {
	plain := strings.IndexAny(p, `*?[\`)
	for i := 0; i < len(p); i++ {
		switch c := p[i]; c {
		case '*':
			from := i
			for i+1 < len(p) && p[i+1] == '*' {
				i++
			}
			rest := p[i+1:]
			switch {
			case i == from || from != plain && p[from-1] != '/':
				out = append(out, token{many: some})
			case rest == "" || strings.HasPrefix(rest, `\/`):
				out = append(out, token{many: any_})
			case rest[0] == '/':
				out = append(out, token{many: dirs})
				i++
			default:
				out = append(out, token{many: some})
			}
		case '?':
			out = append(out, token{set: noSlash})
		case '[':
			set, n, ok := class(p[i:])
			if !ok {
				return nil, false
			}
			set['/'>>6] &^= 1 << ('/' & 63)
			out = append(out, token{set: set})
			i += n - 1
		case '\\':
			if i++; i == len(p) {
				return nil, false
			}
			c = p[i]
			fallthrough
		default:
			out = append(out, token{set: one(c)})
		}
	}
	return out, true
}

// class reads a set of bytes in brackets, and tells how long it is.
func class(p string) (set *[4]uint64, n int, ok bool) {
	set = new([4]uint64)
	i := 1
	not := i < len(p) && (p[i] == '!' || p[i] == '^')
	if not {
		i++
	}
	before := -1 // the byte that a range may begin with
	for first := true; ; first = false {
		if i >= len(p) {
			return nil, 0, false
		}
		c := p[i]
		switch {
		case c == ']' && !first:
			if not {
				for j := range set {
					set[j] = ^set[j]
				}
			}
			return set, i + 1, true
		case c == '-' && before >= 0 && i+1 < len(p) && p[i+1] != ']':
			i++
			if p[i] == '\\' {
				if i++; i == len(p) {
					return nil, 0, false
				}
			}
			for b := before; b <= int(p[i]); b++ {
				set[b>>6] |= 1 << (b & 63)
			}
			before = -1
		case c == '[' && i+1 < len(p) && p[i+1] == ':':
			end := strings.IndexByte(p[i+2:], ']')
			if end < 0 {
				return nil, 0, false
			}
			if name, named := strings.CutSuffix(p[i+2:i+2+end], ":"); named {
				in := classes[name]
				if in == nil {
					return nil, 0, false
				}
				for b := range 256 {
					if in(byte(b)) {
						set[b>>6] |= 1 << (b & 63)
					}
				}
				i += 2 + end
				before = -1
				break
			}
			set['['>>6] |= 1 << ('[' & 63)
			before = '['
		default:
			if c == '\\' {
				if i++; i == len(p) {
					return nil, 0, false
				}
				c = p[i]
			}
			set[c>>6] |= 1 << (c & 63)
			before = int(c)
		}
		i++
	}
}

func between(b, from, to byte) bool { return b >= from && b <= to }
func isUpper(b byte) bool           { return between(b, 'A', 'Z') }
func isLower(b byte) bool           { return between(b, 'a', 'z') }
func isDigit(b byte) bool           { return between(b, '0', '9') }
func isAlnum(b byte) bool           { return isUpper(b) || isLower(b) || isDigit(b) }

// classes are those of ASCII.
var classes = map[string]func(byte) bool{
	"alnum":  isAlnum,
	"alpha":  func(b byte) bool { return isUpper(b) || isLower(b) },
	"blank":  func(b byte) bool { return b == ' ' || b == '\t' },
	"cntrl":  func(b byte) bool { return b < ' ' || b == 0x7f },
	"digit":  isDigit,
	"graph":  func(b byte) bool { return between(b, '!', '~') },
	"lower":  isLower,
	"print":  func(b byte) bool { return between(b, ' ', '~') },
	"punct":  func(b byte) bool { return between(b, '!', '~') && !isAlnum(b) },
	"space":  func(b byte) bool { return b == ' ' || between(b, '\t', '\r') },
	"upper":  isUpper,
	"xdigit": func(b byte) bool { return isDigit(b) || between(b, 'a', 'f') || between(b, 'A', 'F') },
}

// match reports whether tokens fit a path. It goes back to the last token that fits many bytes, and from one that is within
// a name to the last one that is not: what those before them stand for may stay.
func match(tokens []token, path string) bool {
	type place struct{ token, at int }
	t, within, across := 0, place{-1, 0}, place{-1, 0}
	for at := 0; at < len(path); {
		if t < len(tokens) {
			switch tok := &tokens[t]; {
			case tok.many == some:
				t++
				within = place{t, at}
				continue
			case tok.many != 0:
				t++
				within, across = place{-1, 0}, place{t, at}
				continue
			case tok.fits(path[at]):
				t, at = t+1, at+1
				continue
			}
		}
		if within.token >= 0 && path[within.at] != '/' {
			within.at++
			t, at = within.token, within.at
			continue
		}
		within.token = -1
		if across.token < 0 {
			return false
		}
		across.at++
		if tokens[across.token-1].many == dirs {
			next := strings.IndexByte(path[across.at-1:], '/')
			if next < 0 {
				return false
			}
			across.at += next
		}
		t, at = across.token, across.at
	}
	for t < len(tokens) && tokens[t].many != 0 {
		t++
	}
	return t == len(tokens)
}
