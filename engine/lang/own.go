package lang

import (
	"fmt"

	"wf/engine/yaml"
	"wf/protocol"
	"wf/protocol/tree"
)

// ownWorkspace reads whether visits have a copy of the workspace for themselves; nil where they have none. What holds by default
// is not written down.
func (l *loader) ownWorkspace(role string, n *yaml.Node) *protocol.OwnWorkspace {
	if !l.good(n) {
		return nil
	}
	out := &protocol.OwnWorkspace{Own: true}
	if n.Kind != yaml.Mapping {
		return out
	}
	if out.Own = l.yes(n.Get("own")); !out.Own {
		return nil
	}
	carry := n.Get("carry")
	out.Carry = l.words(carry)
	if _, err := tree.NewGlobs(out.Carry); err != nil && len(out.Carry) > 0 {
		l.wrong(carry, fmt.Sprintf("roles.%s.workspace.carry: %v", role, err), "globs are relative to the workspace and stay in it, such as node_modules")
	}
	out.MaxCopy = l.bytes(n.Get("max_copy"), protocol.OwnCopyMax, protocol.OwnCopyMost)
	out.Whole = l.yes(n.Get("whole"))
	return out
}

// mergeRules finds roles to merge that are none, or have no files of their own.
func (l *loader) mergeRules() {
	for _, r := range l.w.Roles {
		if r.Merge == nil || r.Merge.Of == "" {
			continue
		}
		at := l.roleNodes[r.Name].Get("merge").Get("of")
		of, ok := l.w.RoleNamed(r.Merge.Of)
		switch {
		case !ok:
			d := Diagnostic{Code: "WF010", Message: fmt.Sprintf("unknown role %q in merge.of", r.Merge.Of), Hint: "declare it under roles"}
			d.suggest(r.Merge.Of, l.roleOrder)
			l.report(at, d)
		case of.Workspace == nil:
			l.report(at, Diagnostic{Code: "WF038", Message: fmt.Sprintf("%s works in the workspace itself: there is nothing to merge", of.Name), Hint: fmt.Sprintf("say  workspace: own  in roles.%s", of.Name)})
		}
	}
}

// mergeType is what a merge yields.
func mergeType() *typ {
	status := &typ{kind: tString, enum: []any{protocol.MergeOK, protocol.MergeConflict}}
	conflict := objectType(map[string]*typ{"path": stringT, "kind": stringT, "item": intT, "lines": stringT})
	return objectType(map[string]*typ{"status": status, "base": stringT, "tree": stringT, "conflicts": listType(conflict)})
}
