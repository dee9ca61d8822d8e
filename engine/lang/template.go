package lang

import (
	"fmt"
	"strings"

	"wf/engine/lint"
)

// hasExpr reports whether s holds the start of an expression.
func hasExpr(s string) bool { return strings.Contains(s, lint.OpenMark) }

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
	pieces, _, err := lint.Split(s)
	if err != nil {
		return nil, err
	}
	t := &template{}
	for _, p := range pieces {
		if !p.Expr {
			t.parts = append(t.parts, part{text: p.Text})
			continue
		}
		c, err := compile(p.Text, m)
		if err != nil {
			return nil, err
		}
		t.parts = append(t.parts, part{code: c})
	}
	return t, nil
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
