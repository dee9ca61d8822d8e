package lang_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"wf/engine/lang"
	"wf/engine/yaml"
)

func editorSchema(t testing.TB, schema []byte) *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("wf:///schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("wf:///schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if s.DraftVersion != 7 {
		t.Fatalf("draft %d; editors read draft-07", s.DraftVersion)
	}
	return s
}

func value(t testing.TB, src []byte) any {
	n, errs := yaml.Parse(src, yaml.Limits{})
	if len(errs) > 0 {
		t.Fatal(errs[0])
	}
	v, err := n.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTheEditorsSchemaAcceptsWhatLoadAccepts(t *testing.T) {
	s := editorSchema(t, lang.JSONSchema())
	for name, parts := range goodFiles(t) {
		if err := s.Validate(value(t, parts["good.yaml"])); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheEditorsSchemaRefusesWhatTheGrammarRefuses(t *testing.T) {
	s := editorSchema(t, lang.JSONSchema())
	files := goodFiles(t)
	for _, code := range []string{"WF001", "WF002", "WF004"} {
		if s.Validate(value(t, files[code]["bad.yaml"])) == nil {
			t.Errorf("%s: accepted", code)
		}
	}
	if !bytes.Equal(lang.JSONSchema(), lang.JSONSchema()) {
		t.Error("the schema changes from call to call")
	}
}

// wholeSuite has every key of a suite once, at least.
const wholeSuite = `workflow: review.yaml
models: {writer: [a/b, c/d]}
max_cost: 1.50
parallel: 2
pass: 0.9
x-anchors: [anything]
defaults: {inputs: {topic: cats}, files: shop, answers: {gate: [yes, {choice: no}]}, expect: {status: [done, failed], that: [run.steps <= 4]}, check: "true", n: 2, pass: 1, max_tokens: 9, tags: fast}
cases:
  - name: "one: of täg"
    inputs: {topic: dogs, size: 3}
    files: shop/dogs
    answers: {gate: {choice: "yes", text: Because., fields: {a: [1]}}}
    tape: tapes/one.jsonl
    expect:
      status: done
      that:
        - outputs.score == 3
        - {value: outputs.text, equals: {a: 1}, contains: x, excludes: [y, 3], matches: '\.$', schema: {type: string}}
      schema: {type: object}
    check: test -e x
    n: 1000
    pass: "0.5"
    max_tokens: 1
    tags: [a, b c]
  - {name: two, inputs: {topic: x}}
`

// An editor and wf read suites alike: by each key, and by none that is unknown.
func TestTheEditorsSchemaOfSuitesIsTheirGrammar(t *testing.T) {
	s := editorSchema(t, lang.SuiteSchema())
	if err := s.Validate(value(t, []byte(wholeSuite))); err != nil {
		t.Error(err)
	}
	if _, ds := readSuite(t, wholeSuite); len(ds) > 0 {
		t.Error(ds)
	}
	files, err := filepath.Glob("../../examples/*/suite*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no suites among the examples: ", err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(value(t, src)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	for _, x := range [][2]string{
		{"parallel: 2", "paralel: 2"}, {"defaults: {", "defaults: {name: x, "}, {"x-anchors", "y-anchors"},
		{"{choice: no}", "{choice: no, x-chosen: 1}"}, {"{status: [done", "{x: 1, status: [done"}, {"tape: tapes", "taep: tapes"}, {"text: Because.", "txt: Because."},
		{"status: done", "statu: done"}, {"contains: x", "contain: x"}, {"name: two, ", "name: two, expects: {}, "},
		{"name: two, ", ""}, {"workflow: review.yaml\n", ""}, {"n: 1000", "n: 1001"}, {"n: 1000", "n: 0"}, {"parallel: 2", "parallel: 65"}, {"status: done", "status: over"},
		{"name: two", "name: ' two'"}, {"name: two", `name: "t\u200bwo"`}, {"name: two", "name: " + strings.Repeat("x", 201)}, {"max_tokens: 1\n", "max_tokens: 0\n"}, {"pass: 0.9", "pass: 0"},
	} {
		bad := strings.Replace(wholeSuite, x[0], x[1], 1)
		if bad == wholeSuite {
			t.Fatalf("no %q in the suite", x[0])
		}
		if s.Validate(value(t, []byte(bad))) == nil {
			t.Errorf("an editor accepts %s", x[1])
		}
		if _, ds := readSuite(t, bad); len(ds) == 0 {
			t.Errorf("wf accepts %s", x[1])
		}
	}
	part, err := lang.SchemaPart("suite.cases.expect.status")
	if m, ok := part.(map[string]any); err != nil || !ok || m["description"] == "" {
		t.Errorf("%v %v", part, err)
	}
	// every key says what it is for, to an editor too
	var check func(at string, x any)
	check = func(at string, x any) {
		m, _ := x.(map[string]any)
		props, _ := m["properties"].(map[string]any)
		for name, p := range props {
			if of, _ := p.(map[string]any); of["description"] == nil || strings.Contains(of["description"].(string), "Example") {
				t.Errorf("%s.%s: %v", at, name, of["description"])
			}
		}
		for name, below := range m {
			check(at+"."+name, below)
		}
		list, _ := x.([]any)
		for _, below := range list {
			check(at, below)
		}
	}
	check("", value(t, lang.SuiteSchema()))
}
