package protocol

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func names(form string) []string {
	var out []string
	for _, f := range FormFields(form) {
		out = append(out, f.Name)
	}
	return out
}

func TestFieldsOfAFormAreInTheOrderItHas(t *testing.T) {
	const properties = `"properties":{"age":{},"city":{},"name":{},"zip":{}},"type":"object"`
	for _, c := range []struct {
		what, form string
		want       []string
	}{
		{"as written", OrderedForm(`{`+properties+`}`, []string{"zip", "name", "city", "age"}), []string{"zip", "name", "city", "age"}},
		{"as written, not as required", OrderedForm(`{`+properties+`,"required":["age"]}`, []string{"zip", "name", "city", "age"}), []string{"zip", "name", "city", "age"}},
		{"the form's own", OrderedForm(`{`+properties+`,"x-order":["name"]}`, []string{"zip", "name", "city", "age"}), []string{"name", "age", "city", "zip"}},
		{"as required, the rest by name", `{` + properties + `,"required":["name","city"]}`, []string{"name", "city", "age", "zip"}},
		{"names that are no field", `{` + properties + `,"x-order":["who","zip"]}`, []string{"zip", "age", "city", "name"}},
		{"none", ``, nil},
		{"no object", `[1]`, nil},
	} {
		if d := cmp.Diff(c.want, names(c.form)); d != "" {
			t.Errorf("%s:\n%s", c.what, d)
		}
	}
}

func TestAFormThatWasWrittenByNameStaysAsItIs(t *testing.T) {
	const form = `{"properties":{"age":{},"name":{}},"type":"object"}`
	if got := OrderedForm(form, []string{"age", "name"}); got != form {
		t.Errorf("it became %s", got)
	}
	if got := OrderedForm(form, nil); got != form {
		t.Errorf("without an order it became %s", got)
	}
}

func TestATextIsReadAsTheTypeOfItsField(t *testing.T) {
	for _, c := range []struct {
		field FormField
		text  string
		want  string
	}{
		{FormField{Type: "string"}, "007", `"007"`},
		{FormField{Type: "integer"}, "7", `7`},
		{FormField{Type: "integer"}, "seven", `"seven"`},
		{FormField{Type: "boolean"}, "yes", `true`},
		{FormField{Type: "boolean"}, "N", `false`},
		{FormField{Type: "array"}, `["a", 1]`, `["a",1]`},
		{FormField{}, "12 monkeys", `"12 monkeys"`},
		{FormField{Enum: []JSON{JSON(`"1"`), JSON(`2`)}}, "1", `"1"`},
		{FormField{Enum: []JSON{JSON(`"1"`), JSON(`2`)}}, "2", `2`},
	} {
		got, err := CanonicalJSON(c.field.Read(c.text))
		if err != nil || string(got) != c.want {
			t.Errorf("%q as %+v is %s, %v; want %s", c.text, c.field, got, err, c.want)
		}
	}
}
