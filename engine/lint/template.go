package lint

import (
	"errors"
	"slices"
	"strings"
)

// Piece is a stretch of a template: literal text, or the source of an expression.
type Piece struct {
	Text string // literal, or expression without the braces and outer spaces
	Expr bool
	At   int // byte offset of Text in the template
}

// What surrounds an expression in a template.
const (
	OpenMark  = "${{"
	closeMark = "}}"
)

// Split cuts a template at its ${{ }}. Quotes and braces inside an expression are respected,
// so that a map or a string may hold }}. With an error it gives the pieces that it found all the
// same; bad is the byte offset of the ${{ that the error is about.
func Split(s string) (pieces []Piece, bad int, err error) {
	pos := 0
	for {
		i := strings.Index(s[pos:], OpenMark)
		if i < 0 {
			break
		}
		open := pos + i
		if i > 0 {
			pieces = append(pieces, Piece{Text: s[pos:open], At: pos})
		}
		start := open + len(OpenMark)
		n := closing(s[start:])
		if n < 0 {
			return pieces, open, errors.New("${{ is not closed by }}")
		}
		src := s[start : start+n]
		body := strings.TrimSpace(src)
		if body != "" {
			pieces = append(pieces, Piece{Text: body, Expr: true, At: start + strings.Index(src, body)})
		} else if err == nil {
			bad, err = open, errors.New("empty expression in ${{ }}")
		}
		pos = start + n + len(closeMark)
	}
	if pos < len(s) || len(pieces) == 0 {
		pieces = append(pieces, Piece{Text: s[pos:], At: pos})
	}
	return pieces, bad, err
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

// TemplateRefs lists what the ${{ }} parts of a template refer to, like Refs. Parts that do
// not parse are passed over: they are reported where they are compiled.
func TemplateRefs(template string) []string {
	var refs []string
	pieces, _, _ := Split(template)
	for _, p := range pieces {
		if found, err := Refs(p.Text); p.Expr && err == nil {
			refs = append(refs, found...)
		}
	}
	slices.Sort(refs)
	return slices.Compact(refs)
}
