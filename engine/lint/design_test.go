package lint_test

import (
	"strconv"
	"testing"

	"wf/engine/lint"
	"wf/protocol"
)

// The workflow that the language is explained with has nothing to be said against.
func TestTheWellKnownLoopIsClean(t *testing.T) {
	w := flow(
		edge("START -> test"),
		edge("test -> END", when("output.exit_code == 0")),
		edge("test -> coder", limit(3), onLimit("gate"), prompt("The tests of ${{ inputs.package }} fail:\n${{ output.text }}")),
		edge("coder -> test", when(`output.status == "done"`)),
		edge("coder -> gate"),
		edge("gate -> coder", when(`output.choice == "retry"`), limit(2), prompt("${{ output.text }}")),
		edge("gate -> FAIL"),
	)
	with(with(with(w, "test", tolerant), "gate", ask), "coder", func(r *protocol.Role) { r.Tools = []string{"read_file", "shell", "write_file"} })
	for _, f := range lint.Check(w, func(role string) map[string][]any {
		if role == "coder" {
			return map[string][]any{"status": {"done", "stuck"}}
		}
		return nil
	}) {
		t.Errorf("%s %s: %s", f.Code, f.Path, f.Message)
	}
}

// A long chain with side branches is checked in a time that nobody notices.
func BenchmarkCheck(b *testing.B) {
	const roles = 2000
	name := func(kind string, i int) string { return kind + strconv.Itoa(i) }
	edges := []protocol.Edge{edge("START -> r0")}
	for i := range roles {
		e := edge(name("r", i) + " -> " + name("r", i+1))
		if i%50 == 0 {
			e.To = append(e.To, name("side", i))
			edges = append(edges, edge(name("side", i)+" -> END"))
		}
		edges = append(edges, e)
	}
	w := flow(append(edges, edge(name("r", roles)+" -> END"))...)
	b.ReportAllocs()
	for b.Loop() {
		if found := lint.Check(w, nil); len(found) > 0 {
			b.Fatalf("%d findings, the first %+v", len(found), found[0])
		}
	}
}
