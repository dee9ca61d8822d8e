package lang

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"wf/protocol"
)

// When decides edge. Without `when` it is true. The error names the expression; a result
// that is no boolean, null included, is an error.
func (p *Program) When(edge int, s Scope) (bool, error) {
	if c := p.edges[edge].when; c != nil {
		return edgeValue[bool](p, edge, "when", c, &s, "true or false")
	}
	return true, nil
}

// ForEach gives the items of the fan-out of edge. It is an error on an edge without
// for_each, and where the value is no list.
func (p *Program) ForEach(edge int, s Scope) ([]any, error) {
	if c := p.edges[edge].forEach; c != nil {
		return edgeValue[[]any](p, edge, "for_each", c, &s, "a list")
	}
	return nil, fmt.Errorf("edge %d has no for_each", edge)
}

// edgeValue is what an expression of an edge gives, which must be a T.
func edgeValue[T any](p *Program, edge int, key string, c *code, s *Scope, want string) (value T, err error) {
	v, err := c.eval(p.edgeEnv(edge, s))
	if err != nil {
		return value, fmt.Errorf("edge %d: %s: %w", edge, key, err)
	}
	value, ok := v.(T)
	if !ok {
		err = fmt.Errorf("edge %d: %s: %s: the value is %s, not %s", edge, key, c.src, typeName(v), want)
	}
	return value, err
}

// cutMark ends a text that was too long.
const cutMark = "…[cut]"

// EdgePrompt renders the prompt of edge, "" where it has none. It is at most
// protocol.EdgePromptMax bytes; what is longer is cut at a rune and ends in …[cut].
func (p *Program) EdgePrompt(edge int, s Scope) (string, error) {
	text, err := p.edges[edge].prompt.text(p.edgeEnv(edge, &s))
	if err != nil {
		return "", fmt.Errorf("edge %d: prompt: %w", edge, err)
	}
	return CutPrompt(text), nil
}

// CutPrompt is a text as an edge prompt holds it.
func CutPrompt(text string) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	if len(text) <= protocol.EdgePromptMax {
		return text
	}
	n := protocol.EdgePromptMax - len(cutMark)
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + cutMark
}

// edgeEnv is the scope of an edge. A visit that failed may have no output; its edges then
// see an empty one. The only source of an edge stands under outputs too.
func (p *Program) edgeEnv(edge int, s *Scope) *env {
	e := p.env(s)
	def := &p.Workflow.Edges[edge]
	if e.Output == nil && def.OnFailure {
		e.Output = map[string]any{}
	}
	if len(s.Outputs) == 0 && len(def.From) == 1 && e.Output != nil {
		e.Outputs = map[string]any{def.From[0]: e.Output}
	}
	return e
}

// System renders the prompt of an agent role: inputs are all it may refer to, so it is the
// same for every visit of a run.
func (p *Program) System(role string, inputs map[string]any) (string, error) {
	c := p.roles[role]
	if c == nil {
		return "", fmt.Errorf("the workflow has no role %q", role)
	}
	text, err := renderedText(c.texts["prompt"], &env{Inputs: orEmpty(inputs), Budget: newBudget()})
	if err != nil {
		return "", fmt.Errorf("role %s: prompt: %w", role, err)
	}
	return text, nil
}

// Rendered are the templates of a role with their values in place.
type Rendered struct {
	System   string            // agent: the prompt, its inputs in place; constant in a run
	Question string            // ask
	Choices  []protocol.Choice // ask, where an expression gives them
	Env      map[string]string // env; a secret is a protocol.SecretRef
	Stdin    *protocol.Stdin   // run
	Values   json.RawMessage   // set, or with of a sub-workflow: canonical JSON object; else nil
	Wait     protocol.Wait     // wait
}

