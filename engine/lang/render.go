package lang

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/clipperhouse/displaywidth"

	"wf/engine/yaml"
	"wf/protocol"
)

// Render writes ds for people: place, code and message, the source line with a caret under
// what is meant, the hint, and at the end a count. src is the text of the file that Load
// read. Nothing is written where ds is empty.
//
//	review.yaml:14:9: error[WF010]: unknown role "reviwer"
//	   |
//	14 |     to: reviwer
//	   |         ^^^^^^^ did you mean "reviewer"? (defined at line 6)
//	1 error, 0 warnings in 1 file
func Render(w io.Writer, src []byte, ds []Diagnostic, color bool) {
	if len(ds) == 0 {
		return
	}
	lines := yaml.Lines(src)
	paint := func(code, s string) string {
		if !color || s == "" {
			return s
		}
		return "\x1b[" + code + "m" + s + "\x1b[0m"
	}
	var b strings.Builder
	files := map[string]bool{}
	errs, warnings := 0, 0
	for i := range ds {
		d := &ds[i]
		files[d.File] = true
		tone := "1;31"
		if d.Severity == SeverityWarning {
			warnings++
			tone = "1;33"
		} else {
			errs++
		}
		fmt.Fprintf(&b, "%s: %s: %s\n", paint("1", fmt.Sprintf("%s:%d:%d", visible(d.File), d.Range.Start.Line, d.Range.Start.Col)),
			paint(tone, d.Severity+"["+d.Code+"]"), visible(d.Message))
		line, known := d.line, d.line != ""
		if n := d.Range.Start.Line; !known && n >= 1 && n <= len(lines) {
			line, known = lines[n-1], true
		}
		num := strconv.Itoa(d.Range.Start.Line)
		gutter := strings.Repeat(" ", len(num)) + " "
		inline := ""
		if known {
			if strings.HasPrefix(d.Hint, "did you mean") {
				inline = " " + visible(d.Hint)
			}
			text, pad, mark := snippet(line, d.Range)
			fmt.Fprintf(&b, "%s\n%s %s\n%s %s%s%s\n", paint("34", gutter+"|"), paint("34", num+" |"), text,
				paint("34", gutter+"|"), pad, paint(tone, mark), paint("32", inline))
		}
		if d.Hint != "" && inline == "" {
			fmt.Fprintf(&b, "%s %s\n", paint("34", gutter+"="), paint("32", visible(d.Hint)))
		}
	}
	fmt.Fprintf(&b, "%s, %s in %s\n", protocol.Plural(errs, "error"), protocol.Plural(warnings, "warning"), protocol.Plural(len(files), "file"))
	_, _ = io.WriteString(w, b.String()) // a failed writer is the caller's to notice
}

// snippetMax is how many runes of a long line are shown around the caret.
const snippetMax = 160

// snippet prepares a source line: its visible text, the space before the caret, the caret.
// Tabs stand in the space as tabs, and wide characters as the columns they take.
func snippet(line string, r Range) (text, pad, mark string) {
	runes := []rune(visible(line))
	from := min(max(r.Start.Col-1, 0), len(runes))
	to := len(runes)
	if r.End.Line == r.Start.Line {
		to = min(max(r.End.Col-1, from), len(runes))
	}
	if len(runes) > snippetMax {
		lo := max(0, from-snippetMax/2)
		hi := min(len(runes), lo+snippetMax)
		cut := append([]rune(nil), runes[lo:hi]...)
		if lo > 0 {
			cut[0] = '…'
		}
		if hi < len(runes) {
			cut[len(cut)-1] = '…'
		}
		runes, from, to = cut, from-lo, min(to-lo, len(cut))
	}
	var before strings.Builder
	for _, c := range runes[:from] {
		if c == '\t' {
			before.WriteByte('\t')
		} else {
			before.WriteString(strings.Repeat(" ", displaywidth.Rune(c)))
		}
	}
	width := displaywidth.String(strings.ReplaceAll(string(runes[from:max(from, to)]), "\t", " "))
	return string(runes), before.String(), strings.Repeat("^", max(width, 1))
}

// visible replaces what a terminal would obey.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && (unicode.IsControl(r) || r == '\u202e' || r == '\u2028' || r == '\u2029') {
			return '\ufffd'
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}
