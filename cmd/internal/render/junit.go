package render

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"wf/api"
)

// What JUnit readers take: https://github.com/testmoapp/junitxml.

// An xmlNode is an element of XML: attributes as names with their values, and text or other elements in it. It is all that results
// need of XML, at a tenth of the size of encoding/xml in the program.
type xmlNode struct {
	name  string
	attrs []string
	text  string
	nodes []*xmlNode
}

// write writes the element below others.
func (n *xmlNode) write(b *strings.Builder, indent string) {
	b.WriteString(indent + "<" + n.name)
	for i := 0; i < len(n.attrs); i += 2 {
		b.WriteString(" " + n.attrs[i] + `="` + inAttribute.Replace(inXML(n.attrs[i+1])) + `"`)
	}
	b.WriteString(">" + inText.Replace(inXML(n.text)))
	for _, x := range n.nodes {
		b.WriteString("\n")
		x.write(b, indent+"  ")
	}
	if len(n.nodes) > 0 {
		b.WriteString("\n" + indent)
	}
	b.WriteString("</" + n.name + ">")
}

// add puts an element into another.
func (n *xmlNode) add(name, text string, attrs ...string) *xmlNode {
	x := &xmlNode{name: name, attrs: attrs, text: text}
	n.nodes = append(n.nodes, x)
	return x
}

// Readers make spaces of tabs and line ends in attributes, unless they are references. inXML leaves no other characters that act.
var (
	inText      = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	inAttribute = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "\t", "&#x9;", "\n", "&#xA;")
)

// WriteJUnit writes an evaluation as XML that readers of JUnit's results take. A regression of a case that passed is a
// failure of it.
func WriteJUnit(w io.Writer, e *api.Eval) error {
	worse := map[string][]string{}
	for _, r := range e.Regressions {
		worse[r.Case] = append(worse[r.Case], fmt.Sprintf("worse than the baseline, %s: %s → %s", r.Kind, r.Old, r.New))
	}
	suite := &xmlNode{name: "testsuite"}
	failures, errs, skipped := 0, 0, 0
	var total int64
	for i := range e.Cases {
		c := &e.Cases[i]
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
		x := suite.add("testcase", "", "name", c.Name, "classname", e.Workflow, "file", e.Suite, "line", strconv.Itoa(c.Line), "time", seconds(ms))
		why := strings.Join(append(worse[c.Name], c.Why), "\n")
		switch {
		case c.Verdict == api.EvalError:
			errs++
			x.outcome("error", c, c.Code, why)
		case c.Verdict == api.EvalFailed, c.Verdict == api.EvalPassed && len(worse[c.Name]) > 0:
			failures++
			x.outcome("failure", c, string(c.Verdict), why)
		case c.Verdict != api.EvalPassed:
			skipped++
			x.outcome("skipped", c, string(c.Verdict), why)
		}
		if out.Len() > 0 {
			x.add("system-out", out.String())
		}
	}
	counts := []string{"tests", strconv.Itoa(len(e.Cases)), "failures", strconv.Itoa(failures), "errors", strconv.Itoa(errs), "skipped", strconv.Itoa(skipped), "time", seconds(total)}
	suite.attrs = append([]string{"name", e.Workflow}, counts...)
	all := &xmlNode{name: "testsuites", attrs: append([]string{"name", e.Suite}, counts...), nodes: []*xmlNode{suite}}
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n")
	all.write(&b, "")
	_, err := io.WriteString(w, b.String()+"\n")
	return err
}

// outcome notes why a case did not pass.
func (n *xmlNode) outcome(name string, c *api.EvalCase, kind, why string) {
	if c.Hint != "" {
		why += "\nfix: " + c.Hint
	}
	why = strings.TrimSpace(why)
	n.add(name, why, "message", OneLine(why, 300), "type", kind)
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
