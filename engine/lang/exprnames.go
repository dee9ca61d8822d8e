package lang

import (
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr/types"

	"wf/engine/lint"
)

// spelled are words of other languages, as expressions spell them.
var spelled = map[string]string{"null": "nil", "None": "nil", "undefined": "nil", "True": "true", "False": "false"}

// unknown reports a name that nothing has.
func (x *exprCheck) unknown(root lint.Step) {
	name := root.Name
	_, isInput := x.w.Inputs[name]
	meant := ""
	switch {
	case spelled[name] != "" && !isInput:
		meant = spelled[name]
	case slices.Contains(disabled, name):
		x.switchedOff(root)
		return
	case name == "$env":
		x.fail("WF024", root.At, "$env is switched off", "name what is meant", nil)
		return
	case x.roles[name] != nil:
		meant = "steps." + name
	case isInput:
		meant = "inputs." + name
	default:
		x.suggest("WF020", root, fmt.Sprintf("unknown name %s", name), roots, "known: "+strings.Join(roots, ", "))
		return
	}
	x.fail("WF020", root.At, fmt.Sprintf("unknown name %s", name), fmt.Sprintf("did you mean %q?", meant), &Fix{meant})
}

// switchedOff reports a function that an expression cannot have.
func (x *exprCheck) switchedOff(name lint.Step) {
	hint := "pass the value in as an input"
	if slices.Contains(unordered, name.Name) {
		hint = "an object has no order: name its fields, or give a list"
	}
	x.fail("WF024", name.At, fmt.Sprintf("%s is switched off: its result would differ from run to run", name.Name), hint, nil)
}

// suggest reports with the nearest of names as hint, else with the given one.
func (x *exprCheck) suggest(code string, at lint.Step, msg string, names []string, hint string) {
	var fix *Fix
	if near := nearest(at.Name, names); near != "" {
		hint, fix = fmt.Sprintf("did you mean %q?", near), &Fix{near}
	}
	x.fail(code, at.At, msg, hint, fix)
}

func (x *exprCheck) input(ls []lint.Step) {
	all := types.Map{}
	for name, in := range x.w.Inputs {
		all[name] = inputType(in).expr()
	}
	x.env["inputs"] = all
	if len(ls) < 2 || ls[1].Name == "" {
		return
	}
	in, ok := x.w.Inputs[ls[1].Name]
	if !ok {
		names := sortedKeys(x.w.Inputs)
		hint := "declare it under inputs"
		if len(names) > 0 {
			hint = "declared: " + strings.Join(names, ", ")
		}
		x.suggest("WF020", ls[1], fmt.Sprintf("unknown input %q", ls[1].Name), names, hint)
		return
	}
	x.walk(inputType(in), ls, 2, "inputs."+ls[1].Name)
}

func (x *exprCheck) outputs(ls []lint.Step) {
	m := x.env["outputs"].(types.Map)
	if len(ls) < 2 || ls[1].Name == "" {
		for name, t := range x.s.outputs {
			m[name] = t.expr()
		}
		return
	}
	name := ls[1].Name
	t, ok := x.s.outputs[name]
	switch {
	case ok:
		m[name] = t.expr()
		x.walk(t, ls, 2, "outputs."+name)
	case x.roles[name] == nil:
		x.suggest("WF010", ls[1], fmt.Sprintf("unknown role %q in outputs", name), sortedKeys(x.s.outputs), "")
	default:
		x.fail("WF022", ls[1].At, fmt.Sprintf("outputs lacks %s here: it holds the sources of a join", name), fmt.Sprintf("use steps.%s.output", name), nil)
	}
}

var stepFields = []string{"output", "text", "status", "exit_code", "visit", filesField, filesCountField}

// fileType is one of the files that a step keeps.
var fileType = func() *typ {
	return objectType(map[string]*typ{"path": stringT, "size": intT, "hash": stringT, "mode": {kind: tString, enum: []any{"file", "exec", "link"}}})
}