// Templates renders what role says, for one visit. The role is found by its name. The error
// names the key and the expression.
func (p *Program) Templates(role *protocol.Role, s Scope) (Rendered, error) {
	c := p.roles[role.Name]
	if c == nil {
		return Rendered{}, fmt.Errorf("the workflow has no role %q", role.Name)
	}
	e := p.env(&s)
	out := Rendered{}
	fail := func(key string, err error) (Rendered, error) {
		return Rendered{}, fmt.Errorf("role %s: %s: %w", role.Name, key, err)
	}
	var err error
	if out.System, err = renderedText(c.texts["prompt"], &env{Inputs: e.Inputs, Budget: e.Budget}); err != nil {
		return fail("prompt", err)
	}
	if out.Question, err = renderedText(c.texts["ask"], e); err != nil {
		return fail("ask", err)
	}
	if c.choices != nil {
		if out.Choices, err = choicesOf(c.choices, e); err != nil {
			return fail("choices", err)
		}
	}
	if len(role.Env) > 0 {
		out.Env = make(map[string]string, len(role.Env))
	}
	for _, v := range role.Env {
		if out.Env[v.Name], err = p.envValue(c.texts["env."+v.Name], e); err != nil {
			return fail("env."+v.Name, err)
		}
	}
	switch role.Action {
	case protocol.ActSet:
		out.Values, err = c.object("set.", role.Set, e)
	case protocol.ActWorkflow:
		out.Values, err = c.object("with.", role.With, e)
	}
	if err != nil {
		return fail(string(role.Action), err)
	}
	if role.Stdin != nil {
		out.Stdin = &protocol.Stdin{}
		if out.Stdin.Text, err = renderedText(c.texts["stdin"], e); err != nil {
			return fail("stdin", err)
		}
		if out.Stdin.File, err = renderedText(c.texts["stdin.file"], e); err != nil {
			return fail("stdin.file", err)
		}
	}
	if role.Wait != nil {
		out.Wait.Signal = role.Wait.Signal
		if out.Wait.For, err = renderedText(c.texts["wait.for"], e); err != nil {
			return fail("wait.for", err)
		}
		if out.Wait.Until, err = renderedText(c.texts["wait.until"], e); err != nil {
			return fail("wait.until", err)
		}
	}
	return out, nil
}

// envValue renders one variable. Only here are secrets in scope. A NUL in any other value
// could forge a reference to a secret, and no command can receive it: it is an error.
func (p *Program) envValue(v any, e *env) (string, error) {
	t, ok := v.(*template)
	if !ok {
		return renderedText(v, e)
	}
	with := *e
	with.Secrets = p.secrets
	var b strings.Builder
	for _, part := range t.parts {
		text := part.text
		if part.code != nil {
			v, err := part.code.eval(&with)
			if err != nil {
				return "", err
			}
			if text, err = textOf(v); err != nil {
				return "", fmt.Errorf("%s: %w", part.code.src, err)
			}
			if strings.Contains(text, "\x00") && !isSecretExpr(part.code.src) {
				return "", fmt.Errorf("%s: the value holds a NUL byte", part.code.src)
			}
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

// Outputs are the outputs of the workflow as a canonical JSON object. A step that never ran
// is null, and so is every field of it and every output that cannot do without it.
func (p *Program) Outputs(s Scope) (json.RawMessage, error) {
	e := p.env(&s)
	m := make(map[string]any, len(p.outputs))
	for _, o := range p.outputs {
		v, err := valueOf(o.value, e)
		if err != nil && !lacksStep(o.value, &s) {
			return nil, fmt.Errorf("outputs: %s: %w", o.name, err)
		}
		if err != nil {
			v = nil
		}
		m[o.name] = v
	}
	out, err := protocol.CanonicalJSON(m)
	if err != nil {
		return nil, fmt.Errorf("outputs: %w", err)
	}
	return out, protocol.CheckPayload("outputs as JSON", len(out))
}

// lacksStep reports whether a value refers to a step that never ran.
func lacksStep(value any, s *Scope) bool {
	return slices.ContainsFunc(refsOf(value), func(ref string) bool {
		parts := strings.Split(ref, ".")
		return parts[0] == "steps" && len(parts) > 1 && s.Steps[parts[1]] == nil
	})
}

// object is what the templates of a role that begin with key give, by their names.
func (c *roleCode) object(key string, values []protocol.NamedTemplate, e *env) (json.RawMessage, error) {
	m := make(map[string]any, len(values))
	for _, v := range values {
		got, err := valueOf(c.texts[key+v.Name], e)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.Name, err)
		}
		m[v.Name] = got
	}
	return protocol.CanonicalJSON(m)
}

// typeName names the JSON type of a value for messages.
func typeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return fmt.Sprintf("the boolean %v", v)
	case int:
		return fmt.Sprintf("the integer %d", v)
	case float64:
		return "a number"
	case string:
		if len(v) <= 40 {
			return fmt.Sprintf("the string %q", v)
		}
		return "a string"
	case []any:
		return "a list"
	}
	return "an object"
}
