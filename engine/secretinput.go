package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"wf/engine/lang"
	"wf/protocol"
	"wf/roles"
)

// Inputs are stored, shown and sent to models as they are given: to hide a secret in them would change
// what expressions compute, and what a resume does. So a run whose inputs hold one is refused before
// anything is written.

// openInputs refuses inputs that hold the value of a secret which the program or a sub-workflow of it
// declares, or what has the shape of a well-known kind of key. Those named in allowed may. The error
// wraps protocol.ErrInputs and tells no value.
func openInputs(p *lang.Program, inputs protocol.JSON, allowed []string) error {
	for _, name := range allowed {
		if _, declared := p.Workflow.Inputs[name]; !declared {
			return &protocol.Error{Code: protocol.ErrInputs.Code, Message: fmt.Sprintf("input %q, which may hold a secret, is not declared", name),
				Hint: "--allow-secret-input takes the name of an input, and is repeated for several"}
		}
	}
	var given map[string]json.RawMessage
	if len(inputs) > 0 {
		if err := json.Unmarshal(inputs, &given); err != nil {
			return fmt.Errorf("inputs: %w: %w", protocol.ErrInputs, err)
		}
	}
	hide := roles.NewRedactor(roles.Secrets(os.Environ(), declaredSecrets(p)))
	var holding, names []string
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if slices.Contains(allowed, name) {
			continue
		}
		if held := secretIn(hide, given[name]); held != "" {
			holding = append(holding, fmt.Sprintf("input %q holds %s", name, held))
			names = append(names, name)
		}
	}
	if holding == nil {
		return nil
	}
	return &protocol.Error{
		Code:    protocol.ErrInputs.Code,
		Message: strings.Join(holding, "; ") + ": inputs are stored, shown and sent to models; nothing ran",
		Hint: fmt.Sprintf("use `secrets:` (declare secrets: [NAME], hand it to a role by env: {NAME: \"${{ secrets.NAME }}\"}, and export NAME); "+
			"where it is no secret, or may be seen: --allow-secret-input %s, in a request allow_secret_inputs", strings.Join(names, " --allow-secret-input ")),
	}
}

// secretIn names the first secret in a value, "" for none.
func secretIn(hide *roles.Redactor, value json.RawMessage) string {
	texts := []string{string(value)}
	var plain string
	if json.Unmarshal(value, &plain) == nil {
		texts = append(texts, plain)
	}
	for _, text := range texts {
		if name, kind := hide.Find(text); name != "" {
			return "the value of the secret " + name
		} else if kind != "" {
			return "what has the shape of a secret (" + kind + ")"
		}
	}
	return ""
}

// declaredSecrets are the secrets that a program and its sub-workflows declare.
func declaredSecrets(p *lang.Program) []string {
	all := slices.Clone(p.Workflow.Secrets)
	for _, child := range p.Children {
		all = append(all, declaredSecrets(child)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
