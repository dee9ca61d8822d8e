package lang

import (
	"fmt"
	"slices"
	"strconv"

	"wf/engine/yaml"
	"wf/protocol"
	"wf/protocol/lazy"
	"wf/protocol/tree"
)

var byteSize = lazy.Regexp(`^[1-9][0-9]{0,8}(KB|MB|GB)$`)

// artifacts reads which files are kept, and of which roles files are given; nil where none are. What holds by default is not written down.
func (l *loader) artifacts(role string, n *yaml.Node) *protocol.Artifacts {
	if !l.good(n) {
		return nil
	}
	paths, out := n, &protocol.Artifacts{}
	if n.Kind == yaml.Mapping {
		paths = n.Get("paths")
		out.From = l.words(n.Get("from"))
		slices.Sort(out.From)
		if paths == nil && n.Get("from") == nil {
			l.wrong(n, fmt.Sprintf("roles.%s.artifacts has neither paths nor from", role), "add  paths: [dist/**]  for files to keep, or  from: [build]  for those of an earlier role")
		}
		out.MaxSize = l.bytes(n.Get("max_size"), protocol.ArtifactSize, protocol.ArtifactSizeMax)
		out.MaxTotal = l.bytes(n.Get("max_total"), protocol.ArtifactTotal, protocol.ArtifactTotalMax)
		if out.MaxFiles = l.integer(n.Get("max_files")); out.MaxFiles == protocol.ArtifactFiles {
			out.MaxFiles = 0
		}
	}
	for _, item := range items(paths) {
		out.Paths = append(out.Paths, l.str(item))
	}
	if _, err := tree.NewGlobs(out.Paths); err != nil && len(out.Paths) > 0 {
		l.wrong(paths, fmt.Sprintf("roles.%s.artifacts: %v", role, err), "globs are relative to the workspace and stay in it, such as dist/** or report.html")
	}
	if len(out.Paths) == 0 {
		out.MaxSize, out.MaxTotal, out.MaxFiles = 0, 0, 0
	}
	if len(out.Paths)+len(out.From) == 0 {
		return nil
	}
	return out
}

// artifactRules refuses roles that others are to have files of and that keep none (WF037).
func (l *loader) artifactRules() {
	for i := range l.w.Roles {
		r := &l.w.Roles[i]
		if r.Artifacts == nil || len(r.Artifacts.From) == 0 {
			continue
		}
		n := l.roleNodes[r.Name].Get("artifacts")
		if n.Get("paths") == nil {
			for _, key := range []string{"max_size", "max_total", "max_files"} {
				if at := n.Get(key); at != nil {
					l.wrongAt(at, "WF037", fmt.Sprintf("%s has no effect: it bounds what paths chooses", key), "remove it, or add paths")
				}
			}
		}
		for _, it := range items(n.Get("from")) {
			name := l.str(it)
			switch {
			case name == "":
			case l.roleNodes[name] == nil:
				d := Diagnostic{Code: "WF010", Message: fmt.Sprintf("unknown role %q in artifacts.from of %s", name, r.Name), Hint: "declare it under roles"}
				d.suggest(name, l.roleOrder)
				l.report(it, d)
			case l.isAlways(name) && !l.isAlways(r.Name):
				l.wrongAt(it, "WF037", fmt.Sprintf("%s stands under always: it runs after %s", name, r.Name), "name a role that runs before")
			case !l.keepsFiles(name):
				l.wrongAt(it, "WF037", fmt.Sprintf("%s keeps no files", name), fmt.Sprintf("add  artifacts: [GLOB]  to roles.%s, or remove the name", name))
			}
		}
	}
}

// keepsFiles reports whether a role keeps files, or a role of its sub-workflow does; one of which that is not known does.
func (l *loader) keepsFiles(name string) bool {
	r, ok := l.w.RoleNamed(name)
	if !ok || r.Action == "" || l.bad[l.roleNodes[name].Get("artifacts")] {
		return true // reported
	}
	if r.Action != protocol.ActWorkflow {
		return r.Keeps()
	}
	child := l.children[r.Workflow]
	return child == nil || child.Keeps()
}

// Keeps reports whether a role of the workflow, or of its sub-workflows, keeps files.
func (p *Program) Keeps() bool {
	for i := range p.Workflow.Roles {
		r := &p.Workflow.Roles[i]
		if r.Keeps() {
			return true
		}
		if child := p.Children[r.Workflow]; r.Action == protocol.ActWorkflow && child != nil && child.Keeps() {
			return true
		}
	}
	return false
}

// bytes reads a size; 0 is the default.
func (l *loader) bytes(n *yaml.Node, def, most int64) int64 {
	text := l.str(n)
	if text == "" || !byteSize().MatchString(text) {
		return 0
	}
	unit := map[string]int64{"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}[text[len(text)-2:]]
	count, err := strconv.ParseInt(text[:len(text)-2], 10, 64)
	if err != nil || count > most/unit {
		l.wrong(n, fmt.Sprintf("%s is more than there can be", text), fmt.Sprintf("at most %dGB", most>>30))
		return 0
	}
	if count*unit == def {
		return 0
	}
	return count * unit
}
