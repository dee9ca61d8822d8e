package lang_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/engine/lang"
)

func rendered(src string, color bool) string {
	var b bytes.Buffer
	_, ds := lang.Load([]byte(src), lang.Options{File: "t.yaml"})
	lang.Render(&b, []byte(src), ds, color)
	return b.String()
}

func TestTheCaretStandsUnderWhatIsMeant(t *testing.T) {
	const head = "wf: 1\nname: t\nroles:\n"
	for _, c := range []struct{ name, src, want string }{
		{"after wide characters", head + "  a: {ask: \"日本語 ${{ outptu }}\"}\n",
			"4 |   a: {ask: \"日本語 ${{ outptu }}\"}\n  |                        ^^^^^^ did you mean \"output\"?\n"},
		{"after a tab in a text", head + "  a:\n    ask: \"x\ty ${{ outptu }}\"\n",
			"5 |     ask: \"x\ty ${{ outptu }}\"\n  |            \t      ^^^^^^ did you mean \"output\"?\n"},
		{"under wide characters", head + "  a: {ask: why}\nedges: [{from: a, to: 日本}]\n",
			"5 | edges: [{from: a, to: 日本}]\n  |                       ^^^^\n"},
		{"in a block scalar", head + "  a:\n    ask: |\n      one\n      two ${{ outptu }}\n",
			"7 |       two ${{ outptu }}\n  |               ^^^^^^ did you mean \"output\"?\n"},
		{"in a folded condition", head + "  a: {set: {x: 1}}\nedges:\n  - from: a\n    to: END\n    when: >\n      output.x == 1 and\n      output.y == 2\n",
			"10 |       output.y == 2\n   |              ^ did you mean \"x\"?\n"},
		{"behind an escape", head + "  a: {set: {x: 1}}\nedges: [{from: a, to: END, when: \"output.x == \\\"a\\\" or outptu\"}]\n",
			"5 | edges: [{from: a, to: END, when: \"output.x == \\\"a\\\" or outptu\"}]\n  |                                                        ^^^^^^ did you mean \"output\"?\n"},
		{"behind doubled quotes", head + "  a: {set: {x: 1}}\nedges: [{from: a, to: END, when: 'output.x == ''a'' or outptu'}]\n",
			"5 | edges: [{from: a, to: END, when: 'output.x == ''a'' or outptu'}]\n  |                                                        ^^^^^^ did you mean \"output\"?\n"},
		{"in a file with Windows line ends", strings.ReplaceAll(head+"  a: {ask: \"${{ outptu }}\"}\n", "\n", "\r\n"),
			"4 |   a: {ask: \"${{ outptu }}\"}\n  |                 ^^^^^^ did you mean \"output\"?\n"},
		{"behind a byte order mark", "\ufeffwg: 1\n" + head[6:] + "  a: {ask: x}\n",
			"1 | wg: 1\n  | ^^ did you mean \"wf\"?\n"},
		{"far out in a long line", head + "  a: {ask: \"" + strings.Repeat("x", 300) + " ${{ outptu }}\"}\n",
			"4 | …" + strings.Repeat("x", 74) + " ${{ outptu }}\"}\n  | " + strings.Repeat(" ", 80) + "^^^^^^ did you mean \"output\"?\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := rendered(c.src, false); !strings.Contains(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestColoursAreOnlyForTerminals(t *testing.T) {
	src := "wf: 1\nname: t\nroles: {a: {run: ls}}\nedges: [{from: a, to: EDN}]\n"
	plain, coloured := rendered(src, false), rendered(src, true)
	if strings.Contains(plain, "\x1b") || !strings.Contains(coloured, "\x1b[1;31merror[WF010]\x1b[0m") {
		t.Errorf("%q\n%q", plain, coloured)
	}
	if got := rendered("wf: 1\nname: t\nroles: {a: {set: {x: 1}}}\n", false); got != "" {
		t.Errorf("nothing is wrong, yet: %s", got)
	}
}

func TestNothingInAFileReachesTheTerminalAsAnOrder(t *testing.T) {
	got := rendered("wf: 1\nname: t\nroles: {a: {run: ls, \"\\e[2J\u202e\": 1}}\n\u0085", false)
	if strings.ContainsAny(got, "\x1b\u202e\u0085") {
		t.Errorf("%q", got)
	}
}

func TestADiagnosticIsJSON(t *testing.T) {
	_, ds := lang.Load([]byte("wf: 1\nname: t\nroles: {a: {rum: ls}}\n"), lang.Options{File: "t.yaml"})
	got, err := json.Marshal(ds[1])
	want := `{"schema":"wf.diag/v1","code":"WF001","severity":"error","file":"t.yaml",` +
		`"range":{"start":{"line":3,"col":13},"end":{"line":3,"col":16}},` +
		`"message":"unknown key \"rum\" in roles.a","hint":"did you mean \"run\"?","fix":{"replace":"run"}}`
	if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

// TestW14AllErrorsOfAFileComeInOneRun has one error of nearly every kind in one file.
func TestW14AllErrorsOfAFileComeInOneRun(t *testing.T) {
	src := `wf: 1
name: review
inputs: {topic: {type: strng}}
roles:
  writer:
    prompt: Write about ${{ steps.writer.text }}.
    timeuot: 3m
  reviewer:
    prompt: Review.
    output: {type: object, properties: {verdict: {enum: [ok, bad]}}}
  none: {}
  shell: {run: "echo ${{ inputs.topic }}", env: {K: "${{ secrets.K }}"}}
edges:
  - {from: START, to: writer}
  - {from: writer, to: reviwer}
  - {from: reviewer, to: writer, when: output.verdict == "bda"}
  - {from: reviewer, to: END, when: output.verdikt == "ok" and now() > 3}
  - {from: reviewer, to: shell, for_each: item}
`
	_, ds := lang.Load([]byte(src), lang.Options{File: "review.yaml"})
	var got []string
	for _, d := range ds {
		if d.Severity == lang.SeverityError {
			got = append(got, d.Code)
		}
		if d.File != "review.yaml" || d.Range.Start.Line < 1 || d.Range.Start.Col < 1 || d.Message == "" {
			t.Errorf("incomplete: %+v", d)
		}
	}
	want := []string{"WF002", "WF042", "WF001", "WF004", "WF011", "WF041", "WF040", "WF010", "WF020", "WF022", "WF024", "WF023"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s\n%s", diff, rendered(src, false))
	}
}

// TestW14TheGraphIsCheckedBesideNamesAndExpressions has what is wrong with the graph beside what
// used to hide it: names, expressions and keys.
func TestW14TheGraphIsCheckedBesideNamesAndExpressions(t *testing.T) {
	src := `wf: 1
name: review
limits: {cost_usd: 1, duration: 1h}
roles:
  plan: {run: ls, continue_on_error: true}
  left: {run: ls}
  right: {run: ls}
  merge: {run: ls, max_visit: 3}
  review: {ask: "Good, ${{ inputs.nobody }}?", choices: [yes, no]}
  orphan: {run: ls}
  again: {run: ls}
edges:
  - {from: START, to: plan}
  - {from: plan, to: left, when: output.exit_code == 0, limit: none}
  - {from: plan, to: right}
  - {from: [left, right], to: merge}
  - {from: merge, to: reviwe}
  - {from: review, to: again, when: output.choise == "yes"}
  - {from: review, to: END}
  - {from: again, to: again, when: output.exit_code == 0}
  - {from: again, to: END}
  - {from: orphan, to: merge, when: output.text =}
`
	_, ds := lang.Load([]byte(src), lang.Options{File: "review.yaml"})
	var got []string
	for _, d := range ds {
		got = append(got, fmt.Sprintf("%s %d", d.Code, d.Range.Start.Line))
	}
	want := []string{"WF001 8", "WF020 9", "WF011 10", "WF002 14", "WF017 16", "WF010 17", "WF022 18", "WF013 20", "WF020 22"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s\n%s", diff, rendered(src, false))
	}
}
