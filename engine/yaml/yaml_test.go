package yaml_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/engine/yaml"
)

func parse(t *testing.T, src string) *yaml.Node {
	t.Helper()
	n, errs := yaml.Parse([]byte(src), yaml.Limits{})
	if len(errs) > 0 {
		t.Fatal(errs[0])
	}
	return n
}

func TestValuesAreWhatJSONKnows(t *testing.T) {
	got, err := parse(t, `
s: text
q: "1"
n: 12
o: 0o17
h: 0x1f
u: 1000
f: 2.5
t: true
on: on
yes: no
d: 2026-01-31
z: null
tilde: ~
empty:
list: [1, [2], {a: b}]
text: |
  two
  lines
`).JSON()
	want := map[string]any{"s": "text", "q": "1", "n": 12, "o": 15, "h": 31, "u": 1000, "f": 2.5, "t": true, "on": "on", "yes": "no",
		"d": "2026-01-31", "z": nil, "tilde": nil, "empty": nil, "list": []any{1, []any{2}, map[string]any{"a": "b"}}, "text": "two\nlines\n"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestEveryNodeKnowsItsPlace(t *testing.T) {
	n := parse(t, "日本: {a: \"x\\\"y\", b: 'it''s'} # note\nlist:\n  - plain text # note\n  - [1, {c: d}]\nblock: |\n  text\n")
	for _, c := range []struct {
		name       string
		n          *yaml.Node
		start, end yaml.Pos
	}{
		{"a wide key", n.Pairs[0].Key, yaml.Pos{Line: 1, Col: 1}, yaml.Pos{Line: 1, Col: 3}},
		{"a flow mapping", n.Get("日本"), yaml.Pos{Line: 1, Col: 5}, yaml.Pos{Line: 1, Col: 27}},
		{"a double quoted text", n.Get("日本").Get("a"), yaml.Pos{Line: 1, Col: 9}, yaml.Pos{Line: 1, Col: 15}},
		{"a single quoted text", n.Get("日本").Get("b"), yaml.Pos{Line: 1, Col: 20}, yaml.Pos{Line: 1, Col: 27}},
		{"a plain text", n.Get("list").Items[0], yaml.Pos{Line: 3, Col: 5}, yaml.Pos{Line: 3, Col: 15}},
		{"a flow list", n.Get("list").Items[1], yaml.Pos{Line: 4, Col: 5}, yaml.Pos{Line: 4, Col: 16}},
		{"a block text", n.Get("block"), yaml.Pos{Line: 5, Col: 8}, yaml.Pos{Line: 5, Col: 9}},
	} {
		if c.n.Pos != c.start || c.name != "a flow mapping" && c.n.End != c.end {
			t.Errorf("%s: %v to %v, want %v to %v", c.name, c.n.Pos, c.n.End, c.start, c.end)
		}
	}
}

func TestMergeKeysAreWrittenOut(t *testing.T) {
	got, err := parse(t, "a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc: {<<: [*a, *b], x: 3}\nd: {<<: *b}\n").JSON()
	want := map[string]any{"a": map[string]any{"x": 1, "y": 1}, "b": map[string]any{"y": 2, "z": 2},
		"c": map[string]any{"x": 3, "y": 1, "z": 2}, "d": map[string]any{"y": 2, "z": 2}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestLimitsAreKept(t *testing.T) {
	for _, c := range []struct {
		name, src string
		l         yaml.Limits
		want      string
	}{
		{"bytes", "abcdef", yaml.Limits{Bytes: 5}, "has 6 bytes; at most 5"},
		{"depth of flow", "[[[[a]]]]", yaml.Limits{Depth: 3}, "nested too deep"},
		{"depth by aliases", "a: &a [x]\nb: &b [*a]\nc: &c [*b]\nd: [*c]", yaml.Limits{Depth: 4}, "nested more than 4 deep"},
		{"nodes", "[a, b, c]", yaml.Limits{Nodes: 3}, "more than 3 nodes"},
		{"nodes by aliases", "a: &a [x, x, x]\nb: [*a, *a]", yaml.Limits{Nodes: 12}, "more than 12 nodes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, errs := yaml.Parse([]byte(c.src), c.l)
			if n != nil || len(errs) == 0 || !strings.Contains(errs[0].Error(), c.want) {
				t.Errorf("%v, %v; want %s", n, errs, c.want)
			}
		})
	}
}

func TestEveryRepeatedKeyIsReportedAtItsPlace(t *testing.T) {
	n, errs := yaml.Parse([]byte("a: 1\nb: {c: 1, c: 2, c: 3}\na: 4\n"), yaml.Limits{})
	var got []string
	for _, e := range errs {
		got = append(got, e.Error())
	}
	want := []string{`2:11: key "c" is given twice`, `2:17: key "c" is given twice`, `3:1: key "a" is given twice`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if v, err := n.JSON(); err != nil || !cmp.Equal(v, map[string]any{"a": 1, "b": map[string]any{"c": 1}}) {
		t.Errorf("the first of them stay: %v, %v", v, err)
	}
}
