package gitignore

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// A pattern is one line of an ignore file. Most are a plain name or *.ext, for which no
// regular expression is needed.
type pattern struct {
	negated bool
	dirOnly bool
	anchor  bool // matched against the whole path, else against its last part

	literal string // the name, or, with suffix, what it ends with
	suffix  bool
	form    *regexp.Regexp // nil for a literal
}

func (p *pattern) matches(rel, base string) bool {
	name := base
	if p.anchor {
		name = rel
	}
	switch {
	case p.form != nil:
		return p.form.MatchString(name)
	case p.suffix:
		return strings.HasSuffix(name, p.literal)
	}
	return name == p.literal
}

// parse reads a line; ok is false where there is none, or one that can match nothing.
func parse(line string) (p pattern, ok bool) {
	line = trimSpaces(line)
	if strings.HasPrefix(line, "#") {
		return p, false
	}
	line, p.negated = strings.CutPrefix(line, "!")
	line, p.dirOnly = strings.CutSuffix(line, "/")
	p.anchor = strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return p, false
	}
	if !strings.ContainsAny(line, special) {
		p.literal = line
		return p, true
	}
	if rest := line[1:]; !p.anchor && line[0] == '*' && !strings.ContainsAny(rest, special) {
		p.literal, p.suffix = rest, true
		return p, true
	}
	expr, ok := translate(line, p.anchor)
	if !ok {
		return p, false
	}
	form, err := regexp.Compile(expr)
	p.form = form
	return p, err == nil
}

// trimSpaces removes spaces from the end that no backslash protects.
func trimSpaces(line string) string {
	end := len(line)
	for end > 0 && line[end-1] == ' ' {
		end--
	}
	slashes := 0
	for slashes < end && line[end-1-slashes] == '\\' {
		slashes++
	}
	if end < len(line) && slashes%2 == 1 {
		end++
	}
	return line[:end]
}

// special are the characters that make a pattern more than a name.
const special = `*?[\`

// translate writes a glob as a regular expression. In a path, ** stands for any number of
// directories where it has a slash, or nothing, on either side; elsewhere it is a plain *. (As
// in git, a beginning without wildcards counts as nothing: a/b**/c finds a/bx/y/c.)
func translate(glob string, isPath bool) (string, bool) {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for i := 0; i < len(glob); {
		switch c := glob[i]; c {
		case '*':
			stars := i
			for i < len(glob) && glob[i] == '*' {
				i++
			}
			opens := stars == 0 || glob[stars-1] == '/' || !strings.ContainsAny(glob[:stars], special)
			switch {
			case !isPath || i-stars < 2 || !opens:
				b.WriteString(`[^/]*`)
			case i == len(glob), strings.HasPrefix(glob[i:], `\/`):
				b.WriteString(`.*`)
			case glob[i] == '/':
				b.WriteString(`(?:.*/)?`)
				i++
			default:
				b.WriteString(`[^/]*`)
			}
		case '?':
			b.WriteString(`[^/]`)
			i++
		case '[':
			class, n, ok := translateClass(glob[i:])
			if !ok {
				return "", false
			}
			b.WriteString(class)
			i += n
		case '\\':
			if i+1 == len(glob) {
				return "", false
			}
			i++
			fallthrough
		default:
			_, size := utf8.DecodeRuneInString(glob[i:])
			b.WriteString(regexp.QuoteMeta(glob[i : i+size]))
			i += size
		}
	}
	b.WriteString(`\z`)
	return b.String(), true
}

// classes are the named classes that git knows, without the slash.
var classes = map[string]string{
	"alnum": `[:alnum:]`, "alpha": `[:alpha:]`, "blank": `[:blank:]`, "cntrl": `[:cntrl:]`,
	"digit": `[:digit:]`, "graph": `!-.0-~`, "lower": `[:lower:]`, "print": ` -.0-~`,
	"punct": `!-.:-@\[-\x60{-~`, "space": `[:space:]`, "upper": `[:upper:]`, "xdigit": `[:xdigit:]`,
}

// translateClass writes a class such as [a-z], [!0-9] or [[:alpha:]_], which never matches a
// slash, and says how long it is. One that does not end, or is empty, matches nothing.
func translateClass(glob string) (class string, n int, ok bool) {
	var b strings.Builder
	i := 1
	negated := strings.HasPrefix(glob[i:], "!") || strings.HasPrefix(glob[i:], "^")
	if negated {
		i++
	}
	for first := i; i == first || !strings.HasPrefix(glob[i:], "]"); {
		if rest, named := strings.CutPrefix(glob[i:], "[:"); named {
			name, _, ended := strings.Cut(rest, ":]")
			if !ended || classes[name] == "" {
				return "", 0, false
			}
			b.WriteString(classes[name])
			i += len(name) + 4
			continue
		}
		low, size, ok := classRune(glob[i:])
		if !ok {
			return "", 0, false
		}
		i += size
		high := low
		if strings.HasPrefix(glob[i:], "-") && !strings.HasPrefix(glob[i:], "-]") {
			if high, size, ok = classRune(glob[i+1:]); !ok {
				return "", 0, false
			}
			i += 1 + size
		}
		if low <= '/' && '/' <= high {
			addRange(&b, low, '/'-1)
			low = '/' + 1
		}
		addRange(&b, low, high)
	}
	switch {
	case negated:
		return "[^/" + b.String() + "]", i + 1, true
	case b.Len() == 0:
		return "", 0, false
	}
	return "[" + b.String() + "]", i + 1, true
}

// classRune reads one character of a class, which a backslash may protect.
func classRune(s string) (r rune, size int, ok bool) {
	rest, escaped := strings.CutPrefix(s, `\`)
	r, size = utf8.DecodeRuneInString(rest)
	if escaped {
		size++
	}
	return r, size, rest != ""
}

// addRange adds a range of characters; one that ends before it begins is empty.
func addRange(b *strings.Builder, low, high rune) {
	if low <= high {
		fmt.Fprintf(b, `\x{%x}-\x{%x}`, low, high)
	}
}
