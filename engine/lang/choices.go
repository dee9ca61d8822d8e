package lang

import (
	"cmp"
	"fmt"
	"slices"

	"wf/protocol"
)

// choicesMax bounds what an expression may offer to a person.
const choicesMax = 64

// choicesOf are the choices that an expression gives: a list of texts, or of objects with
// label, value and primary; null is none. Two of the same value, or one without any, are an
// error: the list came from a model or a command, and a person must see what is meant.
func choicesOf(c *code, e *env) ([]protocol.Choice, error) {
	v, err := c.eval(e)
	if err != nil || v == nil {
		return nil, err
	}
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("%s is %s, not a list of choices", c.src, typeName(v))
	}
	if len(list) > choicesMax {
		return nil, fmt.Errorf("%s offers %d choices, at most %d can be shown", c.src, len(list), choicesMax)
	}
	out := make([]protocol.Choice, 0, len(list))
	primary := false
	for i, it := range list {
		choice, err := choiceOf(it)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: choice %d: %w", c.src, i+1, err)
		case slices.ContainsFunc(out, func(o protocol.Choice) bool { return o.Value == choice.Value }):
			return nil, fmt.Errorf("%s: two choices have the value %q", c.src, choice.Value)
		}
		choice.Primary = choice.Primary && !primary
		primary = primary || choice.Primary
		out = append(out, choice)
	}
	return out, nil
}

func choiceOf(v any) (protocol.Choice, error) {
	if s, ok := v.(string); ok && s != "" {
		return protocol.Choice{Label: s, Value: s}, nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		return protocol.Choice{}, fmt.Errorf("want a text or {label, value, primary}, got %s", typeName(v))
	}
	var c protocol.Choice
	c.Label, _ = m["label"].(string)
	c.Value, _ = m["value"].(string)
	c.Primary, _ = m["primary"].(bool)
	c.Value, c.Label = cmp.Or(c.Value, c.Label), cmp.Or(c.Label, c.Value)
	if c.Value == "" {
		return c, fmt.Errorf("it has neither a label nor a value that is a text")
	}
	return c, nil
}
