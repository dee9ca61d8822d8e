package main

import (
	"slices"
	"strings"

	"wf/engine/lang"
	"wf/protocol"
	"wf/service"
)

// sweptModels reads the models that roles take in turn.
func sweptModels(definitions []service.BisectVersion, flags []string) ([]service.SweepModel, error) {
	var out []service.SweepModel
	for _, flag := range flags {
		role, list, named := strings.Cut(flag, "=")
		if !named {
			role, list = "", flag
		}
		m := service.SweepModel{Role: role}
		for name := range strings.SplitSeq(list, ",") {
			if name = strings.TrimSpace(name); name == "" || slices.Contains(m.Models, name) {
				return nil, usagef("--model %s: want names of models, each once: a,b or role=a,b", flag)
			}
			m.Models = append(m.Models, name)
		}
		if !slices.ContainsFunc(definitions, func(d service.BisectVersion) bool { return agentsOf(d.Program, role) }) {
			return nil, usagef("--model %s: no definition has an agent %q", flag, role)
		}
		i := slices.IndexFunc(out, func(x service.SweepModel) bool { return x.Role == role })
		if i < 0 {
			out = append(out, m)
			continue
		}
		for _, name := range m.Models {
			if slices.Contains(out[i].Models, name) {
				return nil, usagef("--model %s: %s is named twice", flag, name)
			}
			out[i].Models = append(out[i].Models, name)
		}
	}
	return out, nil
}

// agentsOf reports whether a definition has an agent of that name; with "", any agent or sub-workflow.
func agentsOf(p *lang.Program, role string) bool {
	if role != "" {
		return service.HasAgent(p, role)
	}
	return slices.ContainsFunc(p.Workflow.Roles, func(r protocol.Role) bool {
		return r.Action == protocol.ActPrompt || r.Action == protocol.ActWorkflow
	})
}

// sweptInputs reads the inputs with the values that they take in turn. A definition gets those that it declares; one that takes
// several values has to be declared by all.
func (a *app) sweptInputs(definitions []service.BisectVersion, f runFlags) ([]service.SweepInput, error) {
	flags := f.inputs
	f.inputs = nil
	given, err := a.given(nil, f)
	if err != nil {
		return nil, err
	}
	var out []service.SweepInput
	add := func(name string, value any) {
		i := slices.IndexFunc(out, func(x service.SweepInput) bool { return x.Name == name })
		if i < 0 {
			i, out = len(out), append(out, service.SweepInput{Name: name})
		}
		out[i].Values = append(out[i].Values, value)
	}
	declares := func(name string) *lang.Program {
		for _, d := range definitions {
			if _, ok := d.Program.Workflow.Inputs[name]; ok {
				return d.Program
			}
		}
		return definitions[0].Program
	}
	for _, flag := range flags {
		name, text, _ := strings.Cut(flag, "=")
		values, ranged, err := service.SweepRange(text)
		if err != nil {
			return nil, err
		}
		if !ranged {
			values = []string{text}
		}
		delete(given, name)
		for _, text := range values {
			one, err := a.given(declares(name).Coerce, runFlags{inputs: []string{name + "=" + text}})
			if err != nil {
				return nil, err
			}
			add(name, one[name])
		}
	}
	for name, value := range given {
		add(name, value)
	}
	protocol.Sort(out, func(x, y service.SweepInput) int { return strings.Compare(x.Name, y.Name) })
	for _, in := range out {
		var without []string
		for _, d := range definitions {
			if _, ok := d.Program.Workflow.Inputs[in.Name]; !ok {
				without = append(without, d.Name)
			}
		}
		switch {
		case len(without) == len(definitions):
			_, err := definitions[0].Program.Inputs(map[string]any{in.Name: in.Values[0]})
			return nil, protocol.Hinted(err, "no definition declares it")
		case len(without) > 0 && len(in.Values) > 1:
			return nil, usagef("-i %s takes %d values, and %s does not declare it: its trials would be the same", in.Name, len(in.Values), without[0])
		}
	}
	return out, nil
}
