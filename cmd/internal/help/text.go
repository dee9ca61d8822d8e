package help

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"wf/cmd/internal/markdown"
	"wf/protocol"
	"wf/protocol/lazy"
)

const textWidth = 80

var (
	linkWithin = lazy.Regexp(`\[([^\]]+)\]\(#[^)]*\)`)
	inlineCode = lazy.Regexp("`[^`]+`")
)

// Text is a page of Markdown as plain text. Main headings are underlined, and code of several words keeps
// its marks, so that a command does not run into the sentence around it.
func Text(page string) string {
	var out strings.Builder
	for _, line := range markdown.Lines(strings.Join(unfolded(linkWithin().ReplaceAllString(page, "$1")), "\n"), textWidth) {
		out.WriteString(strings.TrimRight(ansi.Strip(line), " ") + "\n")
	}
	return out.String()
}

// unfolded are the lines of a page in which each paragraph and each item of a list is one line, with
// what plain text needs in place of colours.
func unfolded(page string) []string {
	var out []string
	prose := map[int]bool{}       // which of them are no code
	fenced, joins := false, false // joins: the line before goes on
	for _, line := range strings.Split(strings.TrimRight(page, "\n"), "\n") {
		level := len(line) - len(strings.TrimLeft(line, "#"))
		switch {
		case strings.HasPrefix(line, "```"):
			fenced, joins = !fenced, false
		case fenced, line == "", strings.HasPrefix(line, "    "):
			joins = false
		case level > 0:
			out, joins = append(out, line), false
			if n := utf8.RuneCountInString(line) - level - 1; level < 3 {
				out = append(out, strings.Repeat("=-"[level-1:level], n))
			}
			continue
		case joins && !strings.HasPrefix(line, "- "):
			out[len(out)-1] += " " + strings.TrimSpace(line)
			continue
		default:
			joins, prose[len(out)] = true, true
		}
		out = append(out, line)
	}
	for i := range prose {
		out[i] = inlineCode().ReplaceAllStringFunc(out[i], func(code string) string {
			if strings.Contains(code, " ") {
				return strings.ReplaceAll(code, "`", "\\`")
			}
			return code
		})
	}
	return out
}

// An ExitStatus is a status of the program and what it means.
type ExitStatus struct {
	Status  int
	Meaning string
	Codes   []string // of the errors that end with it
}

// Exits is the topic about the exit statuses.
func Exits(all []ExitStatus) string {
	var b strings.Builder
	b.WriteString("Exit codes of wf:\n\n")
	for _, e := range all {
		fmt.Fprintf(&b, "  %-4d%s\n", e.Status, e.Meaning)
	}
	b.WriteString("\n" + `With -o json an error is an object too: {"schema":"wf.error/v1","code","message","fix","exit"}.` + "\n")
	return b.String()
}

// Nearest is the name that a word was probably meant to be, "" where none is near.
func Nearest(word string, names []string) string {
	best, least := "", 1+len(word)/3
	for _, name := range names {
		if d := protocol.Edits(word, name); d < least || d == least && best == "" {
			best, least = name, d
		}
	}
	return best
}
