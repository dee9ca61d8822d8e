package render

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"wf/api"
)

// What JUnit readers take: https://github.com/testmoapp/junitxml.

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Time     string       `xml:"time,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string     `xml:"name,attr"`
	Class   string     `xml:"classname,attr"`
	File    string     `xml:"file,attr"`
	Line    int        `xml:"line,attr"`
	Time    string     `xml:"time,attr"`
	Failure *junitText `xml:"failure,omitempty"`
	Error   *junitText `xml:"error,omitempty"`
	Skipped *junitText `xml:"skipped,omitempty"`
	Out     string     `xml:"system-out,omitempty"`
}

type junitText struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes an evaluation as XML that readers of JUnit's results take. A regression of a case that passed is a
// failure of it.
func WriteJUnit(w io.Writer, e *api.Eval) error {
	worse := map[string][]string{}
	for _, r := range e.Regressions {
		worse[r.Case] = append(worse[r.Case], fmt.Sprintf("worse than the baseline, %s: %s → %s", r.Kind, r.Old, r.New))
	}
	s := junitSuite{Name: inXML(e.Workflow), Tests: len(e.Cases)}
	var total int64
	for i := range e.Cases {
		c := &e.Cases[i]
		x := junitCase{Name: inXML(c.Name), Class: inXML(e.Workflow), File: inXML(e.Suite), Line: c.Line}
		var ms int64
		var out strings.Builder
		for _, r := range c.Runs {
			ms += r.ActiveMS
			if r.Run != "" {
				fmt.Fprintf(&out, "run %s: %s\n", r.Run, r.Verdict)
			}
		}
		if tape := evalTape(c.Tape); tape != "" {
			out.WriteString(tape + "\n")
		}
		total += ms
		x.Time, x.Out = seconds(ms), inXML(out.String())
		why := strings.Join(append(worse[c.Name], c.Why), "\n")
		switch {
		case c.Verdict == api.EvalError:
			s.Errors++
			x.Error = junitOf(c, c.Code, why)
		case c.Verdict == api.EvalFailed, c.Verdict == api.EvalPassed && len(worse[c.Name]) > 0:
			s.Failures++
			x.Failure = junitOf(c, string(c.Verdict), why)
		case c.Verdict != api.EvalPassed:
			s.Skipped++
			x.Skipped = junitOf(c, string(c.Verdict), why)
		}
		s.Cases = append(s.Cases, x)
	}
	s.Time = seconds(total)
	all := junitSuites{Name: inXML(e.Suite), Tests: s.Tests, Failures: s.Failures, Errors: s.Errors, Skipped: s.Skipped, Time: s.Time, Suites: []junitSuite{s}}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func junitOf(c *api.EvalCase, kind, why string) *junitText {
	if c.Hint != "" {
		why += "\nfix: " + c.Hint
	}
	why = strings.TrimSpace(why)
	return &junitText{Message: inXML(OneLine(why, 300)), Type: inXML(kind), Text: inXML(why)}
}

func seconds(ms int64) string { return fmt.Sprintf("%d.%03d", ms/1000, ms%1000) }

// inXML writes out what no XML document can hold, as in JSON.
func inXML(s string) string {
	if !strings.ContainsFunc(s, odd) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(s, "\ufffd") {
		if odd(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// odd reports whether a character stands in no XML 1.0 document, or acts in one that is read as a log.
func odd(r rune) bool {
	return r < 0x20 && r != '\t' && r != '\n' || r >= 0x7f && r < 0xa0 || r == 0xfffe || r == 0xffff
}
