package lang

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"wf/engine/yaml"
)

// check holds node against s and reports everything that does not fit. What was reported is
// marked bad, so that nothing later trips over it.
func (l *loader) check(n *yaml.Node, s *shape, path string) {
	if l.bad[n] {
		return
	}
	if n.IsNull() && s.kind != anyJSON {
		if !s.null {
			l.wrong(n, fmt.Sprintf("%s has no value", path), "give "+s.want()+", or remove the key")
		}
		return
	}
	switch s.kind {
	case anObject:
		l.checkObject(n, s, path)
	case aMap:
		l.checkMap(n, s, path)
	case aSchema:
		l.checkKind(n, s, path, yaml.Mapping)
	case aList:
		if !l.checkKind(n, s, path, yaml.Sequence) {
			return
		}
		if s.nonEmpty && len(n.Items) == 0 {
			l.wrong(n, path+" is empty", "add an entry, or remove the key")
		}
		if l.tooMany(n, s, path, len(n.Items)) {
			return
		}
		for i, item := range n.Items {
			l.check(item, s.elem, path+"["+strconv.Itoa(i)+"]")
		}
	case oneOf:
		l.checkOneOf(n, s, path)
	case anyJSON:
		if _, err := n.JSON(); err != nil {
			l.yamlError(err, "WF002")
			l.bad[n] = true
		}
	default:
		if l.checkKind(n, s, path, yaml.Scalar) {
			l.checkScalar(n, s, path)
		}
	}
}

func (l *loader) checkKind(n *yaml.Node, s *shape, path string, k yaml.Kind) bool {
	if n.Kind == k {
		return true
	}
	l.wrong(n, fmt.Sprintf("%s wants %s, got %s", path, s.want(), n.Describe()), l.helpOn(path))
	return false
}

func (l *loader) checkObject(n *yaml.Node, s *shape, path string) {
	if !l.checkKind(n, s, path, yaml.Mapping) {
		return
	}
	for i, p := range n.Pairs {
		k, ok := s.key(p.Key.Value)
		if !ok {
			if l.bad[p.Key] || l.splitValue(n.Pairs, i) {
				continue
			}
			if isTop(path) && strings.HasPrefix(p.Key.Value, "x-") {
				continue // a place for anchors
			}
			l.unknownKey(p.Key, s, path)
			continue
		}
		l.check(p.Value, k.shape, join(path, k.name))
	}
	for _, k := range s.keys {
		if k.required && n.Get(k.name) == nil && !hasKey(n, k.name) {
			hint := "add " + k.name + ": " + exampleOf(k.shape)
			l.wrongAt(n, "WF002", fmt.Sprintf("%s lacks the key %q", path, k.name), hint)
		}
	}
}

// splitValue reports that key i, and those without a value that follow it, are the rest of the value before it: one without
// quotes that opens a parenthesis, which a comma ended within { }.
func (l *loader) splitValue(pairs []yaml.Pair, i int) bool {
	if i == 0 || pairs[i-1].Value.Style != yaml.Plain {
		return false
	}
	before := pairs[i-1]
	text, rest := before.Value.Value, pairs[i:]
	open := func() bool { return strings.Count(text, "(") > strings.Count(text, ")") }
	for len(rest) > 0 && rest[0].Value.IsNull() && open() {
		text += ", " + rest[0].Key.Value
		l.bad[rest[0].Key] = true
		rest = rest[1:]
	}
	if text == before.Value.Value {
		return false
	}
	l.bad[before.Value] = true
	l.report(pairs[i].Key, Diagnostic{Code: "WF001", Message: fmt.Sprintf("the value of %s ends at a comma, and %q is read as a key", before.Key.Value, pairs[i].Key.Value),
		Hint: fmt.Sprintf("within { } a value with a comma wants quotes: %s: %s", before.Key.Value, strconv.Quote(text))})
	return true
}

func exampleOf(s *shape) string {
	if s.only != 0 {
		return strconv.Itoa(s.only)
	}
	return "…"
}

func hasKey(n *yaml.Node, name string) bool {
	return slices.ContainsFunc(n.Pairs, func(p yaml.Pair) bool { return p.Key.Value == name })
}

