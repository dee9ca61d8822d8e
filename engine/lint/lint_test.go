package lint_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/engine/lint"
	"wf/protocol"
)

// flow builds a workflow whose roles are agents named by the edges. An edge is written
// "a b -> c d"; mods change it.
func flow(edges ...protocol.Edge) *protocol.Workflow {
	w := &protocol.Workflow{Name: "test", Edges: edges}
	for _, e := range edges {
		for _, name := range append(append([]string{}, e.From...), e.To...) {
			if _, ok := w.RoleNamed(name); !ok && strings.ToLower(name) == name {
				w.Roles = append(w.Roles, protocol.Role{Name: name, Action: protocol.ActPrompt})
			}
		}
	}
	return w
}

func edge(ends string, mods ...func(*protocol.Edge)) protocol.Edge {
	from, to, _ := strings.Cut(ends, " -> ")
	e := protocol.Edge{From: strings.Fields(from), To: strings.Fields(to)}
	for _, m := range mods {
		m(&e)
	}
	return e
}

func when(s string) func(*protocol.Edge)   { return func(e *protocol.Edge) { e.When = s } }
func prompt(s string) func(*protocol.Edge) { return func(e *protocol.Edge) { e.Prompt = s } }
func each(s string) func(*protocol.Edge)   { return func(e *protocol.Edge) { e.ForEach = s } }
func onFailure(e *protocol.Edge)           { e.OnFailure = true }

func limit(n int) func(*protocol.Edge) { return func(e *protocol.Edge) { e.Limit = n } }
func onLimit(to string) func(*protocol.Edge) {
	return func(e *protocol.Edge) { e.OnLimit = to }
}

// with changes roles of a workflow.
func with(w *protocol.Workflow, name string, mod func(*protocol.Role)) *protocol.Workflow {
	r, ok := w.RoleNamed(name)
	if !ok {
		panic("no role " + name)
	}
	mod(r)
	return w
}

func routeAll(r *protocol.Role)  { r.RouteAll = true }
func maxVisits(r *protocol.Role) { r.MaxVisits = 3 }
func writer(r *protocol.Role)    { r.Tools = []string{"write_file"} }
func command(r *protocol.Role)   { r.Action, r.Run = protocol.ActRun, "true" }
func tolerant(r *protocol.Role)  { command(r); r.ContinueOnError = true }
func unknownFrom(w *protocol.Workflow) *protocol.Workflow {
	w.Edges = append(w.Edges, edge("reviwer -> END"))
	return w
}

// status is an enum that every role's output has.
func status(string) map[string][]any {
	return map[string][]any{"status": {"done", "stuck", "lost"}}
}

var start = edge("START -> a")

