package lang

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"wf/engine/yaml"
	"wf/protocol"
)

// Options are how a file is read; the zero value reads one without sub-workflows.
type Options struct {
	// File is the path of the source, for diagnostics and as what sub-workflow paths are
	// relative to. Default "workflow.yaml".
	File string
	// Read gives the text of a sub-workflow; the path has slashes and is File's directory
	// joined with what the role names. nil: sub-workflows are errors.
	Read func(path string) ([]byte, error)
	// Apart reports whether a sub-workflow lies where its caller could not have been written: what is wrong in
	// it is not told, since a workflow from elsewhere may name any file. nil: none does.
	Apart func(path string) bool
	// MCP are the servers that the configuration names, besides those of the file.
	MCP []string
	// Tools are the tools that agents have besides those of servers, and MemoryTools those that
	// come with a memory. No Tools: the names of tools are not checked.
	Tools, MemoryTools []string
	// Providers are the first parts of the names of models. None: any will do.
	Providers []string

	limits yaml.Limits // of the source
}

// Load reads a workflow. It reports everything that is wrong, in order of place, warnings
// included; the Program is nil if and only if one of the diagnostics is an error.
func Load(src []byte, o Options) (*Program, []Diagnostic) {
	o.File = cmp.Or(o.File, "workflow.yaml")
	p, ds := load(src, o, &family{loaded: map[string]*relative{}})
	return p, tidy(ds, o.File)
}

// FormOrder is the order in which the source of a workflow writes the fields of a role's form,
// which its canonical definition does not keep. It is nil where the source has no such form.
func FormOrder(source []byte, role string) []string {
	doc, _ := yaml.Parse(source, yaml.Limits{}) // it was read before; of one that cannot be, nothing is known
	var out []string
	if props := doc.Get("roles").Get(role).Get("form").Get("properties"); props != nil {
		for _, p := range props.Pairs {
			out = append(out, p.Key.Value)
		}
	}
	return out
}

// loader reads one file.
type loader struct {
	o     Options
	fam   *family
	lines []string
	ds    []Diagnostic
	bad   map[*yaml.Node]bool // reported; not to be looked into

	suite bool // the file is a suite of cases

	warned map[*yaml.Node]bool // of its model
	maybe  []string            // inputs that are read though they may be missing

	root      *yaml.Node
	w         *protocol.Workflow
	roleNodes map[string]*yaml.Node // role → its mapping
	roleKeys  map[string]*yaml.Node // role → its name
	roleOrder []string
	edgeNodes []*yaml.Node // edge of w → its mapping; nil where wf added the edge
	children  map[protocol.Link]*Program
	files     map[string]protocol.Link // role → sub-workflow
}

func load(src []byte, o Options, fam *family) (*Program, []Diagnostic) {
	l := &loader{o: o, fam: fam, lines: yaml.Lines(src), bad: map[*yaml.Node]bool{}, warned: map[*yaml.Node]bool{}, roleNodes: map[string]*yaml.Node{},
		roleKeys: map[string]*yaml.Node{}, children: map[protocol.Link]*Program{}, files: map[string]protocol.Link{}}
	root, errs := yaml.Parse(src, o.limits)
	for _, e := range errs {
		l.yamlError(e, "WF003")
	}
	if root == nil {
		if len(errs) == 0 {
			l.add(Diagnostic{Code: "WF002", Range: Range{Pos{Line: 1, Col: 1}, Pos{Line: 1, Col: 2}}, Message: "the file is empty", Hint: "a workflow begins with wf: 1, name: … and roles: …"})
		}
		return nil, l.ds
	}
	l.root = root
	l.check(root, grammar().workflow, topPath)
	if root.Kind != yaml.Mapping {
		return nil, l.ds
	}
	l.decode()
	l.roleRules()
	l.subWorkflows()
	l.graph()
	l.types()
	l.groupRules()
	l.artifactRules()
	l.alwaysRules()
	l.mergeRules()
	l.needsRules()
	l.warnings()
	if HasErrors(l.ds) {
		return nil, l.ds
	}
	p, err := compileOne(l.w)
	if err != nil { // what the checks above accept compiles; if not, say so and refuse
		l.report(root, Diagnostic{Code: "WF020", Message: err.Error()})
		return nil, l.ds
	}
	p.source, p.Children, p.maybe = src, l.children, slices.Sorted(slices.Values(l.maybe))
	return p, l.ds
}

func (l *loader) add(d Diagnostic) {
	d.Severity = severityOf(d.Code)
	if d.File == "" {
		d.File = l.o.File
	}
	if n := d.Range.Start.Line; n >= 1 && n <= len(l.lines) {
		d.line = l.lines[n-1]
	}
	l.ds = append(l.ds, d)
}

// report adds d at the place of n and marks n bad if it is an error.
func (l *loader) report(n *yaml.Node, d Diagnostic) {
	if n == nil {
		n = l.root
	}
	d.Range = Range{n.Pos, n.End}
	if severityOf(d.Code) == SeverityError {
		l.bad[n] = true
	}
	l.add(d)
}

