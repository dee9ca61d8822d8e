package schema_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"pgregory.net/rapid"

	"wf/roles/schema"
)

// oracle validates with another implementation, in our words.
func oracle(t failing, text string, formats bool) func(data []byte) []schema.Violation {
	t.Helper()
	whole, err := compiled(text, formats)
	if err != nil {
		t.Fatalf("the other validator refuses %s: %v", text, err)
	}
	return func(data []byte) []schema.Violation {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		var invalid *jsonschema.ValidationError
		if !errors.As(whole.Validate(v), &invalid) {
			return nil
		}
		p := message.NewPrinter(language.English)
		var out []schema.Violation
		var leaves func(*jsonschema.ValidationError)
		leaves = func(e *jsonschema.ValidationError) {
			if len(e.Causes) == 0 {
				at := ""
				for _, step := range e.InstanceLocation {
					at += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(step)
				}
				out = append(out, schema.Violation{Pointer: at, Reason: e.ErrorKind.LocalizedString(p)})
			}
			for _, c := range e.Causes {
				leaves(c)
			}
		}
		leaves(invalid)
		return comparable(out)
	}
}

func compiled(text string, formats bool) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if formats {
		c.AssertFormat()
	}
	const address = "wf:///schema.json"
	if err := c.AddResource(address, doc); err != nil {
		return nil, err
	}
	return c.Compile(address)
}

// failing is what the tests of package testing and of rapid have in common.
type failing interface {
	Helper()
	Fatalf(format string, args ...any)
}

var (
	additional = regexp.MustCompile(`^additional properties (.*) not allowed$`)
	ofFormat   = regexp.MustCompile(`^(.* is not valid [-a-z0-9]+): .*$`)
)

// comparable are violations without that in which the two differ: names of additional properties
// stand in no order there, null is <nil>, and why a text is not of a format has other words.
func comparable(all []schema.Violation) []schema.Violation {
	var out []schema.Violation
	for _, v := range all {
		if m := additional.FindStringSubmatch(v.Reason); m != nil {
			names := strings.Split(m[1], ", ")
			slices.Sort(names)
			v.Reason = "additional: " + strings.Join(names, ", ")
		}
		v.Reason = ofFormat.ReplaceAllString(strings.ReplaceAll(v.Reason, "<nil>", "null"), "$1")
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b schema.Violation) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(out)
}

// Values are small and alike, so that schemas and values meet.
func values() *rapid.Generator[any] {
	return rapid.OneOf(
		rapid.SampledFrom([]any{nil, true, false, "", "a", "ab", "b", "2024-02-30", "1.2.3", json.Number("0"), json.Number("1"), json.Number("1.0"),
			json.Number("2.5"), json.Number("1234567"), json.Number("-1")}),
		rapid.Custom(func(t *rapid.T) any {
			return rapid.SliceOfN(rapid.Deferred(values), 0, 3).Draw(t, "items")
		}),
		rapid.Custom(func(t *rapid.T) any {
			return rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c", "x/y", "~"}), rapid.Deferred(values), 0, 3).Draw(t, "members")
		}),
	)
}

func schemas() *rapid.Generator[any] {
	name := rapid.SampledFrom([]string{"a", "b", "c", "x/y", "~"})
	sub := rapid.Deferred(schemas)
	small := rapid.IntRange(0, 3)
	unique := rapid.SliceOfNDistinct(name, 0, 3, func(s string) string { return s })
	keys := map[string]*rapid.Generator[any]{
		"type":                  rapid.SampledFrom([]any{"string", "integer", "number", "object", "array", "null", "boolean", []string{"object", "string"}, []string{"integer", "null", "array"}}),
		"enum":                  rapid.SliceOfN(values(), 1, 3).AsAny(),
		"const":                 values(),
		"format":                rapid.SampledFrom([]any{"date", "semver", "uuid", "nothing", "json-pointer"}),
		"multipleOf":            rapid.SampledFrom([]any{2, 0.5, json.Number("3")}),
		"minimum":               small.AsAny(),
		"maximum":               small.AsAny(),
		"exclusiveMinimum":      small.AsAny(),
		"exclusiveMaximum":      small.AsAny(),
		"minLength":             small.AsAny(),
		"maxLength":             rapid.IntRange(0, 2000).AsAny(),
		"pattern":               rapid.SampledFrom([]any{"^a", "b$", "[0-9]"}),
		"minItems":              small.AsAny(),
		"maxItems":              small.AsAny(),
		"uniqueItems":           rapid.Bool().AsAny(),
		"contains":              sub,
		"minContains":           small.AsAny(),
		"maxContains":           small.AsAny(),
		"prefixItems":           rapid.SliceOfN(sub, 1, 2).AsAny(),
		"items":                 sub,
		"minProperties":         small.AsAny(),
		"maxProperties":         small.AsAny(),
		"required":              unique.AsAny(),
		"properties":            rapid.MapOfN(name, sub, 0, 3).AsAny(),
		"patternProperties":     rapid.MapOfN(rapid.SampledFrom([]string{"^a", "b"}), sub, 1, 2).AsAny(),
		"additionalProperties":  sub,
		"dependentRequired":     rapid.MapOfN(name, unique, 1, 2).AsAny(),
		"dependentSchemas":      rapid.MapOfN(name, sub, 1, 2).AsAny(),
		"allOf":                 rapid.SliceOfN(sub, 1, 2).AsAny(),
		"anyOf":                 rapid.SliceOfN(sub, 1, 2).AsAny(),
		"oneOf":                 rapid.SliceOfN(sub, 1, 3).AsAny(),
		"not":                   sub,
		"if":                    sub,
		"then":                  sub,
		"else":                  sub,
		"unevaluatedProperties": sub,
		"unevaluatedItems":      sub,
		"$ref":                  rapid.SampledFrom([]any{"#/$defs/deep", "#named", "#/$defs/x~1y"}),
	}
	var all []string
	for key := range keys {
		all = append(all, key)
	}
	slices.Sort(all)
	return rapid.Custom(func(t *rapid.T) any {
		switch rapid.IntRange(0, 9).Draw(t, "form") {
		case 0:
			return true
		case 1:
			return false
		}
		m := map[string]any{}
		for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom(all), 0, 4, func(s string) string { return s }).Draw(t, "keys") {
			m[key] = keys[key].Draw(t, key)
		}
		return m
	})
}

