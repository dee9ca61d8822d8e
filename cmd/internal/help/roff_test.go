package help

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNoTextOfAManualPageIsARequest(t *testing.T) {
	p := newManualPage("x", 1, "", `a "b"`, "")
	p.section("NAME")
	p.name("x", "it's -1")
	p.text(".so /etc/passwd\n'br\nback\\slash")
	p.item(bold("--a"), ".b")
	p.code("  .c\n    d\n")
	want := `.TH "X" 1 "" "a \(dqb\(dq" ""
.nh
.ad l
.SH "NAME"
x \- it\(aqs \-1
\&.so /etc/passwd
\&\(aqbr
back\eslash
.TP
\fB\-\-a\fR
\&.b
.PP
.RS 4
.nf
\&.c
  d
.fi
.RE
`
	if diff := cmp.Diff(want, p.String()); diff != "" {
		t.Error(diff)
	}
}

func TestParagraphsOfAManualPage(t *testing.T) {
	p := &manualPage{}
	p.text("one\ntwo\n\nthree\n\n  kept\n\n  too\n")
	want := "one\ntwo\n.PP\nthree\n" +
		".PP\n.RS 4\n.nf\nkept\n.fi\n.RE\n" +
		".PP\n.RS 4\n.nf\ntoo\n.fi\n.RE\n"
	if diff := cmp.Diff(want, p.String()); diff != "" {
		t.Error(diff)
	}
}

func TestLettersOfAManualPageBeyondASCIIAreNamed(t *testing.T) {
	if got := roffText("… → \x1b🙂"); got != `\[u2026] \[u2192]  \[u1F642]` {
		t.Error(got)
	}
}
