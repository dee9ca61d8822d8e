package lang

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/protocol"
)

func TestO03bTheNameOfAGroupIsMadeOfInputs(t *testing.T) {
	p, ds := Load([]byte(`
wf: 1
name: t
inputs: {env: string, n: {type: integer, default: 3}}
concurrency: {group: " deploy-${{ inputs.env }} "}
defaults: {timeout: 1m}
roles:
  a: {run: x, concurrency: "gpu-${{ inputs.n }}"}
  b: {run: x, concurrency: {group: "${{ inputs.env ?? 'none' }}", max: 2, on_busy: refuse}}
`), Options{})
	if p == nil {
		t.Fatal(ds)
	}
	got, err := p.Groups(map[string]any{"env": "prod", "n": 3})
	if diff := cmp.Diff(map[string]string{"": "deploy-prod", "a": "gpu-3", "b": "prod"}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for env, ok := range map[string]bool{"": false, "a\nb": false, strings.Repeat("x", protocol.MaxGroupName): true, strings.Repeat("x", protocol.MaxGroupName+1): false} {
		if _, err := p.Groups(map[string]any{"env": env, "n": 1}); (err == nil) != (ok && len(env)+len("deploy-") <= protocol.MaxGroupName) || err != nil && !errors.Is(err, protocol.ErrInputs) {
			t.Errorf("%d bytes: %v", len(env), err)
		}
	}
}

func TestO03bGroupsThatCannotHoldAreRefused(t *testing.T) {
	files := map[string]string{
		"ab.yaml": "wf: 1\nname: ab\nconcurrency: a\ndefaults: {timeout: 1m}\nroles: {x: {run: x, concurrency: b}}\n",
		"c.yaml":  "wf: 1\nname: c\nconcurrency: c\ndefaults: {timeout: 1m}\nroles: {x: {run: x, concurrency: a}}\n",
	}
	read := func(name string) ([]byte, error) { return []byte(files[name]), nil }
	head := "wf: 1\nname: t\ninputs: {env: string}\ndefaults: {timeout: 1m}\n"
	for _, c := range []struct{ name, yaml, code string }{
		{"a group", "concurrency: g\nroles: {x: {run: x}}", ""},
		{"of a role and another of the workflow", "concurrency: g\nroles: {x: {run: x, concurrency: h}}", ""},
		{"of a role, the workflow's own", "concurrency: \"g-${{ inputs.env }}\"\nroles: {x: {run: x, concurrency: \"g-${{ inputs.env }}\"}}", "WF034"},
		{"a sub-workflow in the same order", "concurrency: a\nroles: {x: {workflow: ab.yaml}}", ""},
		{"a sub-workflow in the other order", "concurrency: b\nroles: {x: {workflow: ab.yaml}}", "WF035"},
		{"two sub-workflows in two orders", "roles: {x: {workflow: ab.yaml}, y: {workflow: ab.yaml, concurrency: b}}", "WF035"},
		{"a circle of three", "roles: {x: {workflow: ab.yaml}, y: {workflow: c.yaml, concurrency: b}}", "WF035"},
		{"of what changes", "roles: {x: {run: x}, y: {run: x, concurrency: \"${{ steps.x.text }}\"}}", "WF042"},
		{"of a secret", "secrets: [KEY]\nconcurrency: \"${{ secrets.KEY }}\"\nroles: {x: {run: x}}", "WF040"},
		{"of no input", "concurrency: \"${{ inputs.evn }}\"\nroles: {x: {run: x}}", "WF020"},
		{"without a name", "concurrency: {max: 2}\nroles: {x: {run: x}}", "WF002"},
		{"an empty name", "concurrency: \"\"\nroles: {x: {run: x}}", "WF002"},
		{"no slots", "concurrency: {group: g, max: 0}\nroles: {x: {run: x}}", "WF002"},
		{"an unknown word", "concurrency: {group: g, on_busy: que}\nroles: {x: {run: x}}", "WF002"},
		{"a role that cancels", "roles: {x: {run: x, concurrency: {group: g, on_busy: cancel_old}}}", "WF002"},
		{"a role that releases", "roles: {x: {run: x, concurrency: {group: g, release_on_suspend: true}}}", "WF001"},
		{"a question", "roles: {x: {ask: Go?, concurrency: g}}", "WF002"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, ds := Load([]byte(head+c.yaml+"\n"), Options{Read: read})
			var got []string
			for _, d := range ds {
				if d.Severity == SeverityError {
					got = append(got, d.Code)
				}
			}
			if strings.Join(got, " ") != c.code {
				t.Errorf("%v, want %q: %v", got, c.code, ds)
			}
		})
	}
}

// What holds by default is not in the definition, so that writing it out changes no CID.
func TestO03bADefaultGroupHasOneForm(t *testing.T) {
	var first protocol.Link
	for _, text := range []string{"g", "{group: g}", "{group: g, max: 1, on_busy: queue, release_on_suspend: false}"} {
		p, ds := Load([]byte("wf: 1\nname: t\ndefaults: {timeout: 1m}\nconcurrency: "+text+"\nroles: {x: {run: x}}\n"), Options{})
		if p == nil {
			t.Fatal(ds)
		}
		b, err := p.Block()
		if err != nil || first.Defined() && b.Link != first {
			t.Errorf("%s: %s, want %s (%v)", text, b.Link, first, err)
		}
		first = b.Link
	}
}