// cases pair every fault with a twin that does not have it.
var cases = []struct {
	name string
	bad  *protocol.Workflow
	want []string // "code path"
	good *protocol.Workflow
}{
	{
		"an unknown role hides no cycle, and what it makes of the rest is not told",
		&protocol.Workflow{Roles: []protocol.Role{{Name: "reviewer"}}, Edges: []protocol.Edge{edge("START -> reviwer"), edge("reviewer -> reviewer", onLimit("gat"))}},
		[]string{"WF010 edges[0].to[0]", "WF010 edges[1].on_limit", "WF013 edges[1]"},
		flow(edge("START -> reviewer"), edge("reviewer -> END")),
	},
	{
		"an unknown source",
		unknownFrom(flow(edge("START -> reviewer"), edge("reviewer -> END"))),
		[]string{"WF010 edges[2].from[0]"},
		flow(edge("START -> reviewer"), edge("reviewer -> END")),
	},
	{
		"START, END and SUSPEND at the wrong end",
		flow(start, edge("a -> START"), edge("END -> a"), edge("a -> SUSPEND")),
		[]string{"WF010 edges[1].to[0]", "WF010 edges[2].from[0]", "WF010 edges[3].to[0]", "WF014 edges[3]"},
		flow(start, edge("a -> END", limit(1), onLimit("SUSPEND"))),
	},
	{
		"a role that nothing leads to, named once for all behind it",
		flow(start, edge("a -> END"), edge("x -> y"), edge("y -> END")),
		[]string{"WF011 roles.x"},
		flow(start, edge("a -> x"), edge("x -> y"), edge("y -> END")),
	},
	{
		"a ring that nothing leads to",
		flow(start, edge("a -> END"), edge("x -> y", limit(2)), edge("y -> x", when("output.ok")), edge("y -> END")),
		[]string{"WF011 roles.x"},
		flow(start, edge("a -> x"), edge("x -> y", limit(2)), edge("y -> x", when("output.ok")), edge("y -> END")),
	},
	{
		"a role that leads nowhere, named once for all before it",
		flow(start, edge("a -> x"), edge("x -> y")),
		[]string{"WF012 roles.y"},
		flow(start, edge("a -> x"), edge("x -> y"), edge("y -> FAIL")),
	},
	{
		"on_limit can be the way out, if there is a limit",
		flow(start, edge("a -> a", onLimit("END")), edge("a -> a", when("true"), limit(2))),
		[]string{"WF012 roles.a", "WF013 edges[1]", "WF014 edges[2]"},
		flow(start, edge("a -> a", limit(2), onLimit("END"))),
	},
	{
		"a cycle without a bound",
		flow(start, edge("a -> b"), edge("b -> a", when("output.again")), edge("b -> END")),
		[]string{"WF013 edges[2]"},
		flow(start, edge("a -> b"), edge("b -> a", when("output.again"), limit(3)), edge("b -> END")),
	},
	{
		"max_visits bounds a cycle as well",
		flow(start, edge("a -> a", when("output.again")), edge("a -> END")),
		[]string{"WF013 edges[1]"},
		with(flow(start, edge("a -> a", when("output.again")), edge("a -> END")), "a", maxVisits),
	},
	{
		"the way to on_limit is not bounded by the limit",
		flow(start, edge("a -> b", limit(2), onLimit("c")), edge("b -> END"), edge("c -> a")),
		[]string{"WF013 edges[3]"},
		flow(start, edge("a -> b", limit(2), onLimit("c")), edge("b -> END"), edge("c -> a", limit(1))),
	},
	{
		"two cycles are two findings",
		flow(start, edge("a -> a", when("output.x")), edge("a -> b"), edge("b -> a", when("output.y")), edge("b -> END")),
		[]string{"WF013 edges[1]", "WF013 edges[3]"},
		flow(start, edge("a -> a", when("output.x"), limit(1)), edge("a -> b"), edge("b -> a", when("output.y"), limit(1)), edge("b -> END")),
	},
	{
		"an edge behind an unconditional one",
		flow(start, edge("a -> b"), edge("a -> END", when("output.ok")), edge("b -> END")),
		[]string{"WF014 edges[2]"},
		flow(start, edge("a -> END", when("output.ok")), edge("a -> b"), edge("b -> END")),
	},
	{
		"route: all takes both",
		flow(start, edge("a -> b"), edge("a -> c"), edge("b -> END"), edge("c -> END")),
		[]string{"WF014 edges[2]"},
		with(flow(start, edge("a -> b"), edge("a -> c"), edge("b -> END"), edge("c -> END")), "a", routeAll),
	},
	{
		"failure edges are a list of their own",
		flow(start, edge("a -> END"), edge("a -> b", onFailure), edge("a -> FAIL", onFailure), edge("b -> END")),
		[]string{"WF014 edges[3]"},
		flow(start, edge("a -> END"), edge("a -> b", onFailure), edge("b -> END")),
	},
	{
		"the same condition twice, unless it counts the edge",
		flow(start, edge("a -> b", when("output.x > 1")), edge("a -> END", when("output.x > 1")), edge("a -> FAIL"), edge("b -> END")),
		[]string{"WF014 edges[2]"},
		flow(start, edge("a -> b", when("edge.visit < 3")), edge("a -> END", when("edge.visit < 3")), edge("a -> FAIL"), edge("b -> END")),
	},
	{
		"an edge behind the default of its join",
		flow(edge("START -> a b"), edge("a b -> c"), edge("a b -> FAIL", when("outputs.a.bad")), edge("c -> END")),
		[]string{"WF014 edges[2]"},
		flow(edge("START -> a b"), edge("a b -> FAIL", when("outputs.a.bad")), edge("a b -> c"), edge("c -> END")),
	},
	{
		"an edge behind a join",
		flow(edge("START -> a b"), edge("a b -> c", when("outputs.a.ok")), edge("a -> END"), edge("c -> END")),
		[]string{"WF014 edges[2]"},
		flow(edge("START -> a b"), edge("a -> END", when("output.late")), edge("a b -> c", when("outputs.a.ok")), edge("c -> END")),
	},
	{
		"an enum value without an edge",
		flow(start, edge("a -> END", when(`output.status == "done"`)), edge("a -> FAIL", when(`output.status in ["stuck"]`))),
		[]string{"WF015 edges[2].when"},
		flow(start, edge("a -> END", when(`output.status == "done"`)), edge("a -> FAIL", when(`output.status in ["stuck", "lost"]`))),
	},
	{
		"or, not equal and more words for it",
		flow(start, edge("a -> END", when(`output.status == "done" && output.sure`)), edge("a -> FAIL", when(`"stuck" == output.status or false`))),
		[]string{"WF015 edges[2].when"},
		flow(start, edge("a -> END", when(`output?.status == "done" || output["status"] == "lost"`)), edge("a -> FAIL", when(`not (output.status != "stuck")`))),
	},
	{
		"what is not certain is not reported",
		flow(start, edge("a -> END", when(`output.status == "done"`))),
		[]string{"WF015 edges[1].when"},
		flow(start, edge("a -> END", when(`output.status == inputs.wanted`))),
	},
	{
		"an exit code without an edge",
		with(flow(start, edge("a -> END", when("output.exit_code == 0")), edge("a -> FAIL", when("output.exit_code == 1"))), "a", tolerant),
		[]string{"WF015 edges[2].when"},
		with(flow(start, edge("a -> END", when("output.exit_code == 0")), edge("a -> FAIL", when("output.exit_code > 0"))), "a", tolerant),
	},
	{
		"a failed command does not show its exit code",
		with(flow(start, edge("a -> END", when("output.exit_code == 0")), edge("a -> FAIL", when("output.exit_code != 0"))), "a", command),
		[]string{"WF507 edges[2].when"},
		with(flow(start, edge("a -> END", when("output.exit_code == 0")), edge("a -> FAIL", onFailure)), "a", command),
	},
	{
		"an answer without an edge",
		with(flow(start, edge("a -> END", when(`output.choice == "yes"`))), "a", ask),
		[]string{"WF015 edges[1].when"},
		with(flow(start, edge("a -> END", when(`output.choice == "yes"`)), edge("a -> FAIL", when(`output.choice == "no"`))), "a", ask),
	},
	{
		"an enum value that no edge of a join takes",
		flow(edge("START -> a b"), edge("a b -> END", when(`outputs.b.status == "done"`)), edge("a b -> FAIL", when(`outputs.b.status == "lost"`))),
		[]string{"WF015 edges[2].when"},
		flow(edge("START -> a b"), edge("a b -> END", when(`outputs.b.status == "done"`)), edge("a b -> FAIL")),
	},
	{
		"a duplicate edge",
		flow(start, edge("a -> END", when("output.ok")), edge("a -> END", when("output.ok")), edge("a -> FAIL")),
		[]string{"WF016 edges[2]"},
		flow(start, edge("a -> END", when("output.ok")), edge("a -> END", when("output.fine")), edge("a -> FAIL")),
	},
	{
		"a join of alternatives",
		flow(start, edge("a -> b", when("output.left")), edge("a -> c"), edge("b c -> d"), edge("d -> END")),
		[]string{"WF017 edges[3].from[1]"},
		flow(start, edge("a -> b c"), edge("b c -> d"), edge("d -> END")),
	},
	{
		"a join of alternatives is possible under route: all",
		flow(start, edge("a -> b", when("output.left")), edge("a -> c"), edge("b c -> d"), edge("d -> END")),
		[]string{"WF017 edges[3].from[1]"},
		with(flow(start, edge("a -> b", when("output.left")), edge("a -> c"), edge("b c -> d"), edge("d -> END")), "a", routeAll),
	},
	{
		"a join behind a default",
		flow(edge("START -> a b"), edge("a -> END"), edge("a b -> c"), edge("c -> END")),
		[]string{"WF017 edges[2].from[0]"},
		flow(edge("START -> a b"), edge("a -> END", when("output.alone")), edge("a b -> c"), edge("c -> END")),
	},
	{
		"one join written in two orders",
		flow(edge("START -> a b"), edge("a b -> c", when("outputs.a.ok")), edge("b a -> END"), edge("c -> END")),
		[]string{"WF017 edges[2].from[1]"},
		flow(edge("START -> a b"), edge("a b -> c", when("outputs.a.ok")), edge("a b -> END"), edge("c -> END")),
	},
	{
		"a join that waits for what it starts",
		flow(start, edge("a b -> b", limit(1), onLimit("END"))),
		[]string{"WF017 edges[1].from[1]"},
		flow(edge("START -> a b"), edge("a b -> c"), edge("c -> END")),
	},
	{
		"a join of failures, and of one role twice",
		flow(edge("START -> a b"), edge("a b -> FAIL", onFailure), edge("a -> END"), edge("b b -> END")),
		[]string{"WF017 edges[1].from", "WF017 edges[3].from[1]"},
		flow(edge("START -> a b"), edge("a -> FAIL", onFailure), edge("b -> FAIL", onFailure), edge("a b -> END")),
	},
	{
		"a join input that could hold two tokens",
		flow(edge("START -> a b e"), edge("a -> c"), edge("b -> c"), edge("c e -> END")),
		[]string{"WF506 roles.c", "WF017 edges[3].from[0]"},
		flow(edge("START -> a b e"), edge("a b -> c"), edge("c e -> END")),
	},
	{
		"a role that runs again while its token waits",
		with(flow(edge("START -> a b"), edge("a b -> END"), edge("a -> a", when("output.more"), limit(2))), "a", routeAll),
		[]string{"WF017 edges[1].from[0]"},
		flow(edge("START -> a b"), edge("a -> a", when("output.more"), limit(2)), edge("a b -> END")),
	},
	{
		"both branches of a loop go round together",
		with(flow(start, edge("a -> b c"), edge("b c -> d"), edge("d -> b", when("output.again"), limit(2)), edge("d -> END")), "d", routeAll),
		[]string{},
		flow(start, edge("a -> b c"), edge("b c -> d"), edge("d -> b c", when("output.again"), limit(2)), edge("d -> END")),
	},
	{
		"a bound that leads where the edge leads",
		flow(start, edge("a -> b c", limit(1), onLimit("b")), edge("b -> END"), edge("c -> END")),
		[]string{"WF017 edges[1].on_limit"},
		flow(start, edge("a -> b c", limit(1), onLimit("END")), edge("b -> END"), edge("c -> END")),
	},
	{
		"a step that cannot have run yet",
		flow(start, edge("a -> b", prompt("Fix ${{ steps.b.output.text }}")), edge("b -> END", when("steps.a.output.ok")), edge("b -> FAIL")),
		[]string{"WF021 edges[1].prompt"},
		flow(start, edge("a -> b", prompt("Fix ${{ steps.a.output.text }}")), edge("b -> a", when("steps.a.output.ok"), limit(2)), edge("b -> END")),
	},
	{
		"a step of another branch",
		flow(edge("START -> a b"), edge("a -> END", when("steps.b?.output.ok")), edge("a -> FAIL"), edge("b -> END")),
		[]string{"WF021 edges[1].when"},
		flow(edge("START -> a"), edge("a -> b"), edge("b -> END", when("steps.a?.output.ok")), edge("b -> FAIL")),
	},
	{
		"a role's own text, and what the compiler found mentioned",
		with(flow(start, edge("a -> b", func(e *protocol.Edge) { e.Mentions = []string{"steps.b"} }), edge("b -> END")), "a", func(r *protocol.Role) {
			r.Env = []protocol.NamedTemplate{{Name: "LAST", Value: "${{ steps.b.text }}"}}
		}),
		[]string{"WF021 roles.a.env.LAST", "WF021 edges[1].prompt"},
		with(flow(start, edge("a -> b"), edge("b -> END")), "b", func(r *protocol.Role) {
			r.Env = []protocol.NamedTemplate{{Name: "LAST", Value: "${{ steps.a.text }}"}}
		}),
	},
	{
		"choices that an expression gives",
		with(flow(start, edge("a -> b"), edge("b -> END")), "a", func(r *protocol.Role) { r.ChoicesOf = "steps.b.output.list" }),
		[]string{"WF021 roles.a.choices"},
		with(flow(start, edge("a -> b"), edge("b -> END")), "b", func(r *protocol.Role) { r.ChoicesOf = "steps.a.output.list" }),
	},
	{
		"parallel writers",
		with(with(flow(edge("START -> a b"), edge("a b -> END")), "a", writer), "b", writer),
		[]string{"WF503 roles.a"},
		with(with(flow(start, edge("a -> b"), edge("b -> END")), "a", writer), "b", writer),
	},
	{
		"an agent beside a command that writes",
		with(with(flow(edge("START -> a b"), edge("a b -> END")), "a", writer), "b", func(r *protocol.Role) { command(r); r.Run = "go test ./... > log" }),
		[]string{"WF503 roles.a"},
		with(with(flow(edge("START -> a b"), edge("a b -> END")), "a", writer), "b", func(r *protocol.Role) { command(r); r.Run = "go test ./... 2>&1 >/dev/null" }),
	},
	{
		"a directory for each writer, items in turn",
		with(flow(edge("START -> a", each("inputs.files")), edge("a -> END")), "a", writer),
		[]string{"WF503 edges[0].for_each"},
		with(flow(edge("START -> a", each("inputs.files"), func(e *protocol.Edge) { e.MaxParallel = 1 }), edge("a -> END")), "a", writer),
	},
	{
		"max_visits below its limits",
		with(flow(start, edge("a -> b", limit(2)), edge("b -> a", when("output.x"), limit(2)), edge("b -> a", when("output.y"), limit(2)), edge("b -> END")), "a", maxVisits),
		[]string{"WF504 roles.a.max_visits"},
		with(flow(start, edge("a -> b", limit(2)), edge("b -> a", when("output.x"), limit(2)), edge("b -> END")), "a", maxVisits),
	},
	{
		"two branches in one role, named once for all behind it",
		flow(edge("START -> a b"), edge("a -> c"), edge("b -> c"), edge("c -> d"), edge("d -> END")),
		[]string{"WF506 roles.c"},
		flow(edge("START -> a b"), edge("a b -> c"), edge("c -> d"), edge("d -> END")),
	},
}

