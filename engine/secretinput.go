package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
// what expressions compute, and what a resume does. So a run with inputs that hold one is refused before
// anything is written, a fork under a definition that declares what they hold as well; the step of a
// sub-workflow fails, since its inputs are computed. What people and programs say later is text, in which
// secrets are hidden before it is stored.

// openInputs refuses inputs that hold the value of a secret which the program or a sub-workflow of it
// declares, or what has the shape of a well-known kind of key. Those named in allowed may. The error
// wraps protocol.ErrInputs and tells no value.
func openInputs(p *lang.Program, inputs protocol.JSON, allowed []string) error {
	for _, name := range allowed {
		if _, declared := p.Workflow.Inputs[name]; !declared {
			return protocol.ErrInputs.With("--allow-secret-input takes the name of an input, and is repeated for several",
				"input %q, which may hold a secret, is not declared", name)
		}
	}
	holding, names, err := inputsWithSecrets(p, inputs, func(name string, _ json.RawMessage) bool { return slices.Contains(allowed, name) })
	if err != nil || holding == nil {
		return err
	}
	hint := fmt.Sprintf("use `secrets:` (declare secrets: [NAME], hand it to a role by env: {NAME: \"${{ secrets.NAME }}\"}, and export NAME); "+
		"where it is no secret, or may be seen: --allow-secret-input %s, in a request allow_secret_inputs", strings.Join(names, " --allow-secret-input "))
	return protocol.ErrInputs.With(hint, "%s: inputs are stored, shown and sent to models; nothing ran", strings.Join(holding, "; "))
}

// inputsWithSecrets are the inputs that hold one, each with what it holds, but for those that may.
func inputsWithSecrets(p *lang.Program, inputs protocol.JSON, may func(name string, value json.RawMessage) bool) (holding, names []string, err error) {
	var given map[string]json.RawMessage
	if len(inputs) > 0 {
		if err := json.Unmarshal(inputs, &given); err != nil {
			return nil, nil, fmt.Errorf("inputs: %w: %w", protocol.ErrInputs, err)
		}
	}
	hide := hider(p)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if held := secretIn(hide, given[name]); held != "" && !may(name, given[name]) {
			holding = append(holding, fmt.Sprintf("input %q holds %s", name, held))
			names = append(names, name)
		}
	}
	return holding, names, nil
}

// openChildInputs is openInputs for a sub-workflow. Its inputs are computed, so its step fails. What its
// caller was allowed to hold it may hand on; the inputs that hold no other secret are returned as allowed.
func (e *Engine) openChildInputs(ctx context.Context, l *Launch) (allowed []string, err error) {
	var handed []string // what the caller may hold, as text and as JSON
	known := false
	mayHand := func(name string, value json.RawMessage) bool {
		if !known {
			known = true
			handed, err = e.allowedValues(ctx, l.parent.Run)
		}
		left := value
		for _, v := range handed {
			left = bytes.ReplaceAll(left, []byte(v), []byte("…"))
		}
		if secretIn(hider(l.Program), left) != "" {
			return false
		}
		allowed = append(allowed, name)
		return true
	}
	holding, _, failed := inputsWithSecrets(l.Program, l.Inputs, mayHand)
	if err := errors.Join(err, failed); err != nil || holding == nil {
		return allowed, err
	}
	return nil, protocol.ErrInputs.With("hand it on as a secret: declare secrets: [NAME] in the sub-workflow, and env: {NAME: \"${{ secrets.NAME }}\"} at its role",
		"%s: inputs of a sub-workflow are stored, shown and sent to models", strings.Join(holding, "; "))
}

// allowedValues are the values of the inputs of a run that may hold a secret, the longest first.
func (e *Engine) allowedValues(ctx context.Context, run protocol.RunID) ([]string, error) {
	s, err := e.State(ctx, run)
	if err != nil || len(s.Info.AllowSecretInputs) == 0 {
		return nil, err
	}
	var out []string
	for _, name := range s.Info.AllowSecretInputs {
		value, ok := s.Opened().Inputs[name]
		if !ok {
			continue
		}
		if text, ok := value.(string); ok {
			out = append(out, text)
		}
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		if raw, err = protocol.CanonicalizeJSON(raw); err != nil {
			return nil, err
		}
		out = append(out, strings.Trim(string(raw), `"`))
	}
	out = slices.DeleteFunc(out, func(v string) bool { return v == "" })
	slices.SortFunc(out, func(a, b string) int { return len(b) - len(a) })
	return out, nil
}

// hider hides the secrets that a program and its sub-workflows declare, and what has the shape of one.
func hider(p *lang.Program) *roles.Redactor {
	return roles.NewRedactor(roles.Secrets(os.Environ(), declaredSecrets(p)))
}

// Hide is a text as a run of a program records it.
func Hide(p *lang.Program, text string) string { return hider(p).String(text) }

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
