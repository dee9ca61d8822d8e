package lint_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/engine/lint"
	"wf/protocol"
)

func TestRefsNameWhatAnExpressionReads(t *testing.T) {
	for expression, want := range map[string]string{
		`output.status == "done"`:                                      "output.status",
		`steps.coder?.output.summary ?? 'x'`:                           "steps.coder.output.summary",
		`steps["coder"].text + steps.test.text`:                        "steps.coder.text steps.test.text",
		`len(outputs.a.files) > inputs.max`:                            "inputs.max outputs.a.files",
		`steps[inputs.role].text`:                                      "inputs.role steps",
		`let n = steps.a.visit; n + n`:                                 "steps.a.visit",
		`all(output.files, # startsWith inputs.dir)`:                   "inputs.dir output.files",
		`{"a": item, "b": [index, edge.visit]}`:                        "edge.visit index item",
		`output.ok ? steps.a.text : steps.b.text`:                      "output.ok steps.a.text steps.b.text",
		`"steps.c.text"`:                                               "",
		`filter(steps.a.output.list, {.name == inputs.name})[0]?.name`: "inputs.name steps.a.output.list",
	} {
		got, err := lint.Refs(expression)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
		}
		if diff := cmp.Diff(strings.Fields(want), got); diff != "" && want+strings.Join(got, "") != "" {
			t.Errorf("%s (-want +got):\n%s", expression, diff)
		}
	}
	if _, err := lint.Refs("output. =="); err == nil {
		t.Error("a syntax error is not reported")
	}
}

func TestATemplateIsCutAtItsExpressions(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                     "plain",
		"${{ a }}":                  "<a>",
		"x ${{a}} y ${{ b }}":       "x |<a>| y |<b>",
		"${{ {'a': 1} }}}":          "<{'a': 1}>|}",
		"${{ '}}' }}":               "<'}}'>",
		"${{ \"\\\"}}\" }}":         `<"\"}}">`,
		"${{ `}}` }}":               "<`}}`>",
		"$${{ a }}":                 "$|<a>",
		"${{ a }":                   "!",
		"${{ a":                     "!",
		"${{ }}":                    "!",
		"b ${{ a }} ${{ 'unclosed ": "b |<a>!",
		"":                          "",
	} {
		pieces, _, err := lint.Split(in)
		var got []string
		for _, p := range pieces {
			if in[p.At:p.At+len(p.Text)] != p.Text {
				t.Errorf("%q: %q does not stand at %d", in, p.Text, p.At)
			}
			if p.Expr {
				p.Text = "<" + p.Text + ">"
			}
			got = append(got, p.Text)
		}
		s := strings.Join(got, "|")
		if err != nil {
			s = strings.TrimSuffix(s, "| ") + "!"
		}
		if s != want {
			t.Errorf("%q: %q, want %q", in, s, want)
		}
	}
}

func TestTemplateRefsReadEveryPart(t *testing.T) {
	for template, want := range map[string]string{
		"no expression":                          "",
		"${{ inputs.a }} and ${{inputs.b}}":      "inputs.a inputs.b",
		"${{ '}}' + inputs.a }} ${{ inputs.b }}": "inputs.a inputs.b",
		`${{ {"x": {"y": inputs.a}} }}`:          "inputs.a",
		"${{ not valid ( }} ${{ inputs.b }}":     "inputs.b",
		"${{ inputs.open":                        "",
	} {
		if got := strings.Join(lint.TemplateRefs(template), " "); got != want {
			t.Errorf("%q: got %q, want %q", template, got, want)
		}
	}
}

func TestDidYouMean(t *testing.T) {
	for typed, meant := range map[string]string{"reviwer": "reviewer", "tset": "test", "Coder": "coder", "end": "END", "zzz": ""} {
		w := &protocol.Workflow{
			Roles: []protocol.Role{{Name: "coder"}, {Name: "reviewer"}, {Name: "test"}},
			Edges: []protocol.Edge{{From: []string{"START"}, To: []string{typed}}},
		}
		found := slices.DeleteFunc(lint.Check(w, nil), func(f lint.Finding) bool { return f.Code != "WF010" })
		if len(found) != 1 {
			t.Errorf("%s: %d findings, want 1: %v", typed, len(found), found)
			continue
		}
		if hinted := strings.Contains(found[0].Hint, `"`+meant+`"`); hinted != (meant != "") {
			t.Errorf("%s: hint %q, want %q", typed, found[0].Hint, meant)
		}
	}
}

func TestMessagesNameTheCulprits(t *testing.T) {
	for _, c := range []struct {
		w     *protocol.Workflow
		words []string
	}{
		{flow(start, edge("a -> b"), edge("b -> c"), edge("c -> a", when("output.x")), edge("c -> b", when("output.y")), edge("c -> END")),
			[]string{"cycle b → c → b has no bound"}},
		{with(flow(start, edge("a -> END", when("output.exit_code == 0")), edge("a -> FAIL", when("output.exit_code == 2"))), "a", tolerant),
			[]string{"output.exit_code is 1 or 3–255"}},
		{flow(edge("START -> a b e"), edge("a -> c"), edge("b -> c"), edge("c -> d"), edge("d e -> END")),
			[]string{"a and b can both lead to c before it", "put a join in front: {from: [a, b], to: c}"}},
	} {
		var all []string
		for _, f := range lint.Check(c.w, nil) {
			all = append(all, f.Message, f.Hint)
		}
		for _, words := range c.words {
			if !slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, words) }) {
				t.Errorf("nothing says %q:\n%s", words, strings.Join(all, "\n"))
			}
		}
	}
}
