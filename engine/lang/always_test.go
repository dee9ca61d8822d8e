package lang

import (
	"fmt"
	"strings"
	"testing"

	"wf/protocol"
)

func TestO06aAlwaysRolesThatCannotHoldAreRefused(t *testing.T) {
	head := "wf: 1\nname: t\nsecrets: [KEY]\ninputs: {env: {type: string, default: x}}\n"
	many := func(n int) string {
		var roles, names strings.Builder
		for i := range n {
			fmt.Fprintf(&roles, "  c%d: {run: x}\n", i)
			fmt.Fprintf(&names, "c%d, ", i)
		}
		return "roles:\n  w: {run: x}\n" + roles.String() + "always: [" + strings.TrimSuffix(names.String(), ", ") + "]"
	}
	for _, c := range []struct{ name, yaml, code string }{
		{"one", "roles: {w: {run: x}, c: {run: x}}\nalways: c", ""},
		{"the first of the file", "roles: {c: {run: x}, w: {run: x}}\nalways: [c]", ""},
		{"with edges", "roles: {w: {run: x}, c: {run: x}}\nedges: [{from: w, to: END}]\nalways: c", ""},
		{"an agent", "roles: {w: {run: x}, c: {prompt: Say how it went., model: openai/gpt-5, tools: [read]}}\nalways: c", ""},
		{"the verdict", "roles: {w: {run: x}, c: {run: \"echo ${{ run.verdict.status }} ${{ run.verdict.code }} ${{ run.verdict.message }} ${{ run.verdict.outputs?.x ?? '' }}\"}}\nalways: c", "WF041 WF041 WF041 WF041"},
		{"the verdict in env", "roles: {w: {run: x}, c: {run: x, env: {V: \"${{ run.verdict.status == 'failed' ? 'bad' : 'good' }}\"}}}\nalways: c", ""},
		{"steps", "roles: {w: {run: x}, c: {set: {t: \"${{ steps.w?.text ?? '' }}\"}}}\nalways: c", ""},
		{"steps of another", "roles: {w: {run: x}, a: {run: x}, c: {set: {t: \"${{ steps.a?.text ?? '' }}\"}}}\nalways: [a, c]", ""},
		{"most of them", many(protocol.AlwaysMax), ""},
		{"more", many(protocol.AlwaysMax + 1), "WF036"},
		{"none that is known", "roles: {w: {run: x}}\nalways: c", "WF010"},
		{"twice", "roles: {w: {run: x}, c: {run: x}}\nalways: [c, c]", "WF018"},
		{"all", "roles: {c: {run: x}}\nalways: c", "WF036"},
		{"in an edge", "roles: {w: {run: x}, c: {run: x}}\nedges: [{from: w, to: c}, {from: c, to: END}]\nalways: c", "WF036 WF036"},
		{"an end of a bound", "roles: {w: {run: x}, v: {run: x}, c: {run: x}}\nedges: [{from: w, to: v}, {from: v, to: w, limit: 2, on_limit: c}, {from: v, to: END}]\nalways: c", "WF012 WF036 WF014"},
		{"a question", "roles: {w: {run: x}, c: {ask: Go?}}\nalways: c", "WF036"},
		{"a timer", "roles: {w: {run: x}, c: {wait: {for: 1m}}}\nalways: c", "WF036"},
		{"a sub-workflow", "roles: {w: {run: x}, c: {workflow: child.yaml}}\nalways: c", "WF036"},
		{"a group", "roles: {w: {run: x}, c: {run: x, concurrency: g, timeout: 1m}}\nalways: c", "WF036"},
		{"an approval", "roles: {w: {run: x}, c: {prompt: x, model: openai/gpt-5, tools: [{shell: ask}]}}\nalways: c", "WF036"},
		{"a task", "roles: {w: {run: x}, c: {prompt: x, model: openai/gpt-5, context: task}}\nalways: c", "WF036"},
		{"max_visits", "roles: {w: {run: x}, c: {run: x, max_visits: 2}}\nalways: c", "WF036"},
		{"continue_on_error", "roles: {w: {run: x}, c: {run: x, continue_on_error: true}}\nalways: c", "WF036"},
		{"the verdict in the graph", "roles: {w: {set: {t: \"${{ run.verdict.status }}\"}}, c: {run: x}}\nalways: c", "WF020"},
		{"the verdict without always", "roles: {w: {set: {t: \"${{ run.verdict.status }}\"}}}", "WF020"},
		{"another status", "roles: {w: {run: x}, c: {set: {t: \"${{ run.verdict.status == 'broken' }}\"}}}\nalways: c", "WF020"},
		{"an unknown part", "roles: {w: {run: x}, c: {set: {t: \"${{ run.verdict.stauts }}\"}}}\nalways: c", "WF022"},
		{"output", "roles: {w: {run: x}, c: {set: {t: \"${{ output.text }}\"}}}\nalways: c", "WF020"},
		{"steps without a guard", "roles: {w: {run: x}, c: {set: {t: \"${{ steps.w.text }}\"}}}\nalways: c", ""},
		{"outputs that read it", "roles: {w: {run: x}, c: {run: x}}\nalways: c\noutputs: {c: \"${{ steps.c?.text ?? '' }}\"}", "WF020"},
		{"the verdict in a prompt", "roles: {w: {run: x}, c: {prompt: \"${{ run.verdict.status }}\", model: openai/gpt-5}}\nalways: c", "WF042"},
		{"a secret", "roles: {w: {run: x}, c: {run: x, env: {K: \"${{ secrets.KEY }}\"}}}\nalways: c", ""},
		{"no name", "roles: {w: {run: x}}\nalways: [{a: b}]", "WF002"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, ds := Load([]byte(head+c.yaml+"\n"), Options{Read: func(string) ([]byte, error) {
				return []byte("wf: 1\nname: child\nroles: {x: {run: x}}\n"), nil
			}})
			var got []string
			for _, d := range ds {
				if d.Severity == SeverityError {
					got = append(got, d.Code)
				}
			}
			if strings.Join(got, " ") != c.code {
				t.Errorf("%v, want %q: %v", got, c.code, ds)
			}
			if (p != nil) != (c.code == "") {
				t.Errorf("a program: %v", p != nil)
			}
		})
	}
}

// A role or an input may be called run; its name means the run only under always.
func TestO06aRunIsNoReservedName(t *testing.T) {
	p, ds := Load([]byte(`
wf: 1
name: t
roles:
  run: {set: {list: [1, 2]}}
  c: {set: {n: "${{ map(steps.run?.output?.list ?? [], # + 1) }}", v: "${{ let x = run.verdict.status; x }}"}}
always: c
`), Options{})
	if p == nil {
		t.Fatal(ds)
	}
	if got := strings.Join(p.Workflow.Always, " "); got != "c" || len(p.Workflow.Edges) != 2 {
		t.Errorf("%s, %d edges", got, len(p.Workflow.Edges))
	}
}