func (l *loader) wrong(n *yaml.Node, msg, hint string) {
	l.report(n, Diagnostic{Code: "WF002", Message: msg, Hint: hint})
}

// wrongAt reports at n without marking it bad: what is below may still be looked at.
func (l *loader) wrongAt(n *yaml.Node, code, msg, hint string) {
	l.add(Diagnostic{Code: code, Range: Range{n.Pos, n.End}, Message: msg, Hint: hint})
}

func (l *loader) yamlError(err error, code string) {
	d := Diagnostic{Code: code, Message: err.Error(), Range: Range{Pos{Line: 1, Col: 1}, Pos{Line: 1, Col: 2}}}
	if ye, ok := errors.AsType[*yaml.Error](err); ok {
		d.Message, d.Hint, d.Range = ye.Message, ye.Hint, Range{ye.Pos, ye.End}
		if ye.Node != nil {
			l.bad[ye.Node] = true
		}
		if line := ye.Pos.Line; d.Hint == "" && line <= len(l.lines) && (hasExpr(l.lines[line-1]) || strings.Contains(ye.Message, "parsing a flow ")) {
			d.Hint = "inside { } and [ ], put a value that holds one of , [ ] { } # or ${{ }} in quotes"
		}
	}
	l.add(d)
}

// decode fills l.w with what fits the grammar.
func (l *loader) decode() {
	l.w = &protocol.Workflow{Kind: protocol.KindWorkflow, V: protocol.RecordVersion}
	l.w.Name = l.str(l.root.Get("name"))
	if l.w.Name == "" {
		base := path.Base(strings.ReplaceAll(l.o.File, `\`, "/"))
		l.w.Name = strings.TrimSuffix(base, path.Ext(base))
	}
	l.w.Description = trimEnd(l.str(l.root.Get("description")))
	l.decodeInputs(l.root.Get("inputs"))
	l.decodeLimits(l.root.Get("limits"))
	l.decodeSecrets(l.root.Get("secrets"))
	l.decodeMCP(l.root.Get("mcp"))
	l.decodeNotify(l.root.Get("notify"))
	l.decodeSchedule(l.root.Get("on").Get("schedule"))
	l.decodeWebhook(l.root.Get("on").Get("webhook"))
	l.w.Concurrency = l.concurrency(l.root.Get("concurrency"))
	l.w.Workspace = l.workspace(l.root.Get("workspace"))
	l.decodeRoles(l.root.Get("roles"), l.root.Get("defaults"))
	l.decodeAlways(l.root.Get("always"))
	l.decodeEdges(l.root.Get("edges"))
	l.w.Outputs = l.named(l.root.Get("outputs"))
}

// good reports whether n is there and was not reported.
func (l *loader) good(n *yaml.Node) bool { return !n.IsNull() && !l.bad[n] }

func (l *loader) str(n *yaml.Node) string {
	if !l.good(n) || n.Kind != yaml.Scalar {
		return ""
	}
	return n.Value
}

func (l *loader) integer(n *yaml.Node) int {
	if !l.good(n) || n.Type != yaml.Int {
		return 0
	}
	i, _ := n.Int() // what is out of range was reported
	return i
}

func (l *loader) yes(n *yaml.Node) bool {
	return l.good(n) && n.Type == yaml.Bool && strings.EqualFold(n.Value, "true")
}

func (l *loader) duration(n *yaml.Node) int64 {
	us, _ := parseDuration(l.str(n))
	return us
}

// words is a scalar or a list of scalars.
func (l *loader) words(n *yaml.Node) []string {
	if !l.good(n) {
		return nil
	}
	if n.Kind == yaml.Scalar {
		return []string{n.Value}
	}
	var out []string
	for _, it := range n.Items {
		if l.good(it) && it.Kind == yaml.Scalar {
			out = append(out, it.Value)
		}
	}
	return out
}

// pairs are the entries of a mapping that were not reported.
func (l *loader) pairs(n *yaml.Node) []yaml.Pair {
	if n == nil || n.Kind != yaml.Mapping {
		return nil
	}
	var out []yaml.Pair
	for _, p := range n.Pairs {
		if !l.bad[p.Key] && !l.bad[p.Value] {
			out = append(out, p)
		}
	}
	return out
}

// trimEnd drops trailing newlines, so that | and |- mean the same.
func trimEnd(s string) string { return strings.TrimRight(s, "\n") }

// canonical is v as canonical JSON; v came from a node that was checked.
func (l *loader) canonical(n *yaml.Node) string {
	v, err := n.JSON()
	if err == nil {
		var b []byte
		if b, err = protocol.CanonicalJSON(v); err == nil {
			return string(b)
		}
	}
	l.report(n, Diagnostic{Code: "WF002", Message: fmt.Sprintf("not a JSON value: %v", err)})
	return ""
}
