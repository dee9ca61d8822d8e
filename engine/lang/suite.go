package lang

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"wf/engine/yaml"
	"wf/protocol"
)

// A Suite is the cases by which wf eval judges a workflow.
type Suite struct {
	Workflow string              // path of its file, as written
	Models   map[string][]string // by role, "" is every role; nil names none
	MaxCost  int64               // of all runs, in micro-dollars; 0 is no bound
	Parallel int                 // runs at the same time; 0 says nothing
	Cases    []SuiteCase

	Program *Program // of the workflow
}

// SuiteCase is a case of a suite, the defaults of the suite put into it. Paths are as written, relative to the suite, and lead
// to something within its directory.
type SuiteCase struct {
	Name      string
	Inputs    map[string]any
	Files     string                   // directory that is copied as the workspace; "" is an empty one
	Answers   map[string][]SuiteAnswer // by role, for one visit after the other
	Tape      string                   // recording that answers for the models; "" is none
	Expect    Expectation
	Check     string // what sh -c runs; "" is nothing
	N         int    // runs
	Pass      float64
	MaxTokens int64 // of one run; 0 is no bound
	Tags      []string
	Line      int // in the file of the suite
}

// SuiteAnswer is an answer to the question of one visit.
type SuiteAnswer struct {
	Choice string
	Text   string // without a Choice, the choice where the question has some
	Fields protocol.JSON
}

// ReadSuite reads a suite. It reports everything that is wrong, in order of place; the Suite is nil if and only if one of
// the diagnostics is an error. file is the path of the source, for diagnostics. load gives the program of the workflow
// that the suite names; its error stands at that name.
func ReadSuite(src []byte, file string, load func(workflow string) (*Program, error)) (*Suite, []Diagnostic) {
	l := &suiteLoader{loader: &loader{o: Options{File: file}, suite: true, fam: &family{loaded: map[string]*relative{}}, lines: yaml.Lines(src), bad: map[*yaml.Node]bool{},
		warned: map[*yaml.Node]bool{}, roleNodes: map[string]*yaml.Node{}, roleKeys: map[string]*yaml.Node{}, w: &protocol.Workflow{}}}
	s := l.read(src, load)
	if HasErrors(l.ds) {
		s = nil
	}
	return s, tidy(l.ds, file)
}

// suiteLoader reads one suite.
type suiteLoader struct {
	*loader
	program  *Program // nil where it could not be loaded
	checker  *checker
	shared   Expectation // of the defaults
	defaults *yaml.Node
}

