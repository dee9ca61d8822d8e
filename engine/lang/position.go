package lang

import (
	"strconv"
	"strings"
	"unicode/utf8"

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
			i := strings.Index(rest[from:], openMark)
			if i < 0 {
				break
			}
			if nth == 0 {
				return Pos{Line: line, Col: col + utf8.RuneCountInString(rest[:from+i])}
			}
			nth--
			from += i + len(openMark)
		}
	}
	return n.Pos
}

// exprRange is the place of a stretch of an expression, given in runes from where its source
// begins: after the ${{ numbered nth of a template, or for nth < 0 at the start of a bare one.
// Where the file does not hold the text as it is, the whole expression is meant.
func (l *loader) exprRange(n *yaml.Node, nth int, src string, from, to int) Range {
	if n == nil {
		return Range{l.root.Pos, l.root.End}
	}
	start, whole := n.Pos, Range{n.Pos, n.End}
	switch {
	case nth >= 0:
		start = l.markPos(n, nth)
		whole = Range{start, Pos{Line: start.Line, Col: start.Col + len(openMark)}}
	case n.Style == yaml.Literal || n.Style == yaml.Folded:
		start = Pos{Line: n.Pos.Line + 1, Col: 1}
	}
	runes := []rune(src)
	from, to = min(max(from, 0), len(runes)), min(max(to, from), len(runes))
	first := src
	if i := strings.IndexByte(src, '\n'); i >= 0 {
		first = src[:i]
	}
	// the first line of the expression, searched from where it must begin
	for line, col := start.Line, start.Col; line <= min(start.Line+2, len(l.lines)); line, col = line+1, 1 {
		text := []rune(l.lines[line-1])
		if col > len(text)+1 {
			continue
		}
		i := strings.Index(string(text[col-1:]), first)
		if i < 0 {
			continue
		}
		base := col + utf8.RuneCountInString(string(text[col-1:])[:i])
		if from <= utf8.RuneCountInString(first) && !strings.Contains(string(runes[:from]), "\n") {
			end := min(max(to, from+1), max(utf8.RuneCountInString(first), from+1))
			return Range{Pos{Line: line, Col: base + from}, Pos{Line: line, Col: base + end}}
		}
		return l.laterLine(Range{Pos{Line: line, Col: base}, Pos{Line: line, Col: base + utf8.RuneCountInString(first)}}, runes, from, to)
	}
	return whole
}

// laterLine is the place of something that stands on a later line of an expression.
func (l *loader) laterLine(whole Range, src []rune, from, to int) Range {
	before := string(src[:from])
	line := whole.Start.Line + strings.Count(before, "\n")
	if line > len(l.lines) {
		return whole
	}
	tail := string(src[from:to])
	col := strings.Index(l.lines[line-1], tail)
	if tail == "" || col < 0 {
		return whole
	}
	at := utf8.RuneCountInString(l.lines[line-1][:col]) + 1
	return Range{Pos{Line: line, Col: at}, Pos{Line: line, Col: at + utf8.RuneCountInString(tail)}}
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
	var n *yaml.Node
	if i, ok := index(head, "edges"); ok {
		if i >= len(l.edgeNodes) {
			return Range{l.root.Pos, l.root.End}
		}
		if n = l.edgeNodes[i]; n == nil { // an edge that wf added: show the role it leads to
			to := l.w.Edges[i].To[0]
			if k := l.roleKeys[to]; k != nil {
				return Range{k.Pos, k.End}
			}
			return Range{l.root.Pos, l.root.End}
		}
	} else if head == "roles" {
		var name string
		name, rest, _ = strings.Cut(rest, ".")
		k := l.roleKeys[name]
		if k == nil {
			return Range{l.root.Pos, l.root.End}
		}
		if rest == "" {
			return Range{k.Pos, k.End}
		}
		n = l.roleNodes[name]
	} else {
		n, rest = l.root, path
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
