package api

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"wf/protocol"
)

// Bounds of words.
const (
	wordMax = 40 // a word has no character that begins behind so many bytes

	// WantedMax is how many words a search may have.
	WantedMax = 32
)

// alone is a script in which each character is a word.
var alone = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana}

// A Word is one of a text, as searches take it: a sequence of letters, marks and digits, in lower case. Han, Hiragana and Katakana are written
// without blanks: there each character is a word.
type Word struct {
	Text     string
	From, To int // where it is written
}

// Words yields the words of a text, in order.
func Words(text string) iter.Seq[Word] {
	return func(yield func(Word) bool) {
		buf, from := make([]byte, 0, 2*wordMax), -1
		end := func(at int) bool {
			w := Word{string(buf), from, at}
			buf, from = buf[:0], -1
			return yield(w)
		}
		for at := 0; at < len(text); {
			c := text[at]
			if c < utf8.RuneSelf {
				if folded := lowASCII[c]; folded != 0 {
					if from < 0 {
						from = at
					}
					if len(buf) < wordMax {
						buf = append(buf, folded)
					}
				} else if from >= 0 && !end(at) {
					return
				}
				at++
				continue
			}
			r, n := utf8.DecodeRuneInString(text[at:])
			switch {
			case unicode.In(r, alone...):
				if from >= 0 && !end(at) {
					return
				}
				if from, buf = at, append(buf, text[at:at+n]...); !end(at + n) {
					return
				}
			case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r) && from >= 0:
				if from < 0 {
					from = at
				}
				if len(buf) < wordMax {
					buf = utf8.AppendRune(buf, unicode.ToLower(unicode.ToUpper(r))) // so that the forms of one letter are one
				}
			case from >= 0 && !end(at):
				return
			}
			at += n
		}
		if from >= 0 {
			end(len(text))
		}
	}
}

// lowASCII are the letters and digits in lower case, and 0 for all else.
var lowASCII = func() (t [utf8.RuneSelf]byte) {
	for c := range t {
		if r := rune(c); unicode.IsLetter(r) || unicode.IsDigit(r) {
			t[c] = byte(unicode.ToLower(r))
		}
	}
	return t
}()

// A Wanted is a word that a search looks for. All of a search must occur in a run, in whatever texts of it.
type Wanted struct {
	Word   string
	Prefix bool // words that begin with it fit as well
}

// Fits reports whether a word of a text is one that is looked for.
func (t Wanted) Fits(word string) bool {
	return word == t.Word || t.Prefix && strings.HasPrefix(word, t.Word)
}

// prefixFrom is how many letters a word has that fits longer ones without a *.
const prefixFrom = 3

// ReadSearch reads a search. A word fits words that begin with it if it has three letters or more, or ends with *; another one fits itself
// alone. A search without a word, or with more than WantedMax, is an error wrapping protocol.ErrBadRequest.
func ReadSearch(search string) ([]Wanted, error) {
	var out []Wanted
	for w := range Words(search) {
		t := Wanted{Word: w.Text, Prefix: utf8.RuneCountInString(w.Text) >= prefixFrom || strings.HasPrefix(search[w.To:], "*")}
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	switch {
	case len(out) == 0:
		return nil, protocol.ErrBadRequest.With("give a word that was said in the run", "search=%.100q: it has no letter and no digit", search)
	case len(out) > WantedMax:
		return nil, protocol.ErrBadRequest.With("leave some out", "search=%.100q has %d words, at most %d are looked for", search, len(out), WantedMax)
	}
	return out, nil
}
