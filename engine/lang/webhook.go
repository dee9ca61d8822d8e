package lang

import (
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr/types"

	"wf/engine/lint"
	"wf/engine/yaml"
	"wf/protocol"
	"wf/protocol/lazy"
)

// mostHookSecrets is how many secrets of a webhook hold at once: the new and the old one.
const mostHookSecrets = 2

// hookName is a name that stands in an address as it is.
var hookName = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9._~-]*$`)

// decodeWebhook reads on.webhook. Its secrets must be declared, so that they are kept out of all that is stored
// (WF040), and the name of the workflow must fit into an address (WF033).
func (l *loader) decodeWebhook(n *yaml.Node) {
	if !l.good(n) || n.Kind != yaml.Mapping {
		return
	}
	h := protocol.Webhook{Kind: l.str(n.Get("kind")), Secrets: l.words(n.Get("secret")),
		If: unwrap(strings.TrimSpace(l.str(n.Get("if")))), With: l.named(n.Get("with"))}
	for i, name := range h.Secrets {
		switch {
		case !slices.Contains(l.w.Secrets, name):
			d := Diagnostic{Code: "WF040", Message: fmt.Sprintf("on.webhook: the secret %s is not declared", name), Hint: fmt.Sprintf("add secrets: [%s] at the top", name)}
			if near := nearest(name, l.w.Secrets); near != "" {
				d.suggest(name, l.w.Secrets)
			}
			l.report(n.Get("secret"), d)
		case slices.Contains(h.Secrets[:i], name):
			l.report(n.Get("secret"), Diagnostic{Code: "WF018", Message: fmt.Sprintf("the secret %s is named twice", name), Hint: "remove one"})
		}
	}
	if !hookName().MatchString(l.w.Name) {
		l.report(n, Diagnostic{Code: "WF033", Message: fmt.Sprintf("on.webhook: the name %q of the workflow cannot stand in the address %sNAME", l.w.Name, protocol.WebhookPath),
			Hint: "give it a name of letters, digits, and . _ ~ -"})
	}
	if len(h.Secrets) > 0 && h.Kind != "" { // else reported
		l.w.Webhook = &h
	}
}

// eventRoot is what expressions of a webhook call its event.
const eventRoot = "event"

// eventType is what is known of an event before one came.
var eventType = objectType(map[string]*typ{"body": anyT, "headers": openT})

// webhook checks the expressions of a webhook, and what it hands over against the inputs.
func (c *checker) webhook(n *yaml.Node) {
	if c.w.Webhook == nil {
		return
	}
	s := &scopeType{event: true}
	if v := n.Get("if"); c.good(v) {
		if t := c.bare(v, s); t != nil && t.kind != tAny && t.kind != tBool {
			c.report(v, Diagnostic{Code: "WF020", Message: fmt.Sprintf("on.webhook.if is %s, not true or false", t)})
		}
	}
	c.values(n.Get("with"), s)
	inputs := map[string]*inputCode{}
	for name, in := range c.w.Inputs {
		if code, err := compileInput(in); err == nil { // else reported
			inputs[name] = code
		}
	}
	c.handed(handing{n.Get("with"), n, c.w.Webhook.With, inputs, "the workflow", ofEvent})
}

// event checks a reference in an expression of a webhook.
func (x *exprCheck) event(ls []lint.Step) {
	switch root := ls[0]; {
	case root.Name == eventRoot:
		x.env[eventRoot] = types.Map{"body": types.Any, "headers": types.Map{types.Extra: types.Any}}
		x.walk(eventType, ls, 1, eventRoot)
	case root.Name == "secrets":
		x.fail("WF040", root.At, "a secret can stand in env alone", "hand it to a command by env", nil)
	case slices.Contains(roots, root.Name):
		x.fail("WF020", root.At, root.Name+" is not known before a run has begun", "a webhook sees event.body and event.headers", nil)
	case spelled[root.Name] != "", slices.Contains(disabled, root.Name), root.Name == "$env":
		x.unknown(root)
	default:
		x.suggest("WF020", root, fmt.Sprintf("unknown name %s", root.Name), []string{eventRoot}, "a webhook sees event.body and event.headers")
	}
}

// hookCode is a compiled webhook.
type hookCode struct {
	cond *code
	with []namedValue
}

func compileHook(h *protocol.Webhook) (*hookCode, error) {
	if h == nil {
		return nil, nil
	}
	out := &hookCode{}
	var err error
	if out.cond, err = compile(h.If, ofEvent); err != nil {
		return nil, fmt.Errorf("if: %w", err)
	}
	for _, v := range h.With {
		value, err := compileNamed(v, ofEvent)
		if err != nil {
			return nil, fmt.Errorf("with: %s: %w", v.Name, err)
		}
		out.with = append(out.with, namedValue{v.Name, value})
	}
	return out, nil
}

// An Event is what another service sent to a webhook.
type Event struct {
	Body    any               // a JSON value, or text
	Headers map[string]string // by names in lower case
}

// Event gives the inputs of the run that an event starts; wanted is false for one that starts none. Inputs that would
// be null are left out.
func (p *Program) Event(x Event) (inputs map[string]any, wanted bool, err error) {
	if p.hook == nil {
		return nil, false, fmt.Errorf("the workflow %s has no webhook", p.Workflow.Name)
	}
	headers := make(map[string]any, len(x.Headers))
	for name, value := range x.Headers {
		headers[name] = value
	}
	e := &env{Event: map[string]any{"body": x.Body, "headers": headers}, Budget: newBudget()}
	if c := p.hook.cond; c != nil {
		v, err := c.eval(e)
		if err != nil {
			return nil, false, fmt.Errorf("on.webhook.if: %w", err)
		}
		yes, ok := v.(bool)
		if !ok && v != nil {
			return nil, false, fmt.Errorf("on.webhook.if: %s: the value is %s, not true or false", c.src, typeName(v))
		}
		if !yes {
			return nil, false, nil
		}
	}
	inputs = map[string]any{}
	for _, w := range p.hook.with {
		v, err := valueOf(w.value, e)
		if err != nil {
			return nil, false, fmt.Errorf("on.webhook.with: %s: %w", w.name, err)
		}
		if v != nil {
			inputs[w.name] = v
		}
	}
	return inputs, true, nil
}
