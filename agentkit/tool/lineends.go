package tool

import (
	"fmt"
	"strings"
)

const (
	crlf = "\r\n"
	bom  = "\ufeff"
)

// place finds old in a text: to the byte, or else whatever the line ends of either are, since a
// model sees them as one. n is how often it is there; from and to are where, if that is once.
func place(text, old string) (from, to, n int) {
	if n = strings.Count(text, old); n > 0 {
		from = strings.Index(text, old)
		to = from + len(old)
		if old[0] == '\n' && strings.HasSuffix(text[:from], "\r") {
			from-- // the whole line end
		}
		return from, to, n
	}
	old = strings.ReplaceAll(strings.TrimPrefix(old, bom), crlf, "\n")
	plain := strings.ReplaceAll(text, crlf, "\n")
	if old == "" {
		return 0, 0, 0
	}
	if n = strings.Count(plain, old); n == 0 {
		return 0, 0, 0
	}
	at := strings.Index(plain, old)
	from = inText(text, at)
	return from, inText(text, at+len(old)), n
}

// inText is the place in a text of a place in the same text with LF for each CRLF. A place before
// a line end is before all of it.
func inText(text string, at int) int {
	for i := 0; ; i++ {
		if at == 0 {
			return i
		}
		if strings.HasPrefix(text[i:], crlf) {
			i++
		}
		at--
	}
}

// withLineEnds is what takes the place of text[from:to], with the line ends of that place: those of
// the replaced lines, else of the line that it is in. Line ends that were written with CR are meant so.
func withLineEnds(text string, from, to int, new string) string {
	if strings.Contains(new, "\r") {
		return new
	}
	around := text[from:to]
	if !strings.Contains(around, "\n") {
		around = text[from:]
		if !strings.Contains(around, "\n") {
			around = text[:from]
			around = around[strings.LastIndexByte(strings.TrimSuffix(around, "\n"), '\n')+1:]
		}
		if end := strings.IndexByte(around, '\n'); end >= 0 {
			around = around[:end+1]
		}
	}
	if n := strings.Count(around, crlf); n > 0 && 2*n >= strings.Count(around, "\n") {
		return strings.ReplaceAll(new, "\n", crlf)
	}
	return new
}

// nearest says what to do about a text that is not there: where its first line is, if that is.
func nearest(text, old string) string {
	first := ""
	for line := range strings.Lines(old) {
		if first = strings.TrimSpace(line); first != "" {
			break
		}
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		if first != "" && strings.TrimSpace(strings.TrimPrefix(line, bom)) == first {
			return fmt.Sprintf("its first line is like line %d: compare blanks, tabs and the lines that follow with read_file, start_line %d", n, n)
		}
	}
	return "read the file again"
}