func (l *suiteLoader) read(src []byte, load func(string) (*Program, error)) *Suite {
	root, errs := yaml.Parse(src, yaml.Limits{})
	for _, e := range errs {
		l.yamlError(e, "WF003")
	}
	if root == nil {
		if len(errs) == 0 {
			l.add(Diagnostic{Code: "WF002", Range: Range{Pos{Line: 1, Col: 1}, Pos{Line: 1, Col: 2}}, Message: "the file is empty", Hint: "a suite begins with workflow: FILE and cases: …"})
		}
		return nil
	}
	l.root = root
	if root.Get("roles") != nil && root.Get("cases") == nil {
		l.wrong(root, "this is a workflow, not a suite", "write a suite beside it, with workflow: "+path.Base(l.o.File)+" and cases: …; wf run runs a workflow")
		return nil
	}
	l.check(root, suiteGrammar(), suitePath)
	if root.Kind != yaml.Mapping {
		return nil
	}
	s := &Suite{Workflow: l.str(root.Get("workflow")), Models: l.models(root.Get("models")), Parallel: l.integer(root.Get("parallel"))}
	s.MaxCost, _ = parseMoney(l.str(root.Get("max_cost")))
	if s.Workflow != "" {
		var err error
		if s.Program, err = load(s.Workflow); err != nil {
			l.wrongAt(root.Get("workflow"), "WF002", err.Error(), protocol.HintOf(err))
		} else {
			l.program, l.w, l.children = s.Program, s.Program.Workflow, s.Program.Children
			l.checker = newChecker(l.loader)
		}
	}
	for role := range s.Models {
		if role != "" && l.program != nil {
			l.mustBe(keyNode(root.Get("models"), role), role, protocol.ActPrompt, "an agent")
		}
	}
	if l.defaults = root.Get("defaults"); l.defaults != nil && (l.defaults.Kind != yaml.Mapping || l.bad[l.defaults]) {
		l.defaults = nil
	}
	l.shared = l.expectation(l.defaults.Get("expect"))
	l.answers(l.defaults.Get("answers"))
	l.knownInputs(l.defaults.Get("inputs"))
	pass := l.share(root.Get("pass"), "pass", 1)
	pass = l.share(l.defaults.Get("pass"), "defaults.pass", pass)
	seen := map[string]int{}
	for i, n := range items(root.Get("cases")) {
		if l.bad[n] || n.Kind != yaml.Mapping {
			continue
		}
		c := l.one(n, i, pass)
		if c.Name != "" {
			if was, twice := seen[c.Name]; twice {
				l.wrongAt(n.Get("name"), "WF018", fmt.Sprintf("there are two cases %q", c.Name), fmt.Sprintf("the first is at line %d; rename one", was))
			}
			seen[c.Name] = n.Pos.Line
		}
		s.Cases = append(s.Cases, c)
	}
	return s
}

// keyNode is the key of a mapping, else the mapping.
func keyNode(n *yaml.Node, name string) *yaml.Node {
	for _, p := range n.Pairs {
		if p.Key.Value == name {
			return p.Key
		}
	}
	return n
}

// mustBe reports a role that the workflow does not have, or that does something else.
func (l *suiteLoader) mustBe(at *yaml.Node, role string, action protocol.Action, what string) {
	r, ok := l.w.RoleNamed(role)
	if ok && r.Action == action {
		return
	}
	var names []string
	for _, r := range l.w.Roles {
		if r.Action == action {
			names = append(names, r.Name)
		}
	}
	d := Diagnostic{Code: "WF010", Range: Range{at.Pos, at.End}, Message: fmt.Sprintf("the workflow has no role %q that is %s", role, what), Hint: "it has none at all"}
	if len(names) > 0 {
		d.Hint = "there are: " + strings.Join(names, ", ")
	}
	d.suggest(role, names)
	l.add(d)
}

func (l *suiteLoader) models(n *yaml.Node) map[string][]string {
	switch {
	case !l.good(n):
		return nil
	case n.Kind == yaml.Mapping:
		out := map[string][]string{}
		for _, p := range l.pairs(n) {
			out[p.Key.Value] = l.words(p.Value)
		}
		return out
	}
	return map[string][]string{"": l.words(n)}
}

// share is a part of the whole, above 0 and at most 1.
func (l *suiteLoader) share(n *yaml.Node, path string, otherwise float64) float64 {
	if !l.good(n) {
		return otherwise
	}
	v, err := strconv.ParseFloat(strings.TrimPrefix(n.Value, "+"), 64)
	if err != nil || v > 1 {
		l.wrong(n, fmt.Sprintf("%s wants a share of the runs, above 0 and at most 1, got %q", path, n.Value), "nine of ten runs are 0.9")
		return otherwise
	}
	return v
}

