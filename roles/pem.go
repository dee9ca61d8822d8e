package roles

import (
	"bytes"
	"slices"
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
// and its end may be missing; what stands before each of its lines does not matter. What mentions such a
// key only, has no body and is none.
func privateKey(p *passage, at, n int) (from, to int) {
	label := p.run(at+n, labelSet, labelMax)
	body := p.run(label, setOfDash, 5)
	if body < label+5 || !bytes.Contains(p.in[at:label], []byte("PRIVATE KEY")) {
		return 0, 0
	}
	p, known := p.upTo(at + pemMax)
	defer known()
	if to = p.pemBody(body); to == 0 && !p.short {
		to = p.pemAmid(body)
	}
	return at, to
}

var setOfDash = setOf("-")

// pemBody is the end of the key that has its body begin at i, 0 if it has none.
func (p *passage) pemBody(i int) (to int) {
	size := 0 // characters of Base64
	for {
		if i = skipGap(p.in, i); p.lacks(i, markMax) {
			return 0
		}
		line := p.run(i, base64Set, pemMax)
		run := line - i
		if run >= pemLine {
			size, to, i = size+run, line, line
			continue
		}
		if run > 0 && p.has(line, "-:") && !p.lacks(i, len("Proc-Type: ")) && header(p.in[i:]) {
			i = p.run(i, headerSet, pemMax)
			continue
		}
		// A short line is the last one.
		if i = skipGap(p.in, line); p.lacks(i, markMax) {
			return 0
		}
		end := bytes.HasPrefix(p.in[i:], []byte(pemEnd))
		switch {
		case end && size+run >= pemMin:
			return p.pemEndAt(i)
		case end, size < pemLine:
			return 0
		}
		return to
	}
}

const (
	amidPiece = 256 // bytes of a line that are looked at together
	amidOther = 3   // pieces without a line of the key that may follow each other: headers, blank lines, a short last one
)

// pemAmid is pemBody where something stands before, behind or between the lines that skipGap does not
// know: an arrow behind a number, a time, the name of a file, a colour, <br>. What lies between BEGIN and
// END is hidden whole, if there are lines of a key in it.
func (p *passage) pemAmid(i int) (to int) {
	in := p.in
	for other := 0; i < len(in) && other < amidOther; {
		piece := in[i:min(len(in), i+amidPiece)]
		n := bytes.IndexByte(piece, '\n')
		if n >= 0 {
			piece = piece[:n+1]
		}
		if n := bytes.Index(in[i:min(len(in), i+len(piece)+len(pemEnd))], []byte(pemEnd)); n >= 0 {
			if run := longest(in[i : i+n]); to == 0 && run.end-run.begin < pemLine {
				return 0
			}
			return p.pemEndAt(i + n)
		}
		if n < 0 && p.lacks(i, amidPiece+len(pemEnd)) {
			return 0
		}
		if run := longest(piece); run.end-run.begin >= pemLine {
			to, other = i+run.end, 0
		} else {
			other++
		}
		i += len(piece)
	}
	p.lacks(i, 1)
	return to
}

// longest is the longest run of Base64 in a text.
func longest(b []byte) (out struct{ begin, end int }) {
	for i := 0; i < len(b); i++ {
		begin := i
		for i < len(b) && base64Set[b[i]] {
			i++
		}
		if i-begin > out.end-out.begin {
			out.begin, out.end = begin, i
		}
	}
	return out
}

// pemEndAt is where the last line of a key ends that begins at i.
func (p *passage) pemEndAt(i int) (to int) {
	return p.run(p.run(i+len(pemEnd), labelSet, labelMax), setOfDash, 5)
}

var headerSet = func() *set {
	s := *anyLine
	s[' '] = true
	return &s
}()

// header reports whether in begins with a header of a key.
func header(in []byte) bool {
	return slices.ContainsFunc([]string{"Proc-Type: ", "DEK-Info: ", "Version: ", "Comment: "}, func(name string) bool { return bytes.HasPrefix(in, []byte(name)) })
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
