package lang_test

import (
	"strings"
	"testing"

	"wf/engine/lang"
)

// What a role is to be given must be there to give: a role that keeps files, and runs before it.
func TestO06bOnlyFilesThatAreKeptBeforeAreGiven(t *testing.T) {
	const edges = "edges: [{from: START, to: b}, {from: b, to: u}, {from: u, to: END}]\n"
	for _, x := range []struct{ name, roles, want string }{
		{"kept", "b: {run: x, artifacts: [d]}, u: {run: x, artifacts: {from: [b]}}", ""},
		{"both", "b: {run: x, artifacts: [d]}, u: {run: x, artifacts: {from: [b], paths: [e], max_files: 3}}", ""},
		{"seen", "b: {run: x, artifacts: [d]}, u: {set: {n: '${{ len(steps.b.artifacts) + steps.b.artifacts_count }}'}}", ""},
		{"neither", "b: {run: x}, u: {run: x, artifacts: {max_files: 3}}", "WF002"},
		{"unknown", "b: {run: x, artifacts: [d]}, u: {run: x, artifacts: {from: [bb]}}", "WF010"},
		{"not kept", "b: {run: x}, u: {run: x, artifacts: {from: [b]}}", "WF037"},
		{"only given", "b: {run: x, artifacts: {from: [u]}}, u: {run: x, artifacts: [d]}", "WF037"},
		{"itself", "b: {run: x, artifacts: [d]}, u: {run: x, artifacts: {from: [u], paths: [d]}}", "WF037"},
		{"no effect", "b: {run: x, artifacts: [d]}, u: {run: x, artifacts: {from: [b], max_files: 3}}", "WF037"},
		{"seen and not kept", "b: {run: x}, u: {set: {n: '${{ steps.b.artifacts }}'}}", "WF037"},
		{"a step as a whole", "b: {run: x, artifacts: [d]}, u: {set: {n: '${{ let s = steps.b; s.artifacts }}'}}", "WF022"},
		{"of a question", "b: {run: x, artifacts: [d]}, u: {ask: x, artifacts: {from: [b]}}", "WF002"},
	} {
		_, ds := lang.Load([]byte("wf: 1\nname: t\nlimits: {cost_usd: 1, duration: 1h}\nroles: {"+x.roles+"}\n"+edges), lang.Options{File: "t.yaml"})
		var got []string
		for _, d := range ds {
			if d.Severity == lang.SeverityError {
				got = append(got, d.Code)
			}
		}
		if strings.Join(got, " ") != x.want {
			t.Errorf("%s: %v, want %q: %+v", x.name, got, x.want, ds)
		}
	}
}
