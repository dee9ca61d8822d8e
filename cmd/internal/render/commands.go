package render

import (
	"strings"
	"unicode"
)

// Commands is a text in which the command lines of wf work where this one does: each has the flags, such as --store, with which this
// one was told where. What stands in quotes is left as it is.
func (p *Printer) Commands(text string) string {
	if p.Through == nil {
		return text
	}
	var out strings.Builder
	quoted, before := false, ' '
	for i, c := range text {
		out.WriteRune(c)
		switch {
		case c == '\'' && before != '\\' && (quoted || !unicode.IsLetter(before)): // not that of the run's
			quoted = !quoted
		case quoted:
		case c == ' ' && strings.HasSuffix(text[:i], "wf") && wordBefore(text[:i-2]):
			rest := strings.FieldsFunc(text[i+1:min(len(text), i+1+wordsLooked)], func(c rune) bool { return c == ' ' || strings.ContainsRune(",;:)", c) })
			if words, flags := p.Through(rest); words != "" && strings.HasPrefix(text[i+1:], words) && !strings.HasPrefix(text[i+1+len(words):], " --store ") {
				out.WriteString(words + " " + flags)
				return out.String() + p.Commands(text[i+1+len(words):])
			}
		}
		before = c
	}
	return out.String()
}

// wordsLooked is how much of a text is looked at for the name of a command.
const wordsLooked = 40

// wordBefore reports whether a word may begin behind a text.
func wordBefore(text string) bool {
	return text == "" || strings.ContainsRune(" (\n", rune(text[len(text)-1]))
}
