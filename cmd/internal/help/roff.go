package help

import (
	"fmt"
	"strings"
)

// A manualPage is a page of the manual that is being written, for man(1) of groff and mandoc. What it
// is given is text: no character of it is a request to the formatter.
type manualPage struct{ b strings.Builder }

// newManualPage begins a page with its title, its section of the manual, a date (2006-01-02, or "" for
// none), what it comes from, such as a program with its version, and the name of the manual.
func newManualPage(title string, section int, date, source, manual string) *manualPage {
	p := &manualPage{}
	fmt.Fprintf(&p.b, ".TH %s %d %s %s %s\n", roffArgument(strings.ToUpper(title)), section, roffArgument(date), roffArgument(source), roffArgument(manual))
	p.b.WriteString(".nh\n.ad l\n") // no hyphens in names that are to be copied, no stretched lines
	return p
}

// String is the page so far.
func (p *manualPage) String() string { return p.b.String() }

// section begins a section, such as NAME.
func (p *manualPage) section(title string) { fmt.Fprintf(&p.b, ".SH %s\n", roffArgument(title)) }

// name is the content of the section NAME, from which indexes of manuals are made.
func (p *manualPage) name(title, what string) {
	fmt.Fprintf(&p.b, "%s \\- %s\n", roffText(title), roffText(what))
}

// text writes paragraphs, which an empty line divides. Lines that begin with a space are kept as
// they are.
func (p *manualPage) text(text string) {
	for i, part := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		switch {
		case strings.HasPrefix(part, " "):
			p.code(part)
			continue
		case i > 0:
			p.b.WriteString(".PP\n")
		}
		p.lines(part)
	}
}

// code writes lines as they are, without what indents all of them.
func (p *manualPage) code(text string) {
	p.b.WriteString(".PP\n.RS 4\n.nf\n")
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	indent := -1
	for _, line := range lines {
		if own := len(line) - len(strings.TrimLeft(line, " ")); strings.TrimSpace(line) != "" && (indent < 0 || own < indent) {
			indent = own
		}
	}
	for _, line := range lines {
		p.line(line[min(max(indent, 0), len(line)):])
	}
	p.b.WriteString(".fi\n.RE\n")
}

// item writes an entry of a list: its name, made with bold and italic, and below it a text.
func (p *manualPage) item(name, text string) {
	fmt.Fprintf(&p.b, ".TP\n%s\n", name)
	p.lines(text)
}

// made writes a line that was made with bold, italic and roffText, as a paragraph of its own.
func (p *manualPage) made(line string) { fmt.Fprintf(&p.b, ".PP\n%s\n", line) }

func (p *manualPage) lines(text string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			p.line(line)
		}
	}
}

func (p *manualPage) line(text string) {
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		p.b.WriteString(`\&`) // a line with such a beginning is a request
	}
	p.b.WriteString(roffText(text) + "\n")
}

func bold(text string) string { return `\fB` + roffText(text) + `\fR` }

// italic is a text in italics or underlined, for what a user replaces.
func italic(text string) string { return `\fI` + roffText(text) + `\fR` }

// roffCharacters are the characters that stand for others, or are replaced by typographic ones.
var roffCharacters = map[rune]string{
	'\\': `\e`, '-': `\-`, '\'': `\(aq`, '`': `\(ga`, '^': `\(ha`, '~': `\(ti`, '"': `\(dq`,
}

// roffText writes a text so that it is shown as it is: a minus can be copied into a shell.
func roffText(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case roffCharacters[r] != "":
			b.WriteString(roffCharacters[r])
		case r < ' ' && r != '\n' || r == 0x7f:
			b.WriteByte(' ')
		case r > 0x7e:
			fmt.Fprintf(&b, `\[u%04X]`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func roffArgument(text string) string { return `"` + roffText(text) + `"` }
