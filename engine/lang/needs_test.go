package lang_test

import (
	"fmt"
	"strings"
	"testing"

	"wf/engine/lang"
)

func TestNeedsOfRoles(t *testing.T) {
	child := "wf: 1\nname: child\nroles: {a: {run: ls, needs: docker}}\nedges: [{from: START, to: a}, {from: a, to: END}]\n"
	read := func(string) ([]byte, error) { return []byte(child), nil }
	load := func(roles string) (*lang.Program, []lang.Diagnostic) {
		return lang.Load([]byte("wf: 1\nname: t\nlimits: {duration: 1h, cost_usd: 1}\nroles: "+roles), lang.Options{File: "t.yaml", Read: read})
	}
	p, ds := load("{a: {run: ls, needs: [gpu, big.disk, gpu]}, b: {workflow: child.yaml}}")
	if p == nil {
		t.Fatal(ds)
	}
	if got := strings.Join(p.WorkerNeeds(), " "); got != "big.disk docker gpu" {
		t.Errorf("a worker must have %s", got)
	}
	many := make([]string, 17)
	for i := range many {
		many[i] = fmt.Sprint("x", i)
	}
	for _, c := range []struct{ roles, says string }{
		{"{a: {run: ls, needs: [b]}, b: {set: {x: 1}}}", "needs names the role b"},
		{"{a: {run: ls, needs: [\"Big GPU\"]}}", "needs"},
		{"{a: {run: ls, needs: [\"place:x\"]}}", "needs"},
		{"{a: {set: {x: 1}, needs: gpu}}", "needs means nothing beside set"},
		{"{a: {run: ls, needs: [" + strings.Join(many, ", ") + "]}}", "needs"},
		{"{a: {run: ls, needs: [" + strings.Join(many[:9], ", ") + "]}, b: {run: ls, needs: [" + strings.Join(many[9:], ", ") + "]}}", "need 17 things of a worker"},
	} {
		p, ds := load(c.roles)
		if p != nil || len(ds) == 0 || !strings.Contains(ds[0].Message, c.says) {
			t.Errorf("%s: %v, want an error with %q", c.roles, ds, c.says)
		}
	}
}
