package main

import (
	"strings"
	"unicode/utf8"

	"wf/protocol/lazy"
)

// helpWidth is the width of a page at the terminal.
const helpWidth = 80

var (
	pageLink = lazy.Regexp(`\[([^\]]+)\]\(([^)]+)\)`)
	pageMark = lazy.Regexp("\\*\\*?([^* ][^*]*)\\*\\*?|`([^`]+)`")
)

// pageText is a page of Markdown as plain text: paragraphs and lists are wrapped, headings underlined,
// examples indented. It knows what the pages of wf use: no tables, no HTML but comments.
func pageText(markdown string) string {
	p := pager{}
	for _, line := range strings.Split(strings.TrimRight(markdown, "\n"), "\n") {
		p.line(line)
	}
	p.flush()
	return strings.TrimLeft(p.out.String(), "\n")
}

// A pager collects the lines of a paragraph or of an item of a list.
type pager struct {
	out    strings.Builder
	words  []string
	indent string // of further lines
	first  string // in front of the first line
	fenced bool
}

func (p *pager) line(line string) {
	switch {
	case strings.HasPrefix(line, "```"):
		p.flush()
		p.fenced = !p.fenced
	case p.fenced:
		p.write("    " + line)
	case strings.HasPrefix(line, "#"):
		p.flush()
		p.heading(line)
	case strings.HasPrefix(line, "    "):
		p.flush()
		p.write(line)
	case strings.HasPrefix(line, "- "):
		p.flush()
		p.first, p.indent = "  - ", "    "
		p.add(line[2:])
	case strings.TrimSpace(line) == "":
		p.flush()
		p.write("")
	case strings.HasPrefix(line, "<!--"):
	default:
		p.add(strings.TrimSpace(line))
	}
}

func (p *pager) write(line string) { p.out.WriteString(strings.TrimRight(line, " ") + "\n") }

// heading underlines a title; those of the lowest level stand alone.
func (p *pager) heading(line string) {
	level := len(line) - len(strings.TrimLeft(line, "#"))
	title := bare(strings.TrimSpace(line[level:]))
	p.write(title)
	switch level {
	case 1:
		p.write(strings.Repeat("=", utf8.RuneCountInString(title)))
	case 2:
		p.write(strings.Repeat("-", utf8.RuneCountInString(title)))
	}
}

// add takes in a line of a paragraph. Marks and links may go on over its end.
func (p *pager) add(line string) { p.words = append(p.words, strings.Fields(line)...) }

// flush writes the paragraph.
func (p *pager) flush() {
	line := p.first
	for i, word := range strings.Fields(bare(strings.Join(p.words, " "))) {
		if i > 0 && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > helpWidth {
			p.write(line)
			line = p.indent + word
			continue
		}
		if i > 0 {
			line += " "
		}
		line += word
	}
	if len(p.words) > 0 {
		p.write(line)
	}
	p.words, p.first, p.indent = nil, "", ""
}

// bare is a text without the marks of Markdown; links within the page keep their words alone.
func bare(text string) string {
	text = pageLink().ReplaceAllStringFunc(text, func(link string) string {
		m := pageLink().FindStringSubmatch(link)
		if strings.HasPrefix(m[2], "#") || m[1] == m[2] {
			return m[1]
		}
		return m[1] + " (" + m[2] + ")"
	})
	return pageMark().ReplaceAllStringFunc(text, func(mark string) string {
		m := pageMark().FindStringSubmatch(mark)
		switch {
		case strings.Contains(m[2], " "):
			return mark // without its marks a command would run into the sentence
		case m[2] != "":
			return m[2]
		}
		return m[1]
	})
}
