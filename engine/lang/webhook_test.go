package lang_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/engine/lang"
	"wf/protocol"
)

const hooked = `wf: 1
name: push
secrets: [KEY, OLD]
inputs: {ref: {type: string, required: true}, n: {type: integer, default: 7}, any: {}}
on:
  webhook:
    kind: github
    secret: KEY
    if: event.headers["x-github-event"] == "push"
    with: {ref: "${{ event.body.ref }}", n: "${{ event.body.head.size }}"}
roles: {a: {set: {r: "${{ inputs.ref }}"}}}
`

func TestAWebhook(t *testing.T) {
	for _, test := range []struct {
		name, from, to string
		wrong          string // "" where the file is good
	}{
		{"as it is", "", "", ""},
		{"two secrets while one is changed", "secret: KEY", "secret: [KEY, OLD]", ""},
		{"three", "secret: KEY", "secret: [KEY, OLD, KEY]", "at most 2"},
		{"one twice", "secret: KEY", "secret: [KEY, KEY]", "the secret KEY is named twice"},
		{"one that is not declared", "secret: KEY", "secret: KEI", `8:13: error[WF040]: on.webhook: the secret KEI is not declared`},
		{"none", "    secret: KEY\n", "", `lacks the key "secret"`},
		{"another kind", "kind: github", "kind: gitlab", "one of github, stripe, hmac"},
		{"a name that is no address", "name: push", "name: push it", "cannot stand in the address /v1/hooks/NAME"},
		{"an unknown input", `n: "`, `m: "`, `error[WF031]: the workflow has no input "m"`},
		{"a required input that is missing", `ref: "${{ event.body.ref }}", `, "", `7:5: error[WF031]: the workflow needs the input "ref"`},
		{"text for a number", `n: "${{ event.body.head.size }}"`, `n: "${{ event.body.a }} and more"`, `input "n" of the workflow wants an integer`},
		{"what a run has", "event.body.ref", "inputs.n", "inputs is not known before a run has begun"},
		{"a secret", "event.body.ref", "secrets.KEY", "error[WF040]"},
		{"a part that events lack", "event.body.ref", "event.bdoy.ref", `event has no field "bdoy"`},
		{"a condition that is none", `event.headers["x-github-event"] == "push"`, `len("x")`, "not true or false"},
		{"an event outside of a webhook", "${{ inputs.ref }}", "${{ event.body }}", "unknown name event"},
		{"a null of another language", `== "push"`, "!= null", `did you mean "nil"?`},
		{"a clock", "event.body.ref", "now()", "error[WF024]"},
	} {
		src := []byte(strings.Replace(hooked, test.from, test.to, 1))
		p, ds := lang.Load(src, lang.Options{})
		var out strings.Builder
		lang.Render(&out, src, ds, false)
		if (test.wrong == "") != (p != nil) || !strings.Contains(out.String(), test.wrong) {
			t.Errorf("%s: want %q, have\n%s", test.name, test.wrong, &out)
		}
	}
}

// A run may have a variable that is called as the event of a webhook is.
func TestAVariableMayBeCalledEvent(t *testing.T) {
	p, ds := lang.Load([]byte("wf: 1\nroles: {a: {set: {r: \"${{ let event = 1; event + 1 }}\"}}}\n"), lang.Options{})
	if p == nil {
		t.Fatal(ds)
	}
	got, err := p.Templates(&p.Workflow.Roles[0], lang.Scope{})
	if err != nil || string(got.Values) != `{"r":2}` {
		t.Errorf("%s, %v", got.Values, err)
	}
}

func TestAnEventGivesInputs(t *testing.T) {
	p, ds := lang.Load([]byte(hooked), lang.Options{})
	if p == nil {
		t.Fatal(ds)
	}
	if d := cmp.Diff(&protocol.Webhook{Kind: "github", Secrets: []string{"KEY"}, If: `event.headers["x-github-event"] == "push"`,
		With: []protocol.NamedTemplate{{Name: "n", Value: "${{ event.body.head.size }}"}, {Name: "ref", Value: "${{ event.body.ref }}"}}}, p.Workflow.Webhook); d != "" {
		t.Error(d)
	}
	stored, err := lang.Compile(p.Workflow, nil) // as a daemon reads it from a store
	if err != nil {
		t.Fatal(err)
	}
	push := map[string]string{"x-github-event": "push"}
	for _, test := range []struct {
		name   string
		event  lang.Event
		wanted bool
		inputs map[string]any
		wrong  string
	}{
		{"a push", lang.Event{Body: map[string]any{"ref": "main", "head": map[string]any{"size": 3}}, Headers: push}, true, map[string]any{"ref": "main", "n": 3}, ""},
		{"one that lacks a part", lang.Event{Body: map[string]any{"ref": "main"}, Headers: push}, true, map[string]any{"ref": "main"}, ""},
		{"another event", lang.Event{Headers: map[string]string{"x-github-event": "fork"}}, false, nil, ""},
		{"no header", lang.Event{}, false, nil, ""},
		{"text", lang.Event{Body: "hello", Headers: push}, false, nil, "on.webhook.with: n: event.body.head.size"},
	} {
		for _, p := range []*lang.Program{p, stored} {
			inputs, wanted, err := p.Event(test.event)
			if test.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), test.wrong) {
					t.Errorf("%s: %v", test.name, err)
				}
				continue
			}
			if d := cmp.Diff(test.inputs, inputs); err != nil || wanted != test.wanted || d != "" {
				t.Errorf("%s: %v, %v, %s", test.name, wanted, err, d)
			}
		}
	}
	null := strings.Replace(hooked, `event.headers["x-github-event"] == "push"`, "event.body.deleted", 1)
	if p, ds = lang.Load([]byte(null), lang.Options{}); p == nil {
		t.Fatal(ds)
	}
	for body, want := range map[any]bool{nil: false, true: true, false: false} {
		if _, wanted, err := p.Event(lang.Event{Body: map[string]any{"deleted": body, "ref": ""}}); err != nil || wanted != want {
			t.Errorf("deleted: %v: %v, %v", body, wanted, err)
		}
	}
	if _, _, err := p.Event(lang.Event{Body: map[string]any{"deleted": "yes"}}); err == nil || !strings.Contains(err.Error(), "not true or false") {
		t.Error(err)
	}
}
