package layout_test

import (
	"strings"
	"testing"

	"wf/engine/layout"
	"wf/protocol"
)

func TestThePathGoesToTheEndAndThroughJoins(t *testing.T) {
	w := &protocol.Workflow{
		Name:  "join",
		Roles: []protocol.Role{role("a", protocol.ActRun), role("b", protocol.ActRun), role("c", protocol.ActRun)},
		Edges: []protocol.Edge{edge("START", "a b"), edge("a b", "c", when("x")), edge("a b", "END")},
	}
	var out strings.Builder
	err := layout.Of(w).SVG(&out, layout.Overlay{Taken: map[protocol.Way]int{{Edge: 0, To: "a"}: 1, {Edge: 0, To: "b"}: 1, {Edge: 2, To: "END"}: 1}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`<g class="arc edge taken" data-edge="1" data-to="" data-join="1 2"><title>a → join, taken 1×`,
		`<g class="arc edge idle" data-edge="1" data-to="c"><title>join → c`,
		`<g class="arc edge taken" data-edge="2" data-to="END"><title>join → END, taken 1×`,
		`<g class="node end reached"><title>end`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the picture lacks %s:\n%s", want, out.String())
		}
	}
}