func ask(r *protocol.Role) {
	r.Action = protocol.ActAsk
	r.Choices = []protocol.Choice{{Label: "Yes", Value: "yes"}, {Label: "No", Value: "no"}}
}

func TestW14Lint(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := []string{}
			for _, f := range lint.Check(c.bad, status) {
				got = append(got, f.Code+" "+f.Path)
				if f.Message == "" || f.Hint == "" || strings.Contains(f.Message, "\n") {
					t.Errorf("%s: message %q, hint %q; want one line and a fix", f.Code, f.Message, f.Hint)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			for _, f := range lint.Check(c.good, status) {
				t.Errorf("the good twin has %s at %s: %s", f.Code, f.Path, f.Message)
			}
		})
	}
}

// A name that is one letter off is an error of its own: in a graph that is sound without it,
// nothing is told that follows from it.
func TestATypoHasNoFollowingErrors(t *testing.T) {
	tried := 0
	for _, c := range cases {
		for i := range c.good.Edges {
			for _, end := range []string{"from", "to"} {
				w := *c.good
				w.Edges = slices.Clone(w.Edges)
				e := &w.Edges[i]
				e.From, e.To = slices.Clone(e.From), slices.Clone(e.To)
				at := &e.From[0]
				if end == "to" {
					at = &e.To[0]
				}
				if len(*at) < 3 {
					continue // nothing is near so short a name
				}
				*at += "x"
				tried++
				for _, f := range lint.Check(&w, status) {
					if f.Code != "WF010" {
						t.Errorf("%s, %s of edges[%d] is %s: %s at %s: %s", c.name, end, i, *at, f.Code, f.Path, f.Message)
					}
				}
			}
		}
	}
	if tried < 100 {
		t.Errorf("only %d names", tried)
	}
}