// Whatever the schema and the value are, another validator finds the same violations at the same
// places, in the same words.
func TestAnotherValidatorFindsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		top := schemas().Draw(t, "schema")
		if m, ok := top.(map[string]any); ok {
			m["$defs"] = map[string]any{
				"deep":  map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"$ref": "#/$defs/deep"}}},
				"plain": map[string]any{"$anchor": "named", "minLength": 2, "maxItems": 1},
				"x/y":   map[string]any{"enum": []any{"a", 1, nil}},
			}
		}
		text, err := json.Marshal(top)
		if err != nil {
			t.Fatal(err)
		}
		s, err := schema.Compile(string(text), true)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		other := oracle(t, string(text), true)
		for range 3 {
			data, err := json.Marshal(values().Draw(t, "value"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(other(data), comparable(s.Validate(data))); diff != "" {
				t.Fatalf("schema %s, value %s (-other +ours):\n%s", text, data, diff)
			}
		}
	})
}

// What is no schema is refused here and there, at a place that the other names too.
func TestAnotherValidatorRefusesTheSameSchemas(t *testing.T) {
	for _, text := range []string{
		`1`, `{"type":"strng"}`, `{"type":[]}`, `{"type":["string","string"]}`, `{"properties":[]}`, `{"properties":{"a":1}}`,
		`{"items":[{}]}`, `{"minLength":-1}`, `{"minLength":1.5}`, `{"multipleOf":0}`, `{"pattern":"("}`, `{"patternProperties":{"(":{}}}`,
		`{"allOf":[]}`, `{"allOf":{}}`, `{"required":"a"}`, `{"required":["a","a"]}`, `{"enum":1}`, `{"title":1}`, `{"if":3}`,
		`{"$defs":{"a":{"minimum":"1"}}}`, `{"dependentRequired":{"a":"b"}}`, `{"dependencies":{"a":["b","b"]}}`, `{"uniqueItems":1}`,
		`{"$ref":"#/$defs/none"}`, `{"$ref":"#none"}`, `{"$ref":1}`, `{"$ref":"http://example.com/x"}`, `{"$schema":"http://example.com/x"}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":1}]}`, `{"$schema":"http://json-schema.org/draft-04/schema#","exclusiveMinimum":1}`,
		`{"x":{"type":1},"$ref":"#/x"}`, `{"$anchor":"a","$defs":{"b":{"$anchor":"a"}}}`,
	} {
		_, err := schema.Compile(text, true)
		_, others := compiled(text, true)
		if err == nil || others == nil {
			t.Errorf("%s: we say %v, the other %v", text, err, others)
			continue
		}
		var ours *schema.Invalid
		var theirs *jsonschema.ValidationError
		if !errors.As(err, &ours) || !errors.As(others, &theirs) {
			continue
		}
		places := map[string]bool{}
		var leaves func(*jsonschema.ValidationError)
		leaves = func(e *jsonschema.ValidationError) {
			places[strings.Join(append([]string{""}, e.InstanceLocation...), "/")] = true
			for _, c := range e.Causes {
				leaves(c)
			}
		}
		leaves(theirs)
		if !places[ours.Violations[0].Pointer] {
			t.Errorf("%s: %v is not at one of %v", text, ours, places)
		}
	}
	for _, text := range []string{`{"type":["string","null"],"default":3}`, `{"x-order":["a"],"whatever":{"type":1}}`, `{"const":null}`} {
		if _, err := schema.Compile(text, true); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
