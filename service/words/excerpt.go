package words

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"wf/api"
)

// Sizes of excerpts, in characters.
const (
	excerptMax  = 200
	excerptLead = 60 // before the first word that fits
)

// excerpt is a part of a text in which words of a question stand, as one line without control characters; "" where none does.
func excerpt(text string, terms []api.Wanted) string {
	text = cut(text, textMax)
	at := -1
	for w := range api.Words(text) {
		if slices.ContainsFunc(terms, func(t api.Wanted) bool { return t.At(text, w) }) {
			at = w.From
			break
		}
		if at < 0 && slices.ContainsFunc(terms, func(t api.Wanted) bool { return t.Fits(w.Text) }) { // a part of a sequence
			at = w.From
		}
	}
	if at < 0 {
		return ""
	}
	from := at
	for n := 0; from > 0 && n < excerptLead; n++ {
		_, size := utf8.DecodeLastRuneInString(text[:from])
		from -= size
	}
	if from > 0 { // at a word
		if i := strings.IndexFunc(text[from:at], unicode.IsSpace); i >= 0 {
			from += i
		}
	}
	var b strings.Builder
	n, blank := 0, false
	put := func(r rune) bool {
		if n == excerptMax-1 {
			b.WriteString("…")
			return false
		}
		b.WriteRune(r)
		n++
		return true
	}
	if from > 0 {
		put('…')
	}
	for _, r := range text[from:] {
		if unicode.IsSpace(r) || r == 0 {
			blank = b.Len() > 0
			continue
		}
		if !unicode.IsGraphic(r) {
			continue
		}
		if blank && !put(' ') || !put(r) {
			break
		}
		blank = false
	}
	return b.String()
}

// textMax is how many bytes of a text are indexed.
const textMax = 64 << 10

// cut is the beginning of a text, of at most so many bytes, without a part of a character.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
