package lang

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"wf/engine/yaml"
	"wf/protocol"
)

// What agents are offered: tools and models, by names that the language does not know itself.

func (l *loader) tools(r *protocol.Role, n *yaml.Node) {
	add := func(at *yaml.Node, name string) bool {
		if slices.Contains(r.Tools, name) {
			l.report(at, Diagnostic{Code: "WF018", Message: fmt.Sprintf("tool %s is named twice in roles.%s", name, r.Name), Hint: "remove one"})
			return false
		}
		l.serverOf(at, name)
		l.toolNamed(at, name, r)
		r.Tools = append(r.Tools, name)
		return true
	}
	for _, it := range items(n) {
		if it.Kind == yaml.Scalar && l.good(it) {
			add(it, it.Value)
		}
		for _, p := range l.pairs(it) {
			if add(p.Key, p.Key.Value) {
				r.Approvals = append(r.Approvals, protocol.NamedTemplate{Name: p.Key.Value, Value: p.Value.Value})
			}
		}
	}
	slices.Sort(r.Tools)
	slices.SortFunc(r.Approvals, func(a, b protocol.NamedTemplate) int { return cmp.Compare(a.Name, b.Name) })
}

// called are tools of other agents, by the names that people bring along.
var called = map[string]string{
	"bash": "shell", "sh": "shell", "exec": "shell", "terminal": "shell", "run": "shell", "run_command": "shell", "execute": "shell",
	"read": "read_file", "cat": "read_file", "view": "read_file", "write": "write_file", "create_file": "write_file",
	"edit": "edit_file", "patch": "edit_file", "apply_patch": "edit_file", "str_replace": "edit_file", "multiedit": "edit_file",
	"grep": "search", "rg": "search", "find": "search", "glob": "list_files", "ls": "list_files", "list_dir": "list_files",
}

// toolNamed checks the name of a tool that no server offers (WF019).
func (l *loader) toolNamed(at *yaml.Node, name string, r *protocol.Role) {
	if strings.HasPrefix(name, "mcp:") || len(l.o.Tools) == 0 || slices.Contains(l.o.Tools, name) {
		return
	}
	if slices.Contains(l.o.MemoryTools, name) {
		if r.Memory == nil {
			l.report(at, Diagnostic{Code: "WF019", Message: fmt.Sprintf("the tool %s needs a memory", name), Hint: fmt.Sprintf("add  memory: true  to roles.%s", r.Name)})
		}
		return
	}
	known := slices.Sorted(slices.Values(append(slices.Clone(l.o.Tools), l.o.MemoryTools...)))
	d := Diagnostic{Code: "WF019", Message: fmt.Sprintf("unknown tool %q", name), Hint: "there are " + strings.Join(known, ", ") + "; those of a server are named mcp:SERVER/TOOL"}
	near := called[strings.ToLower(name)]
	if !slices.Contains(known, near) {
		near = nearest(name, known)
	}
	if near != "" {
		d.Hint, d.Fix = fmt.Sprintf("did you mean %q?", near), &Fix{near}
	}
	l.report(at, d)
}

// models are the names of the models that an agent tries in order.
func (l *loader) models(n *yaml.Node) []string {
	if n != nil && n.Kind == yaml.Scalar {
		l.model(n)
	}
	for _, it := range items(n) {
		l.model(it)
	}
	return l.words(n)
}

// model is the name of a model, which begins with the provider that has it (WF033). A provider
// that is not known here may be in the config of another machine (WF508).
func (l *loader) model(n *yaml.Node) string {
	name := l.str(n)
	if name == "" {
		return ""
	}
	provider, rest, _ := strings.Cut(name, "/")
	providers := slices.Sorted(slices.Values(l.o.Providers))
	switch {
	case provider == "" || rest == "":
		d := Diagnostic{Code: "WF033", Message: fmt.Sprintf("the model %q wants the form PROVIDER/MODEL", name), Hint: "name its provider"}
		if by := makerOf(name); by != "" {
			d.Hint, d.Fix = fmt.Sprintf("did you mean %q?", by+"/"+name), &Fix{by + "/" + name}
		} else if len(providers) > 0 {
			d.Hint += "; the providers are " + strings.Join(providers, ", ")
		}
		l.report(n, d)
		return ""
	case len(providers) > 0 && !slices.Contains(providers, provider) && !l.warned[n]:
		l.warned[n] = true // a default reaches many roles
		d := Diagnostic{Code: "WF508", Message: fmt.Sprintf("no provider %q for the model %s is known here", provider, name),
			Hint: "the providers are " + strings.Join(providers, ", ") + "; declare others under providers in .wf/config.yaml"}
		if near := nearest(provider, providers); near != "" {
			d.Hint = fmt.Sprintf("did you mean %q?", near+strings.TrimPrefix(name, provider))
			d.Fix = &Fix{near + strings.TrimPrefix(name, provider)}
		}
		l.report(n, d)
	}
	return name
}

// makers are the beginnings of the names that the models of a provider have.
var makers = []struct{ begins, provider string }{
	{"gpt-", "openai"}, {"o1", "openai"}, {"o3", "openai"}, {"o4", "openai"}, {"chatgpt", "openai"}, {"claude", "anthropic"},
}

// makerOf is the provider of a model that is known by its name alone.
func makerOf(name string) string {
	for _, m := range makers {
		if strings.HasPrefix(name, m.begins) {
			return m.provider
		}
	}
	return ""
}