// local is a path to something within the directory of the suite.
func (l *suiteLoader) local(n *yaml.Node, name string) string {
	p := l.str(n)
	if p == "" {
		return ""
	}
	clean := path.Clean(strings.ReplaceAll(p, `\`, "/"))
	if path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") {
		l.wrong(n, fmt.Sprintf("%s leads out of the directory of the suite: %q", name, p), "write a path within it, such as cases/one")
	}
	return p
}

func (l *suiteLoader) one(n *yaml.Node, i int, pass float64) SuiteCase {
	at := fmt.Sprintf("cases[%d]", i)
	own := func(key string) *yaml.Node { // of the case, else of the defaults
		if v := n.Get(key); v != nil {
			return v
		}
		return l.defaults.Get(key)
	}
	c := SuiteCase{Name: l.str(n.Get("name")), Line: n.Pos.Line, Inputs: map[string]any{}, Answers: l.answers(l.defaults.Get("answers")),
		Files: l.local(own("files"), at+".files"), Tape: l.local(n.Get("tape"), at+".tape"), Check: strings.TrimSpace(l.str(own("check"))),
		N: cmp.Or(l.integer(own("n")), 1), Pass: l.share(n.Get("pass"), at+".pass", pass), MaxTokens: int64(l.integer(own("max_tokens")))}
	for _, from := range []*yaml.Node{l.defaults, n} {
		for _, p := range l.pairs(from.Get("inputs")) {
			if v, err := p.Value.JSON(); err == nil { // else it was reported
				c.Inputs[p.Key.Value] = v
			}
		}
		for _, tag := range l.words(from.Get("tags")) {
			if !slices.Contains(c.Tags, tag) {
				c.Tags = append(c.Tags, tag)
			}
		}
	}
	if c.Answers == nil {
		c.Answers = map[string][]SuiteAnswer{}
	}
	maps.Copy(c.Answers, l.answers(n.Get("answers")))
	c.Expect = l.shared.with(l.expectation(n.Get("expect")))
	if l.knownInputs(n.Get("inputs")) && l.knownInputs(l.defaults.Get("inputs")) && l.program != nil {
		if _, err := l.program.Inputs(c.Inputs); err != nil {
			l.wrongAt(cmp.Or(n.Get("inputs"), n), "WF031", at+": "+strings.TrimSuffix(err.Error(), ": "+protocol.ErrInputs.Error()), "")
		}
	}
	return c
}

// knownInputs reports the inputs that the workflow does not declare.
func (l *suiteLoader) knownInputs(n *yaml.Node) bool {
	if l.program == nil {
		return true
	}
	ok := true
	for _, p := range l.pairs(n) {
		if _, declared := l.w.Inputs[p.Key.Value]; declared {
			continue
		}
		ok = false
		d := Diagnostic{Code: "WF031", Range: Range{p.Key.Pos, p.Key.End}, Message: fmt.Sprintf("the workflow has no input %q", p.Key.Value), Hint: "it has none at all"}
		if names := sortedKeys(l.w.Inputs); len(names) > 0 {
			d.Hint = "there are: " + strings.Join(names, ", ")
			d.suggest(p.Key.Value, names)
		}
		l.add(d)
	}
	return ok
}

func (l *suiteLoader) answers(n *yaml.Node) map[string][]SuiteAnswer {
	if !l.good(n) || n.Kind != yaml.Mapping {
		return nil
	}
	out := map[string][]SuiteAnswer{}
	for _, p := range l.pairs(n) {
		if l.program != nil {
			l.mustBe(p.Key, p.Key.Value, protocol.ActAsk, "a question (ask)")
		}
		list := []*yaml.Node{p.Value}
		if p.Value.Kind == yaml.Sequence {
			list = p.Value.Items
		}
		for _, a := range list {
			out[p.Key.Value] = append(out[p.Key.Value], l.answer(a))
		}
	}
	return out
}

func (l *suiteLoader) answer(n *yaml.Node) (a SuiteAnswer) {
	if n.Kind == yaml.Scalar {
		return SuiteAnswer{Text: l.str(n)}
	}
	a.Choice, a.Text = l.str(n.Get("choice")), l.str(n.Get("text"))
	if f := n.Get("fields"); l.good(f) {
		if f.Kind != yaml.Mapping {
			l.wrong(f, "fields wants a mapping, got "+f.Describe(), "name each field of the form with its value")
		} else {
			a.Fields = protocol.JSON(l.canonical(f))
		}
	}
	return a
}