// elsewhere are keys that people bring along from other tools, with the key that stands for each.
var elsewhere = map[string]string{
	"if": "when", "condition": "when", "system": "prompt", "command": "run", "script": "run", "steps": "roles", "nodes": "roles",
	"jobs": "roles", "needs": "edges", "depends": "edges", "depends_on": "edges", "timeout_seconds": "timeout", "schema": "output",
	"retries": "retry", "loop": "for_each", "foreach": "for_each", "version": "wf", "params_env": "env",
}

// advice is what to write in place of a key that s does not have.
func advice(name string, s *shape) string {
	if name == "else" {
		return "an edge without when at the end of the role's list is the default"
	}
	if ofModel(name, s) {
		return "it is a parameter of the model: params: {" + name + ": …}"
	}
	g := grammar()
	use, ok := elsewhere[name]
	if !ok {
		use = strings.ReplaceAll(name, "-", "_")
	}
	for _, at := range []struct {
		s     *shape
		where string
	}{{s, ""}, {g.edge, ", a key of the edge that leads there"}, {g.role, ", a key of a role"}, {g.workflow, ", a key at the top of the file"}} {
		if k, has := at.s.key(use); has && (ok || at.s == s && use != name) {
			if at.s != s && at.s == g.edge {
				return fmt.Sprintf("use %s%s: {from: …, to: …, %s: …}", use, at.where, use)
			}
			return "use " + use + example(k) + at.where
		}
	}
	return ""
}

// ofModel reports whether a key that s does not have is a parameter of models, and s has a place for those.
func ofModel(name string, s *shape) bool {
	_, place := s.key("params")
	_, known := paramKinds[name]
	return place && (known || slices.Contains([]string{"seed", "stop", "stop_sequences", "response_format", "reasoning_effort", "reasoning", "thinking", "logit_bias"}, name))
}

// example is a value of a key in the form that this key has, where it takes the place of another.
func example(k *key) string {
	switch {
	case k.shape.only != 0:
		return ": " + strconv.Itoa(k.shape.only)
	case k.shape.kind == aDuration:
		return ": 90s"
	}
	return ""
}

func (l *loader) unknownKey(key *yaml.Node, s *shape, path string) {
	hint := ""
	if !l.suite {
		hint = advice(key.Value, s)
	}
	d := Diagnostic{Code: "WF001", Message: fmt.Sprintf("unknown key %q in %s", key.Value, path),
		Hint: cmp.Or(hint, "known here: "+strings.Join(s.names(), ", "))}
	if !ofModel(key.Value, s) {
		d.suggest(key.Value, s.names())
	}
	l.report(key, d)
}

func (l *loader) checkMap(n *yaml.Node, s *shape, path string) {
	if !l.checkKind(n, s, path, yaml.Mapping) {
		return
	}
	if s.nonEmpty && len(n.Pairs) == 0 {
		l.wrong(n, path+" is empty", "add an entry")
	}
	if l.tooMany(n, s, path, len(n.Pairs)) {
		return
	}
	for _, p := range n.Pairs {
		if s.pattern != nil && !s.pattern().MatchString(p.Key.Value) {
			l.wrongAt(p.Key, "WF002", fmt.Sprintf("%q is no name for %s", p.Key.Value, path), "names have "+s.like)
		}
		l.check(p.Value, s.elem, join(path, p.Key.Value))
	}
}

// tooMany refuses what the checks of the graph, which compare everything with everything,
// would take too long for.
func (l *loader) tooMany(n *yaml.Node, s *shape, path string, have int) bool {
	if s.max == 0 || have <= s.max {
		return false
	}
	l.wrong(n, fmt.Sprintf("%s has %d entries; at most %d are read", path, have, s.max), "split it into sub-workflows")
	return true
}

// checkOneOf takes the alternative for the kind of the node. Of two for a scalar, the first
// that has no complaint.
func (l *loader) checkOneOf(n *yaml.Node, s *shape, path string) {
	var fitting []*shape
	for _, a := range s.alts {
		if a.nodeKind() == n.Kind {
			fitting = append(fitting, a)
		}
	}
	if len(fitting) == 1 {
		l.check(n, fitting[0], path)
	} else if !slices.ContainsFunc(fitting, func(a *shape) bool { return scalarFits(n, a) }) {
		l.wrong(n, fmt.Sprintf("%s wants %s, got %s", path, s.want(), n.Describe()), l.helpOn(path))
	}
}

