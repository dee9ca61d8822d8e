package lang

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"wf/engine/yaml"
	"wf/protocol"
	"wf/roles/schema"
)

// An Expectation is what has to hold of a run that has ended.
type Expectation struct {
	Status []string // one of them; none is done
	that   []assertion
	schema *schema.Schema // of the outputs, or nil
}

// assertion is one entry of that: an expression that is true, or a value that fits.
type assertion struct {
	code     *code
	text     string // for people
	plain    bool   // it has to be true
	equals   []byte // canonical JSON, or nil
	contains []string
	excludes []string
	matches  []*regexp.Regexp
	schema   *schema.Schema
}

// Ended is a run that has ended, as an Expectation sees it. Its values are JSON values as those of Scope.
type Ended struct {
	Status  string
	Inputs  map[string]any
	Outputs map[string]any
	Steps   map[string]*Step // the last visit of each role
	Run     map[string]any   // status, reason, code, cost_usd, tokens, steps
}

// endedType is what run is in the expressions of a suite.
var endedType = func() *typ {
	return objectType(map[string]*typ{"status": {kind: tString, enum: []any{"done", "failed", "cancelled", "suspended"}},
		"reason": stringT, "code": stringT, "cost_usd": anyT, "tokens": intT, "steps": intT})
}

// with is an expectation with what another says besides, or in its place.
func (e Expectation) with(o Expectation) Expectation {
	if len(o.Status) > 0 {
		e.Status = o.Status
	}
	if o.schema != nil {
		e.schema = o.schema
	}
	e.that = append(append([]assertion{}, e.that...), o.that...)
	return e
}

// expectation reads what a case expects.
func (l *suiteLoader) expectation(n *yaml.Node) (e Expectation) {
	if !l.good(n) || n.Kind != yaml.Mapping {
		return e
	}
	e.Status = l.words(n.Get("status"))
	e.schema = l.schemaAt(n.Get("schema"))
	for _, it := range items(n.Get("that")) {
		if !l.good(it) {
			continue
		}
		if it.Kind == yaml.Scalar {
			if c := l.expression(it, true); c != nil {
				e.that = append(e.that, assertion{code: c, text: c.src, plain: true})
			}
			continue
		}
		if a, ok := l.assertion(it); ok {
			e.that = append(e.that, a)
		}
	}
	return e
}

// expression compiles an expression of the suite, nil where it was reported.
func (l *suiteLoader) expression(n *yaml.Node, truth bool) *code {
	src := unwrap(strings.TrimSpace(n.Value))
	if l.checker != nil {
		s := &scopeType{noOut: "a case of a suite sees outputs, of the whole run", outputs: map[string]*typ{}, closing: true, ended: true}
		for _, o := range l.w.Outputs {
			s.outputs[o.Name] = templateType(o)
		}
		before := len(l.ds)
		t := l.checker.bare(n, s)
		if HasErrors(l.ds[before:]) {
			return nil
		}
		if truth && t != nil && t.kind != tAny && t.kind != tBool {
			l.report(n, Diagnostic{Code: "WF020", Message: fmt.Sprintf("the expression is %s, not true or false", t), Hint: "compare it with something, or write {value: …, equals: …}"})
			return nil
		}
	}
	c, err := compile(src, ofClosing)
	if err != nil {
		l.report(n, Diagnostic{Code: "WF020", Message: err.Error()})
		return nil
	}
	return c
}

func (l *suiteLoader) assertion(n *yaml.Node) (a assertion, ok bool) {
	value := n.Get("value")
	if !l.good(value) || value.Kind != yaml.Scalar || l.bad[n] {
		return a, false
	}
	if a.code = l.expression(value, false); a.code == nil {
		return a, false
	}
	a.text = a.code.src
	if v := n.Get("equals"); v != nil && !l.bad[v] {
		a.equals = []byte(l.canonical(v))
	}
	a.contains, a.excludes = l.words(n.Get("contains")), l.words(n.Get("excludes"))
	for _, it := range scalars(n.Get("matches")) {
		re, err := regexp.Compile(it.Value)
		if err != nil {
			l.wrong(it, fmt.Sprintf("matches wants a regular expression (RE2): %v", err), "")
			continue
		}
		a.matches = append(a.matches, re)
	}
	a.schema = l.schemaAt(n.Get("schema"))
	if a.equals == nil && len(a.contains)+len(a.excludes) == 0 && n.Get("matches") == nil && n.Get("schema") == nil {
		l.wrongAt(n, "WF002", "nothing is expected of the value", "add equals, contains, excludes, matches or schema; an expression that has to be true stands alone")
	}
	return a, true
}

