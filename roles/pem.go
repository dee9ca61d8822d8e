package roles

import (
	"bytes"
	"strings"
)

const (
	pemBegin = "-----BEGIN "
	pemEnd   = "-----END "

	labelMax = 48       // characters of what stands behind BEGIN, the dashes included
	pemMax   = 64 << 10 // bytes of a key
	pemLine  = 40       // characters from which a run of Base64 is a line of a key
	pemMin   = 16       // characters of Base64 in a key
	markMax  = 10       // bytes that tell what a line begins with, lineMark and pemEnd among them
)

var (
	labelSet = setOf(upperCase + digits + " ")
	pemGap   = setOf(" \t\r\n\"'`,+\\") // between lines, also in the source of a program
	anyLine  = without("\\")
)

// privateKey is a private key in PEM form. Its lines may be strings of a program or of JSON,
// and its end may be missing; what mentions such a key only, has no body and is none.
func privateKey(in []byte, at, n int, ended bool) finding {
	label, ok := runOf(in[at+n:], labelSet, labelMax, ended)
	if !ok {
		return finding{verdict: undecided}
	}
	i := at + n + label
	if !bytes.Contains(in[at:i], []byte("PRIVATE KEY")) {
		return finding{}
	}
	dashes, ok := runOf(in[i:], setOfDash, 5, ended)
	switch {
	case !ok:
		return finding{verdict: undecided}
	case dashes < 5:
		return finding{}
	}
	to, ok := pemBody(in[:min(len(in), at+pemMax)], i+5, ended || len(in) > at+pemMax)
	switch {
	case !ok:
		return finding{verdict: undecided}
	case to == 0:
		return finding{}
	}
	return finding{verdict: isKey, to: to - at}
}

var setOfDash = setOf("-")

// pemBody is where the key ends whose body begins at i, 0 if it has none.
func pemBody(in []byte, i int, ended bool) (to int, ok bool) {
	size := 0 // characters of Base64
	for {
		i = skipGap(in, i)
		if !ended && len(in)-i < markMax {
			return 0, false
		}
		run, ok := runOf(in[i:], base64Set, len(in), ended)
		if !ok {
			return 0, false
		}
		line := i + run
		switch {
		case run >= pemLine:
			size, to, i = size+run, line, line
			continue
		case run > 0 && line < len(in) && strings.IndexByte("-:", in[line]) >= 0:
			if !ended && len(in)-i < len("Proc-Type: ") {
				return 0, false
			}
			if header(in[i:]) {
				rest, ok := runOf(in[i:], headerSet, len(in), ended)
				if !ok {
					return 0, false
				}
				i += rest
				continue
			}
		}
		// A short line is the last one.
		i = skipGap(in, line)
		rest := in[i:]
		if !ended && len(rest) < markMax {
			return 0, false
		}
		if bytes.HasPrefix(rest, []byte(pemEnd)) {
			label, ok := runOf(rest[len(pemEnd):], labelSet, labelMax, ended)
			if !ok {
				return 0, false
			}
			dashes, ok := runOf(rest[len(pemEnd)+label:], setOfDash, 5, ended)
			if !ok {
				return 0, false
			}
			if size+run >= pemMin {
				return i + len(pemEnd) + label + dashes, true
			}
			return 0, true
		}
		if size < pemLine {
			return 0, true
		}
		return to, true
	}
}

var headerSet = func() *set {
	s := *anyLine
	s[' '] = true
	return &s
}()

// header reports whether in begins with a header of a key.
func header(in []byte) bool {
	for _, name := range []string{"Proc-Type: ", "DEK-Info: ", "Version: ", "Comment: "} {
		if bytes.HasPrefix(in, []byte(name)) {
			return true
		}
	}
	return false
}

// skipGap is where the next line begins: behind blanks, quotes and written-out line ends, and
// behind what was put before each line by cat -n, grep -n, a quotation, a comment or a diff.
func skipGap(in []byte, i int) int { return skip(in, i, false) }

// Unmarked is a line without what was put before it, as by cat -n, a quotation or a diff.
func Unmarked(line []byte) []byte { return line[skip(line, 0, true):] }

// skip takes fresh for that a line has begun of which nothing was seen yet.
func skip(in []byte, i int, fresh bool) int {
	for i < len(in) {
		switch c := in[i]; {
		case c == '\\' && i+1 < len(in) && strings.IndexByte("nrt", in[i+1]) >= 0:
			fresh = fresh || in[i+1] == 'n'
			i += 2
		case pemGap[c]:
			fresh = fresh || c == '\n'
			i++
		case fresh && strings.IndexByte(">|#*", c) >= 0:
			i++
		case fresh:
			n := lineMark(in[i:])
			if n == 0 {
				return i
			}
			i += n
		default:
			return i
		}
	}
	return i
}

// lineMark is the length of what may stand before a line besides signs: its number, // of a
// comment, or the minus of a diff.
func lineMark(in []byte) int {
	n := 0
	for n < len(in) && n < 8 && in[n] >= '0' && in[n] <= '9' {
		n++
	}
	switch {
	case n > 0 && n+1 < len(in) && strings.IndexByte("\t :|-", in[n]) >= 0 && in[n+1] != '\n' && in[n+1] != '\r':
		return n + 1
	case n > 0:
		return 0
	case bytes.HasPrefix(in, []byte("// ")):
		return 3
	case bytes.HasPrefix(in, []byte("------")), len(in) > 1 && in[0] == '-' && base64Set[in[1]]:
		return 1
	}
	return 0
}