func (x *exprCheck) steps(ls []lint.Step) {
	m := x.env["steps"].(types.Map)
	if len(ls) < 2 || ls[1].Name == "" {
		m[types.Extra] = types.Any
		return
	}
	name := ls[1].Name
	if x.roles[name] == nil {
		x.suggest("WF010", ls[1], fmt.Sprintf("unknown role %q in steps", name), sortedKeys(x.roles), "")
		return
	}
	if x.isAlways(name) && !x.s.closing {
		x.fail("WF020", ls[1].At, fmt.Sprintf("%s stands under always: nothing of it is known before the run closes", name), "", nil)
		return
	}
	exit := anyT
	if r, ok := x.w.RoleNamed(name); ok && r.Run != "" {
		exit = intT
	}
	t := objectType(map[string]*typ{"output": x.yields(name), "text": stringT, "exit_code": exit, "visit": intT,
		"status": {kind: tString, enum: []any{"ok", "failed", "skipped"}}})
	if len(ls) > 2 && (ls[2].Name == filesField || ls[2].Name == filesCountField) { // a step as a whole is without them
		if !x.keepsFiles(name) {
			x.fail("WF037", ls[2].At, name+" keeps no files", fmt.Sprintf("add  artifacts: [GLOB]  to roles.%s", name), nil)
			return
		}
		t.fields[filesField], t.fields[filesCountField] = listType(fileType()), intT
	}
	m[name] = t.expr()
	if len(ls) > 2 && ls[2].Name != "" && !slices.Contains(stepFields, ls[2].Name) {
		hint := "a step has " + strings.Join(stepFields, ", ")
		if o := t.fields["output"]; o.kind == tObject && o.fields[ls[2].Name] != nil {
			hint = fmt.Sprintf("did you mean %q?", "output."+ls[2].Name)
		}
		x.suggest("WF022", ls[2], fmt.Sprintf("steps.%s has no field %q", name, ls[2].Name), stepFields, hint)
		return
	}
	x.walk(t, ls, 2, "steps."+name)
}

func (x *exprCheck) secret(ls []lint.Step) {
	switch {
	case !x.s.secrets:
		x.fail("WF040", ls[0].At, "a secret can stand in env alone", "hand it to a command by env", nil)
	case !isSecretExpr(x.src):
		x.fail("WF040", ls[0].At, "a secret stands alone in its ${{ }}", "write ${{ secrets.NAME }}", nil)
	case !slices.Contains(x.w.Secrets, ls[1].Name):
		x.suggest("WF040", ls[1], fmt.Sprintf("secret %s is not declared", ls[1].Name), x.w.Secrets, fmt.Sprintf("add secrets: [%s] at the top", ls[1].Name))
	default:
		x.env["secrets"] = types.Map{ls[1].Name: types.String}
	}
}

// walk follows the rest of a chain into t and reports the first field that t lacks (WF022).
func (x *exprCheck) walk(t *typ, ls []lint.Step, i int, path string) {
	for ; i < len(ls) && ls[i].Name != "" && t != nil && t.kind == tObject; i++ {
		f, ok := t.fields[ls[i].Name]
		if !ok && t.open {
			return
		}
		if !ok {
			names := sortedKeys(t.fields)
			hint := "it has " + strings.Join(names, ", ")
			if len(names) == 0 {
				hint = "it has no fields; declare them under output"
			}
			x.suggest("WF022", ls[i], fmt.Sprintf("%s has no field %q", path, ls[i].Name), names, hint)
			return
		}
		t, path = f, path+"."+ls[i].Name
	}
	if i < len(ls) && ls[i].Name != "" && t != nil && t.kind == tList {
		x.fail("WF022", ls[i].At, fmt.Sprintf("%s is a list, which has no field %q", path, ls[i].Name), fmt.Sprintf("use %s[0], map(%s, .%s) or a for_each", path, path, ls[i].Name), nil)
	}
}
