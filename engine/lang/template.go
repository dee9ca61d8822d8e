package lang

import (
	"fmt"
	"strings"
)

// piece is a stretch of a template: literal text, or the source of an expression.
type piece struct {
	text string // literal, or expression without the braces and outer spaces
	expr bool
	at   int // byte offset of text in the template
	nth  int // of an expression: how many ${{ stand before it
}

// badTemplate is a template with braces that do not close.
type badTemplate struct {
	nth int
	msg string
}

func (e *badTemplate) Error() string { return e.msg }

const (
	openMark  = "${{"
	closeMark = "}}"
)

// split cuts a template at its ${{ }}. Quotes and braces inside an expression are respected,
// so that a map or a string may hold }}. With an error it still gives the pieces before it.
func split(s string) ([]piece, error) {
	var out []piece
	pos, nth := 0, 0
	for {
		i := strings.Index(s[pos:], openMark)
		if i < 0 {
			break
		}
		if i > 0 {
			out = append(out, piece{text: s[pos : pos+i], at: pos})
		}
		start := pos + i + len(openMark)
		n := closing(s[start:])
		if n < 0 {
			return out, &badTemplate{nth, "${{ is not closed by }}"}
		}
		src := s[start : start+n]
		body := strings.TrimSpace(src)
		if body == "" {
			return out, &badTemplate{nth, "empty expression in ${{ }}"}
		}
		out = append(out, piece{text: body, expr: true, at: start + strings.Index(src, body), nth: nth})
		nth += 1 + strings.Count(body, openMark)
		pos = start + n + len(closeMark)
	}
	if pos < len(s) || len(out) == 0 {
		out = append(out, piece{text: s[pos:], at: pos})
	}
	return out, nil
}

// closing is the offset of the }} that ends the expression at the start of s, or −1.
func closing(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '"', '\'', '`':
			for i++; i < len(s) && s[i] != c; i++ {
				if s[i] == '\\' && c != '`' {
					i++
				}
			}
		case '{':
			depth++
		case '}':
			if depth == 0 {
				if strings.HasPrefix(s[i:], closeMark) {
					return i
				}
				return -1
			}
			depth--
		}
	}
	return -1
}

// hasExpr reports whether s holds the start of an expression.
func hasExpr(s string) bool { return strings.Contains(s, openMark) }

// template is compiled text.
type template struct {
	parts []part
}

type part struct {
	text string
	code *code // nil for literal text
}

func compileTemplate(s string, m mode) (*template, error) {
	if s == "" {
		return nil, nil
	}
	pieces, err := split(s)
	if err != nil {
		return nil, err
	}
	t := &template{}
	for _, p := range pieces {
		if !p.expr {
			t.parts = append(t.parts, part{text: p.text})
			continue
		}
		c, err := compile(p.text, m)
		if err != nil {
			return nil, err
		}
		t.parts = append(t.parts, part{code: c})
	}
	return t, nil
}

// sources are the expressions of t.
func (t *template) sources() []string {
	var out []string
	if t == nil {
		return out
	}
	for _, p := range t.parts {
		if p.code != nil {
			out = append(out, p.code.src)
		}
	}
	return out
}

// text renders t; null is nothing, objects and lists are canonical JSON.
func (t *template) text(e *env) (string, error) {
	if t == nil {
		return "", nil
	}
	var b strings.Builder
	for _, p := range t.parts {
		if p.code == nil {
			b.WriteString(p.text)
			continue
		}
		v, err := p.code.eval(e)
		if err != nil {
			return "", err
		}
		s, err := textOf(v)
		if err != nil {
			return "", fmt.Errorf("%s: %w", p.code.src, err)
		}
		if err := e.Budget.take(len(s), 1); err != nil {
			return "", fmt.Errorf("%s: %w", p.code.src, err)
		}
		b.WriteString(s)
	}
	return b.String(), nil
}

// value is the value of t: of its only expression, else its text. Space around the only
// expression does not count.
func (t *template) value(e *env) (any, error) {
	if c := t.single(); c != nil {
		return c.eval(e)
	}
	return t.text(e)
}

func (t *template) single() *code {
	if t == nil {
		return nil
	}
	var only *code
	for _, p := range t.parts {
		switch {
		case p.code != nil && only == nil:
			only = p.code
		case p.code != nil || strings.TrimSpace(p.text) != "":
			return nil
		}
	}
	return only
}
