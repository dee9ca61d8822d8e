package render

import (
	"strings"

	"wf/cmd/internal/plain"
	"wf/protocol"
)

// Visible is a text that came from elsewhere: it must not move the cursor, change the colours, turn what
// stands beside it, or hide. A screen sees to that too; here it has the width that it is shown with.
func Visible(s string) string { return plain.Visible(s) }

// OneLine is the first line of a text, cut to n runes.
func OneLine(s string, n int) string {
	s, _, more := strings.Cut(strings.TrimSpace(Visible(s)), "\n")
	s = strings.ReplaceAll(s, "\t", " ")
	r := []rune(s)
	switch {
	case len(r) > n && n > 0:
		return string(r[:n-1]) + "…"
	case more:
		return s + " …"
	}
	return s
}

// IndentLines sets all lines but the first of a text in.
func IndentLines(s, indent string) string {
	return strings.ReplaceAll(strings.TrimRight(Visible(s), "\n"), "\n", "\n"+indent)
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// Because is a reason behind a colon, "" for none.
func Because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// both are two texts on one line, or the one that there is.
func both(a, b string) string {
	if a != "" && b != "" {
		return a + "; " + b
	}
	return a + b
}

// ShortCID is what screens show of a CID.
func ShortCID(cid string) string {
	l, err := protocol.ParseLink(cid)
	if err != nil {
		return cid
	}
	return l.Short()
}

// ShortOf is ShortCID of a CID that may be missing.
func ShortOf(cid *string) string {
	if cid == nil {
		return ""
	}
	return ShortCID(*cid)
}
