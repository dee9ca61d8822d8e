package api

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"wf/protocol"
)

// Bounds of words.
const (
	wordMax = 40 // a word has no character that begins behind so many bytes

	sequenceMax = 64 * wordMax // all characters of a sequence are written within so many bytes, each with 30 marks of 4 bytes at most

	// WantedMax is how many words a search may have.
	WantedMax = 32
)

// alone are the characters that are a word each: those of scripts that are written without blanks, with the marks of both that prolong a vowel.
var alone = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, {R16: []unicode.Range16{{Lo: 'ー', Hi: 'ー', Stride: 1}, {Lo: 'ｰ', Hi: 'ｰ', Stride: 1}}}}

// unseen are characters within a word that show nothing: which variant or ligature is drawn, and where it may be parted.
var unseen = &unicode.RangeTable{R16: []unicode.Range16{{Lo: 0xad, Hi: 0xad, Stride: 1}, {Lo: 0x34f, Hi: 0x34f, Stride: 1}, {Lo: 0x200c, Hi: 0x200d, Stride: 1}, {Lo: 0x2060, Hi: 0x2060, Stride: 1}}, LatinOffset: 1}

// A Word is one of a text, as searches take it: a sequence of letters, marks and digits, in lower case and composed (NFC). Han, Hiragana and
// Katakana are written without blanks: there each character is a word.
type Word struct {
	Text     string
	From, To int  // where it is written
	Alone    bool // it is a character of a script without blanks
}

// Words yields the words of a text, in order.
func Words(text string) iter.Seq[Word] {
	return func(yield func(Word) bool) {
		buf, from := make([]byte, 0, 2*wordMax), -1
		end := func(at int) bool {
			w := Word{Text: string(buf), From: from, To: at}
			buf, from = buf[:0], -1
			return yield(w)
		}
		letter := func(r rune, at, next int) bool {
			switch {
			case unicode.In(r, alone...):
				return (from < 0 || end(at)) && yield(Word{string(r), at, next, true})
			case unicode.In(r, unseen, unicode.Variation_Selector):
			case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r) && from >= 0:
				if from < 0 {
					from = at
				}
				if len(buf) < wordMax {
					buf = utf8.AppendRune(buf, fold(r))
				}
			default:
				return from < 0 || end(at)
			}
			return true
		}
		isComposed := 0 // up to here
		for at := 0; at < len(text); {
			if at >= isComposed {
				if isComposed = at + norm.NFC.QuickSpanString(text[at:]); at == isComposed {
					next := at + max(1, norm.NFC.NextBoundaryInString(text[at:], true))
					for _, r := range composed(text[at:next]) {
						if !letter(r, at, next) {
							return
						}
					}
					at = next
					continue
				}
			}
			c := text[at]
			if c >= utf8.RuneSelf {
				r, n := utf8.DecodeRuneInString(text[at:])
				if !letter(r, at, at+n) {
					return
				}
				at += n
				continue
			}
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
		}
		if from >= 0 {
			end(len(text))
		}
	}
}

// composed is a text in NFC: how its letters were put together makes no difference.
func composed(text string) string {
	if norm.NFC.IsNormalString(text) {
		return text
	}
	return norm.NFC.String(text)
}

// fold is a letter in lower case; the forms of one letter are one.
func fold(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }

// Folded is a text in the form in which two are compared: in lower case and composed.
func Folded(text string) string { return strings.Map(fold, composed(text)) }

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
	Chars  bool // Word is a sequence of characters that are a word each; a text fits in which all of them occur
}

// Fits reports whether a word of a text is one that is looked for, or a character of it.
func (t Wanted) Fits(word string) bool {
	if t.Chars {
		return strings.Contains(t.Word, word)
	}
	return word == t.Word || t.Prefix && strings.HasPrefix(word, t.Word)
}

// At reports whether what is looked for is written where a word of a text is: of a sequence, all of it.
func (t Wanted) At(text string, w Word) bool {
	if !t.Chars {
		return t.Fits(w.Text)
	}
	left, at := t.Word, w.From
	for x := range Words(text[w.From:min(len(text), w.From+sequenceMax)]) {
		rest, ok := strings.CutPrefix(left, x.Text)
		if !ok || !x.Alone || !beside(text[at:w.From+x.From]) {
			return false
		}
		if left, at = rest, w.From+x.To; left == "" {
			return true
		}
	}
	return false
}

// beside reports whether two characters are side by side that have a text between them: it has marks alone.
func beside(between string) bool {
	return !strings.ContainsFunc(between, func(r rune) bool { return !unicode.IsMark(r) && !unicode.Is(unseen, r) })
}

// prefixFrom is how many letters a word has that fits longer ones without a *.
const prefixFrom = 3

// letters is how many letters a word has; a syllable of Hangul has two at least.
func letters(word string) (n int) {
	for _, r := range word {
		if n++; unicode.Is(unicode.Hangul, r) {
			n++
		}
	}
	return n
}

// ReadSearch reads a search. A word fits words that begin with it if it has three letters or more, or ends with *; another one fits itself
// alone. Characters that are a word each and follow each other are one sequence. A search without a word, or with more than WantedMax, is an
// error wrapping protocol.ErrBadRequest.
func ReadSearch(search string) ([]Wanted, error) {
	var out []Wanted
	var last Wanted
	end := -1 // of last, where it is a sequence
	add := func() {
		if last.Word != "" && !slices.Contains(out, last) {
			out = append(out, last)
		}
	}
	for w := range Words(search) {
		if w.Alone && end >= 0 && beside(search[end:w.From]) {
			if end = w.To; len(last.Word) < wordMax {
				last = Wanted{Word: last.Word + w.Text, Chars: true}
			}
			continue
		}
		add()
		if last, end = (Wanted{Word: w.Text}), -1; w.Alone {
			end = w.To
		} else {
			last.Prefix = letters(w.Text) >= prefixFrom || strings.HasPrefix(search[w.To:], "*")
		}
	}
	add()
	switch {
	case len(out) == 0:
		return nil, protocol.ErrBadRequest.With("give a word that was said in the run", "search=%.100q: it has no letter and no digit", search)
	case len(out) > WantedMax:
		return nil, protocol.ErrBadRequest.With("leave some out", "search=%.100q has %d words, at most %d are looked for", search, len(out), WantedMax)
	}
	return out, nil
}
