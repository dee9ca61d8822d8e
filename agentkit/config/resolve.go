package config

import (
	"fmt"
	"slices"
	"strings"

	"wf/protocol"
)

// Source says where the models of a role come from.
type Source string

// The sources, in the order in which they are asked.
const (
	ByFlag        Source = "--model"
	ByRole        Source = "workflow"
	ByConfig      Source = "config"
	ByEnvironment Source = "environment"
)

// byKey are the models that a key in the environment stands for, in order.
var byKey = []struct{ variable, model string }{
	{"ANTHROPIC_API_KEY", "anthropic/claude-sonnet-4-5"},
	{"OPENAI_API_KEY", "openai/gpt-5"},
}

// Resolution is the models of one role.
type Resolution struct {
	Role   string
	Models []string // tried in order
	Source Source
	Detail string // the file or variable, "" for none
}

// String is how it is printed: coder: a/b, c/d (workflow).
func (r Resolution) String() string {
	detail := ""
	if r.Detail != "" {
		detail = " " + r.Detail
	}
	return fmt.Sprintf("%s: %s (%s%s)", r.Role, strings.Join(r.Models, ", "), r.Source, detail)
}

// Resolve finds the models of a role: those of the flag, else the role's own, else the config's
// default, else that of a key in the environment. With none it is an error wrapping
// protocol.ErrModel with three fixes. A default of a project that is not trusted is one as well, where it
// leads off this machine: no other takes its place in silence.
func (l *Loaded) Resolve(role string, flag, own []string, lookup func(string) (string, bool)) (Resolution, error) {
	r := Resolution{Role: role}
	switch {
	case len(flag) > 0:
		r.Models, r.Source = flag, ByFlag
	case len(own) > 0:
		r.Models, r.Source = own, ByRole
	case len(l.wanted) > 0:
		why := fmt.Sprintf("%s makes %s the default, and is not trusted", l.Project.Path, strings.Join(l.wanted, ", "))
		return r, fmt.Errorf("the role %s names no model: %w", role, protocol.ErrModel.With(why+": look at it, then wf trust; or name a model with --model PROVIDER/MODEL", "%s", why))
	case len(l.Model) > 0:
		r.Models, r.Source, r.Detail = l.Model, ByConfig, l.modelFrom()
	default:
		for _, k := range byKey {
			if value, ok := lookup(k.variable); ok && value != "" {
				r.Models, r.Source, r.Detail = []string{k.model}, ByEnvironment, k.variable
				return r, nil
			}
		}
		return r, fmt.Errorf("the role %s names no model: %w", role, protocol.ErrModel.With("set ANTHROPIC_API_KEY or OPENAI_API_KEY; or name a model with --model PROVIDER/MODEL, as model: of the role, "+
			"or as model: in .wf/config.yaml; or run without one, with --model script/FILE", "none is set"))
	}
	return r, nil
}

// AllowsModel reports whether allow_models has a model: by its whole name, or, unless it is a local
// file (script/…, tape/…), by a prefix.
func (l *Loaded) AllowsModel(model string) bool {
	return slices.ContainsFunc(l.AllowModels, func(allowed string) bool {
		prefix, open := strings.CutSuffix(allowed, "*")
		return allowed == model || open && strings.HasPrefix(model, prefix) &&
			!strings.HasPrefix(model, "script/") && !strings.HasPrefix(model, "tape/")
	})
}

// modelFrom is the file that names the default model: the last one read that does.
func (l *Loaded) modelFrom() string {
	for _, f := range slices.Backward(l.Files) {
		if c, err := Parse(f.Path, string(f.text)); err == nil && len(c.Model) > 0 {
			return f.Path
		}
	}
	return ""
}
