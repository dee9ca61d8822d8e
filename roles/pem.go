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
		run, ok := runOf(in[i:], base64, len(in), ended)
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
		if len(rest) < len(pemEnd) {
			if !ended && strings.HasPrefix(pemEnd, string(rest)) {
				return 0, false
			}
		} else if string(rest[:len(pemEnd)]) == pemEnd {
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

// skipGap is where the next line begins: behind blanks, quotes and written-out line ends.
func skipGap(in []byte, i int) int {
	for i < len(in) && pemGap[in[i]] {
		if in[i] == '\\' && i+1 < len(in) && strings.IndexByte("nrt", in[i+1]) >= 0 {
			i++
		}
		i++
	}
	return i
}
