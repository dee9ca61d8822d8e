package markdown

import (
	"regexp"
	"strings"
	"sync"

	"charm.land/lipgloss/v2"
)

// spans are the marks inside of a line, the first that matches is taken. What is between them
// holds no marks of its own.
var spans = sync.OnceValue(func() []pattern {
	return []pattern{
		{regexp.MustCompile("^``(.+?)``"), &code},
		{regexp.MustCompile("^`([^`]+)`"), &code},
		{regexp.MustCompile(`^\*\*(\S|\S.*?\S)\*\*`), &strong},
		{regexp.MustCompile(`^__(\S|\S.*?\S)__\b`), &strong},
		{regexp.MustCompile(`^~~(\S|\S.*?\S)~~`), &struck},
		{regexp.MustCompile(`^\*([^\s*]|[^\s*][^*]*[^\s*])\*`), &slanted},
		{regexp.MustCompile(`^_([^\s_]|[^\s_][^_]*[^\s_])_\b`), &slanted},
		{regexp.MustCompile(`^!?\[([^\]]+)\]\(([^()\s]+)\)`), nil},
	}
})

type pattern struct {
	re    *regexp.Regexp
	style *lipgloss.Style // nil is a link
}

// inline gives the marks of a line their looks.
func inline(s string) string {
	return marked(s, func(style *lipgloss.Style, text string) string { return style.Render(text) })
}

// plainly takes the marks of a line away.
func plainly(s string) string {
	return marked(s, func(_ *lipgloss.Style, text string) string { return text })
}

func marked(s string, show func(*lipgloss.Style, string) string) string {
	if !strings.ContainsAny(s, "`*_~[\\") {
		return s
	}
	var b strings.Builder
	for word := false; s != ""; { // word: behind a letter, where _ is a part of a name
		i := strings.IndexAny(s, "`*_~[!\\")
		if i < 0 {
			b.WriteString(s)
			break
		}
		if i > 0 {
			b.WriteString(s[:i])
			word, s = letter(s[i-1]), s[i:]
			continue
		}
		n := 1
		if s[0] == '\\' && len(s) > 1 && strings.IndexByte("\\`*_~[]()#-+.!>|", s[1]) >= 0 {
			b.WriteByte(s[1])
			word, s = false, s[2:]
			continue
		}
		shown := s[:1]
		if !word || s[0] != '_' {
			if text, length := span(s, show); length > 0 {
				shown, n = text, length
			}
		}
		b.WriteString(shown)
		word, s = n == 1 && letter(s[0]), s[n:]
	}
	return b.String()
}

// span shows the marked text that s begins with; n is how much of s that is, 0 is none.
func span(s string, show func(*lipgloss.Style, string) string) (text string, n int) {
	for _, x := range spans() {
		m := x.re.FindStringSubmatch(s)
		switch {
		case m == nil:
		case x.style != nil:
			return show(x.style, m[1]), len(m[0])
		case m[1] == m[2]:
			return show(&code, m[2]), len(m[0])
		default:
			return m[1] + " " + show(&dim, "("+m[2]+")"), len(m[0])
		}
	}
	return "", 0
}

func letter(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= 0x80
}
