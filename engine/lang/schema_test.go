package lang_test

import (
	"bytes"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"wf/engine/lang"
	"wf/engine/yaml"
)

func editorSchema(t testing.TB) *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(lang.JSONSchema()))
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
	s := editorSchema(t)
	for name, parts := range goodFiles(t) {
		if err := s.Validate(value(t, parts["good.yaml"])); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheEditorsSchemaRefusesWhatTheGrammarRefuses(t *testing.T) {
	s := editorSchema(t)
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
