package lang

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"wf/engine/lint"
	"wf/engine/yaml"
	"wf/protocol"
	"wf/roles/schema"
)

// isTime reports whether s is a time that a run can wait for: one that its records can hold.
func isTime(s string) bool {
	at, err := time.Parse(time.RFC3339, s)
	return err == nil && at.UnixMicro() > 0 && at.UnixMicro() <= protocol.MaxSafeInt
}

// schema reads a JSON Schema for objects (WF030), as canonical JSON.
func (l *loader) schema(n *yaml.Node, path string) string {
	if !l.good(n) || n.Kind != yaml.Mapping {
		return ""
	}
	bad := func(at *yaml.Node, msg, hint string) string {
		l.report(at, Diagnostic{Code: "WF030", Message: msg, Hint: hint})
		return ""
	}
	v, err := n.JSON()
	if err != nil {
		l.yamlError(err, "WF030")
		return ""
	}
	if typ, ok := v.(map[string]any)["type"]; !ok {
		return bad(n, path+" has no type at its top", "add type: object")
	} else if typ != "object" {
		return bad(n.Get("type"), fmt.Sprintf("%s describes %v at its top; the fields are an object", path, typ), "write type: object, and the fields under properties")
	}
	b, err := protocol.CanonicalJSON(v)
	if err != nil {
		return bad(n, fmt.Sprintf("%s: %v", path, err), "")
	}
	if err := checkSchema(string(b)); err != nil {
		at, why := schemaFault(n, err)
		return bad(at, fmt.Sprintf("%s is not a valid JSON Schema: %s", path, why), "")
	}
	if extra := undeclared(n); extra != nil {
		return bad(extra, fmt.Sprintf("%s requires %q, which properties lacks", path, extra.Value), "declare it under properties")
	}
	return string(b)
}

// unrendered refuses expressions in a form, which people would be shown as they are written.
func (l *loader) unrendered(n *yaml.Node, path string) {
	if !l.good(n) {
		return
	}
	if n.Type == yaml.String && hasExpr(n.Value) {
		l.report(n, Diagnostic{Code: "WF020", Message: fmt.Sprintf("%s is fixed; no expression can stand at %q", path, n.Value), Hint: "show the value in the text of ask; choices can be an expression"})
	}
	for _, it := range n.Items {
		l.unrendered(it, path)
	}
	for _, p := range n.Pairs {
		l.unrendered(p.Value, path)
	}
}

// undeclared is an entry of required that properties does not name.
func undeclared(n *yaml.Node) *yaml.Node {
	props := n.Get("properties")
	if props == nil || props.Kind != yaml.Mapping {
		return nil
	}
	for _, r := range items(n.Get("required")) {
		if r.Kind == yaml.Scalar && !hasKey(props, r.Value) {
			return r
		}
	}
	return nil
}

// schemaFault finds the node that a schema error is about, or n, and gives the reason: of several the one
// that says what would have been valid.
func schemaFault(n *yaml.Node, err error) (at *yaml.Node, reason string) {
	invalid, ok := errors.AsType[*schema.Invalid](err)
	if !ok {
		return n, err.Error()
	}
	i := slices.IndexFunc(invalid.Violations, func(v schema.Violation) bool { return strings.Contains(v.Reason, "must be") })
	worst := invalid.Violations[max(i, 0)]
	for step := range strings.SplitSeq(strings.TrimPrefix(worst.Pointer, "/"), "/") {
		next := n.Get(strings.NewReplacer("~1", "/", "~0", "~").Replace(step))
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(n.Items) {
			next = n.Items[i]
		}
		if next == nil {
			break
		}
		n = next
	}
	return n, worst.String()
}

// roleRules checks what the grammar cannot say: commands take their values from env, quoted
// (WF041); a directory stays in the workspace.
func (l *loader) roleRules() {
	for i := range l.w.Roles {
		r := &l.w.Roles[i]
		n := l.roleNodes[r.Name]
		if dir := n.Get("dir"); l.good(dir) && (strings.HasPrefix(r.Dir, "/") || strings.HasPrefix(r.Dir, "~") || leaves(r.Dir)) {
			l.report(dir, Diagnostic{Code: "WF002", Message: fmt.Sprintf("roles.%s.dir is %q, outside of the workspace", r.Name, r.Dir), Hint: "name a directory below it"})
		}
		l.cacheRules(r, n.Get("cache"))
		run := n.Get("run")
		if !l.good(run) {
			continue
		}
		l.runRules(r, run)
	}
}

// leaves reports whether a relative path climbs out of where it starts.
func leaves(dir string) bool {
	clean := path.Clean(strings.TrimLeft(slashed(dir), "/"))
	return clean == ".." || strings.HasPrefix(clean, "../")
}

func (l *loader) runRules(r *protocol.Role, run *yaml.Node) {
	spliced := strings.Count(run.Value, lint.OpenMark)
	for nth := range spliced {
		at := l.markPos(run, nth)
		l.add(Diagnostic{Code: "WF041", Range: Range{at, Pos{Line: at.Line, Col: at.Col + len(lint.OpenMark)}},
			Message: fmt.Sprintf("an expression inside roles.%s.run would be read by the shell as code", r.Name),
			Hint:    `hand the value over: env: {VALUE: "${{ … }}"}, and use "$VALUE" in the command`})
	}
	if spliced > 0 {
		return
	}
	volatile := map[string]bool{}
	for _, e := range r.Env {
		if hasExpr(e.Value) {
			volatile[e.Name] = true
		}
	}
	for _, use := range unquoted(run.Value, volatile) {
		at := l.textPos(run, use.at)
		l.add(Diagnostic{Code: "WF041", Range: Range{at, Pos{Line: at.Line, Col: at.Col + use.width}},
			Message: fmt.Sprintf("$%s is not quoted in roles.%s.run: its value would be split and expanded", use.name, r.Name),
			Hint:    fmt.Sprintf(`write "$%s"`, use.name)})
	}
}