// What is wrong whatever the unknown names were meant to be is told beside them, in one pass.
func TestUnknownNamesHideNothing(t *testing.T) {
	w := flow(edge("START -> a"), edge("a -> b", when("output.x")), edge("a -> c"), edge("b c -> d"), edge("d -> d", when("output.y")),
		edge("d -> deploy"), edge("lost -> d"), edge("a -> nowhere", when("output.z")))
	w.Roles = slices.DeleteFunc(w.Roles, func(r protocol.Role) bool { return r.Name == "deploy" || r.Name == "nowhere" })
	got := []string{}
	for _, f := range lint.Check(w, nil) {
		got = append(got, f.Code+" "+f.Path)
	}
	want := []string{"WF017 edges[3].from[1]", "WF013 edges[4]", "WF010 edges[5].to[0]", "WF011 roles.lost", "WF010 edges[7].to[0]", "WF014 edges[7]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

// An enum may hold lists, which the field is compared with as other values are.
func TestAnEnumOfListsIsExhausted(t *testing.T) {
	lists := func(string) map[string][]any { return map[string][]any{"pair": {[]any{1}, []any{2}}} }
	for condition, want := range map[string]string{
		"output.pair == output.pair":   "",
		"output.pair in [output.pair]": "",
		"output.pair != output.pair":   "WF015",
		`output.pair == "one"`:         "WF015",
	} {
		var codes []string
		for _, f := range lint.Check(flow(edge("START -> a"), edge("a -> END", when(condition))), lists) {
			codes = append(codes, f.Code)
		}
		if got := strings.Join(codes, " "); got != want {
			t.Errorf("%s: %q, want %q", condition, got, want)
		}
	}
}
