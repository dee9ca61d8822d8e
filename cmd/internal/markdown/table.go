package markdown

import (
	"strings"

	"wf/cmd/internal/plain"
	"wf/protocol/lazy"
)

// divider is the line under the head of a table.
var divider = lazy.Regexp(`^ *\|?(?: *:?-+:? *\|)+(?: *:?-+:?)? *\|? *$`)

// table shows the table that the lines begin with, and tells how many of them it is. Where there is none, or where it does not fit,
// these are to be shown as they stand: the rows of a wide table are no tables, and are looked at once.
func (p *printer) table(lines []string) (n int, shown bool) {
	if p.fence != "" || len(lines) < 2 || !strings.Contains(lines[0], "|") || !divider().MatchString(lines[1]) {
		return 1, false
	}
	var rows [][]string
	var widths []int
	for _, l := range lines {
		if !strings.Contains(l, "|") {
			break
		}
		n++
		if n == 2 {
			continue
		}
		row := p.cells(l)
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], plain.Width(c))
		}
		rows = append(rows, row)
	}
	total := -1
	var rule []string // under the head
	for _, w := range widths {
		total += w + 3
		rule = append(rule, strings.Repeat("─", w))
	}
	if total > p.width+2 {
		return n, false
	}
	for i, row := range rows {
		var b strings.Builder
		for k, w := range widths {
			cell := ""
			if k < len(row) {
				cell = row[k]
			}
			if k > 0 {
				b.WriteString(dim.Render(" │ "))
			}
			if k < len(widths)-1 {
				cell = plain.Pad(cell, w)
			}
			if i == 0 {
				cell = strong.Render(cell)
			}
			b.WriteString(cell)
		}
		p.out = append(p.out, b.String())
		if i == 0 {
			p.out = append(p.out, dim.Render(strings.Join(rule, "─┼─")))
		}
	}
	return n, true
}

// cells are the cells of a row, with their marks shown.
func (p *printer) cells(l string) []string {
	l = strings.TrimSpace(l)
	l = strings.TrimSuffix(strings.TrimPrefix(l, "|"), "|")
	var out []string
	for _, c := range strings.Split(strings.ReplaceAll(l, `\|`, "\x00"), "|") {
		out = append(out, p.inline(strings.TrimSpace(strings.ReplaceAll(c, "\x00", "|"))))
	}
	return out
}