func (s *shape) nodeKind() yaml.Kind {
	switch s.kind {
	case aList:
		return yaml.Sequence
	case aMap, anObject, aSchema:
		return yaml.Mapping
	}
	return yaml.Scalar
}

// scalarFits reports whether the type of a scalar is that of s.
func scalarFits(n *yaml.Node, s *shape) bool {
	switch s.kind {
	case aString:
		return n.Type == yaml.String
	case anInt:
		return n.Type == yaml.Int
	case aBool:
		return n.Type == yaml.Bool
	case aDecimal, aMoney:
		return n.Type == yaml.Int || n.Type == yaml.Float || n.Type == yaml.String
	}
	return true
}

func (l *loader) checkScalar(n *yaml.Node, s *shape, path string) {
	if !scalarFits(n, s) {
		d := Diagnostic{Code: "WF002", Message: fmt.Sprintf("%s wants %s, got %s", path, s.want(), n.Describe())}
		if s.kind == aString && n.Style == yaml.Plain {
			d.Hint, d.Fix = "quote it to make it a string", &Fix{strconv.Quote(n.Value)}
		}
		l.report(n, d)
		return
	}
	switch s.kind {
	case aString:
		l.checkString(n, s, path)
	case anInt:
		l.checkInt(n, s, path)
	case aDuration:
		if _, ok := parseDuration(n.Value); !ok && !(s.zero && isZero(n.Value)) {
			d := Diagnostic{Code: "WF002", Message: fmt.Sprintf("%s wants %s, got %q", path, s.want(), n.Value)}
			if n.Type == yaml.Int {
				d.Hint, d.Fix = fmt.Sprintf("did you mean %ss?", n.Value), &Fix{n.Value + "s"}
			} else {
				d.Hint = tooLong(n.Value)
			}
			l.report(n, d)
		}
	case aMoney:
		if m, ok := parseMoney(n.Value); !ok || m == 0 {
			l.wrong(n, fmt.Sprintf("%s wants %s, got %q", path, s.want(), n.Value), "at most six decimals, more than 0")
		}
	case aDecimal:
		if v, ok := parseDecimal(n.Value); !ok || v == "0" {
			l.wrong(n, fmt.Sprintf("%s wants a positive number, got %q", path, n.Value), "")
		}
	}
}

func (l *loader) checkString(n *yaml.Node, s *shape, path string) {
	if s.enum != nil && !slices.Contains(s.enum, n.Value) {
		d := Diagnostic{Code: "WF002", Message: fmt.Sprintf("%s wants %s, got %q", path, s.want(), n.Value)}
		d.suggest(n.Value, s.enum)
		l.report(n, d)
	} else if s.pattern != nil && !s.pattern().MatchString(n.Value) {
		l.wrong(n, fmt.Sprintf("%s wants %s, got %q", path, s.like, n.Value), "")
	} else if s.free {
		return
	} else if strings.TrimSpace(n.Value) == "" {
		l.wrong(n, path+" is empty", "")
	} else if hasExpr(n.Value) {
		l.report(n, Diagnostic{Code: "WF020", Message: path + " is fixed; no expression can stand there"})
	}
}

func (l *loader) checkInt(n *yaml.Node, s *shape, path string) {
	v, err := n.Int()
	switch {
	case err != nil:
		l.wrong(n, fmt.Sprintf("%s: %s is out of range", path, n.Value), "")
	case s.only != 0 && v != s.only:
		l.wrong(n, fmt.Sprintf("%s is %d; this version reads %s: %d", path, v, path, s.only), "install a newer version, or write "+strconv.Itoa(s.only))
	case s.only == 0 && v < s.min:
		l.wrong(n, fmt.Sprintf("%s is %d; it must be at least %d", path, v, s.min), "")
	case s.max > 0 && v > s.max:
		l.wrong(n, fmt.Sprintf("%s is %d; it must be at most %d", path, v, s.max), "")
	}
}

// helpOn is where the page of the language tells what can stand at a place.
func (l *loader) helpOn(path string) string {
	if l.suite {
		return ""
	}
	return helpOn(path)
}

// topPath names the whole file in messages.
const topPath = "the workflow"

// isTop reports whether a path names a whole file: a workflow, or a suite.
func isTop(path string) bool { return path == topPath || path == suitePath }

func join(path, name string) string {
	if isTop(path) {
		return name
	}
	return path + "." + name
}
