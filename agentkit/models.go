package agentkit

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/anthropic"
	"wf/agentkit/model"
	"wf/agentkit/openai"
	"wf/agentkit/script"
	"wf/agentkit/tape"
	"wf/protocol"
)

// Opener opens a model by its whole name, prefix included; dir is where the definition lies.
type Opener func(name, dir string) (llms.Model, error)

// Registry finds models by the prefix of their name, the part before the first slash. It may
// be added to before use: any llms.Model will do.
type Registry map[string]Opener

// Standard is a new Registry of the models of this module:
//
//	script/FILE      answers from FILE, relative to the workflow
//	tape/FILE        recorded traffic from FILE, relative to the workflow
//	openai/MODEL     any OpenAI-compatible server (OPENAI_BASE_URL, OPENAI_API_KEY)
//	anthropic/MODEL  the messages API (ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY)
func Standard() Registry {
	return Registry{
		"script": func(name, dir string) (llms.Model, error) {
			return NonNil(script.Open(name, fileOf(strings.TrimPrefix(name, script.Prefix), dir)))
		},
		"tape": func(name, dir string) (llms.Model, error) {
			return NonNil(tape.Open(name, fileOf(strings.TrimPrefix(name, tape.Prefix), dir)))
		},
		"openai":    func(name, _ string) (llms.Model, error) { return NonNil(openai.Open(name)) },
		"anthropic": func(name, _ string) (llms.Model, error) { return NonNil(anthropic.Open(name)) },
	}
}

// fileOf is a file named by a model, relative to dir.
func fileOf(name, dir string) string {
	file := filepath.FromSlash(name)
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(dir, file)
}

// NonNil is a model as it was opened: with an error it is nil, not a nil pointer in an interface.
func NonNil[M llms.Model](m M, err error) (llms.Model, error) {
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Open opens a model. A name with an unknown prefix is an error wrapping protocol.ErrModel
// that says what to do.
func (r Registry) Open(name, dir string) (llms.Model, error) {
	if err := r.Known(name); err != nil {
		return nil, err
	}
	prefix, _, _ := strings.Cut(name, "/")
	return r[prefix](name, dir)
}

// Known is nil where a model has a provider here, whether that can be reached or not; else the error of Open.
func (r Registry) Known(name string) error {
	if prefix, rest, ok := strings.Cut(name, "/"); ok && rest != "" && r[prefix] != nil {
		return nil
	}
	known := slices.Sorted(maps.Keys(r))
	for i, p := range known {
		known[i] = p + "/…"
	}
	return &model.Error{
		Class: model.Unavailable,
		Message: fmt.Sprintf("no provider for the model %q (there are %s). Fixes: name another with --model, "+
			"or in the role's model: list; or reach it through an OpenAI-compatible server as openai/MODEL with OPENAI_BASE_URL set; "+
			"or run without any as script/FILE", name, strings.Join(known, ", ")),
		Err: protocol.ErrModel,
	}
}
