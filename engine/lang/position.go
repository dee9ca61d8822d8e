package lang

import (
	"cmp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"wf/engine/lint"
	"wf/engine/yaml"
)

// markPos is the place of the nth ${{ of a scalar. The marks are searched in the source, in
// which no style of quoting can hide them; a mark written by escapes is taken to be where the
// scalar begins.
func (l *loader) markPos(n *yaml.Node, nth int) Pos {
	for line, col := n.Pos.Line, n.Pos.Col; line <= len(l.lines); line, col = line+1, 1 {
		text := []rune(l.lines[line-1])
		if col > len(text) {
			continue
		}
		rest, from := string(text[col-1:]), 0
		for {
			i := strings.Index(rest[from:], lint.OpenMark)
			if i < 0 {
				break
			}
			if nth == 0 {
				return Pos{Line: line, Col: col + utf8.RuneCountInString(rest[:from+i])}
			}
			nth--
			from += i + len(lint.OpenMark)
		}
	}
	return n.Pos
}

// exprRange is the place of a stretch of an expression, given in runes of src: the expression
// after the ${{ numbered nth of a template, or for nth < 0 a bare one. Source and expression
// are read side by side without regard to space, which folding may move, and to the
// backslashes and doubled quotes of quoting. Where they part, the whole expression is meant.
func (l *loader) exprRange(n *yaml.Node, nth int, src string, from, to int) Range {
	if n == nil {
		return Range{l.root.Pos, l.root.End}
	}
	start, whole := n.Pos, Range{n.Pos, n.End}
	switch {
	case nth >= 0 || hasExpr(n.Value):
		start = l.markPos(n, max(nth, 0))
		whole = Range{start, Pos{Line: start.Line, Col: start.Col + len(lint.OpenMark)}}
		start.Col += len(lint.OpenMark)
	case n.Style == yaml.Literal || n.Style == yaml.Folded:
		start = Pos{Line: n.Pos.Line + 1, Col: 1}
	case n.Style != yaml.Plain:
		start.Col++
	}
	places := l.trace(start, []rune(src))
	if from >= len(places) { // behind the end: the expression ends too early
		from = len(places) - 1
	}
	if places == nil || from < 0 {
		return whole
	}
	r := Range{places[from], places[from]}
	for i := from; i < min(max(to, from+1), len(places)); i++ {
		if places[i].Line == r.Start.Line {
			r.End = places[i]
		}
	}
	r.End.Col++
	return r
}

// trace finds the place of each rune of src, reading the file from start on; nil where the
// file says something else.
func (l *loader) trace(start Pos, src []rune) []Pos {
	out := make([]Pos, len(src))
	line, col := start.Line, start.Col
	var text []rune
	if line <= len(l.lines) {
		text = []rune(l.lines[line-1])
	}
	last := start
	for i := 0; i < len(src); {
		if unicode.IsSpace(src[i]) {
			out[i] = Pos{Line: last.Line, Col: last.Col + 1}
			i++
			continue
		}
		for col > len(text) {
			if line++; line > len(l.lines) {
				return nil
			}
			text, col = []rune(l.lines[line-1]), 1
		}
		c := text[col-1]
		switch next := col < len(text) && text[col] == src[i]; {
		case unicode.IsSpace(c), c != src[i] && c == '\\' && next:
			col++
		case c == src[i]:
			last = Pos{Line: line, Col: col}
			out[i] = last
			if c == '\'' && next && !(i+1 < len(src) && src[i+1] == c) {
				col++ // doubled inside single quotes
			}
			col++
			i++
		default:
			return nil
		}
	}
	return out
}

// textPos is the place of byte at of a scalar's value. A line of the value is found as the
// end of its source line; where quoting changed it, the scalar itself is meant.
func (l *loader) textPos(n *yaml.Node, at int) Pos {
	before := n.Value[:at]
	row := strings.Count(before, "\n")
	begin := strings.LastIndexByte(before, '\n') + 1
	line, _, _ := strings.Cut(n.Value[begin:], "\n")
	number := n.Pos.Line + row
	if n.Style == yaml.Literal {
		number++
	}
	if number > len(l.lines) {
		return n.Pos
	}
	src := l.lines[number-1]
	if i := strings.LastIndex(src, line); i >= 0 {
		return Pos{Line: number, Col: utf8.RuneCountInString(src[:i]+before[begin:]) + 1}
	}
	return n.Pos
}

// place finds what a path of the canonical definition means: edges[3].to[0],
// roles.coder.max_visits. What the file does not spell out is where its nearest parent is.
func (l *loader) place(path string) Range {
	head, rest, _ := strings.Cut(path, ".")
	n := l.root
	switch i, isEdge := index(head, "edges"); {
	case isEdge && i < len(l.edgeNodes) && l.edgeNodes[i] != nil:
		n = l.edgeNodes[i]
	case isEdge: // one that wf added: show the role it leads to
		if rest = ""; i < len(l.edgeNodes) {
			n = cmp.Or(l.roleKeys[l.w.Edges[i].To[0]], n)
		}
	case head == "roles":
		var name string
		if name, rest, _ = strings.Cut(rest, "."); rest != "" {
			n = cmp.Or(l.roleNodes[name], n)
		} else {
			n = cmp.Or(l.roleKeys[name], n)
		}
	default:
		rest = path
	}
	return descend(n, rest)
}

// descend follows a path below n as far as the file goes.
func descend(n *yaml.Node, path string) Range {
	for path != "" {
		var step string
		step, path, _ = strings.Cut(path, ".")
		name, idx, indexed := strings.Cut(step, "[")
		next := n.Get(name)
		if next == nil {
			break
		}
		n = next
		if i, err := strconv.Atoi(strings.TrimSuffix(idx, "]")); indexed && err == nil && n.Kind == yaml.Sequence && i < len(n.Items) {
			n = n.Items[i]
		}
	}
	return Range{n.Pos, n.End}
}

// index reads name[i].
func index(s, name string) (int, bool) {
	rest, ok := strings.CutPrefix(s, name+"[")
	if !ok {
		return 0, false
	}
	i, err := strconv.Atoi(strings.TrimSuffix(rest, "]"))
	return i, err == nil && i >= 0
}