func scalars(n *yaml.Node) []*yaml.Node {
	switch {
	case n.IsNull():
		return nil
	case n.Kind == yaml.Sequence:
		return n.Items
	}
	return []*yaml.Node{n}
}

func (l *suiteLoader) schemaAt(n *yaml.Node) *schema.Schema {
	if !l.good(n) {
		return nil
	}
	text := l.canonical(n)
	if text == "" {
		return nil
	}
	s, err := schema.Compile(text, true)
	if err != nil {
		l.wrong(n, fmt.Sprintf("schema is no JSON Schema: %v", err), "")
		return nil
	}
	return s
}

// Judge tells what of a run is not as expected, in the order in which it is written; nothing is a run that is.
func (e *Expectation) Judge(r Ended) (wrong []string) {
	want := e.Status
	if len(want) == 0 {
		want = []string{string(protocol.Done)}
	}
	if !slices.Contains(want, r.Status) {
		why := ""
		if text, _ := r.Run["reason"].(string); text != "" {
			why = ": " + CutText(text, shownOfValue)
		}
		wrong = append(wrong, fmt.Sprintf("status: want %s, got %s%s", strings.Join(want, " or "), r.Status, why))
	}
	if e.schema != nil {
		wrong = append(wrong, violations("outputs", e.schema, orEmpty(r.Outputs))...)
	}
	for i := range e.that {
		a := &e.that[i]
		v, err := a.code.eval(&env{Inputs: orEmpty(r.Inputs), Outputs: orEmpty(r.Outputs), Steps: stepsOf(r.Steps), Run: r.Run, Budget: newBudget()})
		if err != nil {
			wrong = append(wrong, err.Error())
			continue
		}
		wrong = append(wrong, a.judge(v)...)
	}
	return wrong
}

func stepsOf(steps map[string]*Step) map[string]any {
	out := make(map[string]any, len(steps))
	for role, s := range steps {
		out[role] = s.value()
	}
	return out
}

// judge tells what of a value is not as expected.
func (a *assertion) judge(v any) (wrong []string) {
	if a.plain {
		if v != true {
			got := "false"
			if v != false {
				got = typeName(v) + ", not true or false"
			}
			return []string{a.text + ": " + got}
		}
		return nil
	}
	text, err := protocol.CanonicalJSON(v)
	if err != nil {
		return []string{fmt.Sprintf("%s: %v", a.text, err)}
	}
	if a.equals != nil && !bytes.Equal(a.equals, text) {
		wrong = append(wrong, fmt.Sprintf("%s: want %s, got %s", a.text, CutText(string(a.equals), shownOfValue), CutText(string(text), shownOfValue)))
	}
	plain := string(text)
	switch v := v.(type) {
	case string:
		plain = v
	case nil: // as in a text of the language
		plain = ""
	}
	for _, s := range a.contains {
		if !strings.Contains(plain, s) {
			wrong = append(wrong, fmt.Sprintf("%s: %s does not contain %q", a.text, shown(plain), CutText(s, shownOfValue)))
		}
	}
	for _, s := range a.excludes {
		if strings.Contains(plain, s) {
			wrong = append(wrong, fmt.Sprintf("%s: %s contains %q", a.text, shown(plain), CutText(s, shownOfValue)))
		}
	}
	for _, re := range a.matches {
		if !re.MatchString(plain) {
			wrong = append(wrong, fmt.Sprintf("%s: %s does not match %s", a.text, shown(plain), CutText(re.String(), shownOfValue)))
		}
	}
	if a.schema != nil {
		wrong = append(wrong, violations(a.text, a.schema, v)...)
	}
	return wrong
}

func violations(of string, s *schema.Schema, v any) (wrong []string) {
	text, err := protocol.CanonicalJSON(v)
	if err != nil {
		return []string{fmt.Sprintf("%s: %v", of, err)}
	}
	for _, x := range s.Validate(text) {
		wrong = append(wrong, of+": "+CutText(x.String(), shownOfValue))
	}
	return wrong
}

// shownOfValue is how much of a value a message shows, in bytes.
const shownOfValue = 200

func shown(s string) string { return fmt.Sprintf("%q", CutText(s, shownOfValue)) }

// CutText is a text of at most so many bytes, cut at a rune, with a mark of how much there is.
func CutText(s string, most int) string {
	if len(s) <= most {
		return s
	}
	n := most
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return fmt.Sprintf("%s… (%d bytes)", s[:n], len(s))
}
