package rules

import (
	"testing"

	"wf/cas"
	"wf/protocol"
)

// A run that pinned semantics 1 keeps its rule: all equal items go on with the last of them.
func TestEqualItemsByTheSemanticsOfTheirRun(t *testing.T) {
	seven := cas.Raw([]byte("7")).Link
	a := &act{storedAct: storedAct{N: 3, Role: "w", Num: 1, Of: 2}}
	for i := range 2 {
		a.visits = append(a.visits, &visit{of: a, storedVisit: storedVisit{Index: i, Number: 1 + i, Status: protocol.StepOK,
			Item: &protocol.Item{Index: i, Value: seven}, Record: cas.Raw([]byte{byte(i)}).Link}})
	}
	for rule, want := range map[equalItems][]int{lastOfEqual: {2}, nthOfEqual: {1, 2}} {
		list := (*conversations)(nil).with(a, rule).items[seven]
		var got []int
		for _, c := range list {
			got = append(got, c.Visit)
		}
		if len(got) != len(want) || got[0] != want[0] || got[len(got)-1] != want[len(want)-1] {
			t.Errorf("rule %v: visits %v, want %v", rule, got, want)
		}
	}
}

// Only a definition that can enter a fan-out again needs the rules of semantics 2: the records of
// all others keep their CIDs.
func TestTheLeastSemanticsIsPinned(t *testing.T) {
	edge := func(from, to, each string) protocol.Edge {
		return protocol.Edge{From: []string{from}, To: []string{to}, ForEach: each}
	}
	for name, c := range map[string]struct {
		edges []protocol.Edge
		want  int
	}{
		"a line":                 {[]protocol.Edge{edge("START", "a", ""), edge("a", "b", "")}, 1},
		"a loop":                 {[]protocol.Edge{edge("START", "a", ""), edge("a", "a", "")}, 1},
		"a fan-out":              {[]protocol.Edge{edge("START", "a", ""), edge("a", "w", "x"), edge("w", "END", "")}, 1},
		"a loop and a fan-out":   {[]protocol.Edge{edge("START", "a", ""), edge("a", "a", ""), edge("a", "w", "x"), edge("w", "END", "")}, 1},
		"a fan-out in a loop":    {[]protocol.Edge{edge("START", "a", ""), edge("a", "w", "x"), edge("w", "a", "")}, 2},
		"a fan-out into itself":  {[]protocol.Edge{edge("START", "w", ""), edge("w", "w", "x")}, 2},
		"a loop through a limit": {[]protocol.Edge{edge("START", "a", ""), edge("a", "w", "x"), {From: []string{"w"}, To: []string{"END"}, OnLimit: "a"}}, 2},
	} {
		if got := SemanticsOf(&protocol.Workflow{Edges: c.edges}); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
