package lang_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/protocol"
)

const withInputs = `
wf: 1
name: t
inputs:
  package: {type: string, required: true, description: what to test}
  n: {type: integer, default: 3}
  ratio: number
  mode: {type: string, enum: [fast, slow], default: fast}
  flag: boolean
  list: array
  any:
roles: {a: {set: {x: 1}}}
`

func TestInputsGetTheirDefaults(t *testing.T) {
	p := load(t, withInputs)
	for _, c := range []struct {
		name  string
		given map[string]any
		want  string
	}{
		{"only what is required", map[string]any{"package": "."}, `{"mode":"fast","n":3,"package":"."}`},
		{"raw JSON", map[string]any{"package": json.RawMessage(`"x"`), "list": json.RawMessage(`[1, 2.50]`)}, `{"list":[1,2.5],"mode":"fast","n":3,"package":"x"}`},
		{"a whole number is an integer", map[string]any{"package": ".", "n": 4.0, "ratio": 1}, `{"mode":"fast","n":4,"package":".","ratio":1}`},
		{"anything", map[string]any{"package": ".", "any": map[string]any{"b": nil, "a": true}}, `{"any":{"a":true,"b":null},"mode":"fast","n":3,"package":"."}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := p.Inputs(c.given)
			if diff := cmp.Diff(c.want, string(got)); err != nil || diff != "" {
				t.Errorf("%v %s", err, diff)
			}
		})
	}
}

func TestEveryProblemOfTheInputsIsNamedAtOnce(t *testing.T) {
	p := load(t, withInputs)
	_, err := p.Inputs(map[string]any{"pakage": ".", "n": "three", "mode": "medium", "ratio": 1e300, "flag": func() {}})
	if !errors.Is(err, protocol.ErrInputs) {
		t.Fatal(err)
	}
	for _, want := range []string{
		`input "pakage" is not declared (did you mean "package"?)`,
		`input "n" wants an integer, got the string "three"`,
		`input "mode" wants one of "fast", "slow", got the string "medium"`,
		`input "package" is missing (string: what to test)`,
		`input "ratio": `, `input "flag": `,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %s", err, want)
		}
	}
}

func TestTextOfTheCommandLineIsReadByTheDeclaredType(t *testing.T) {
	p := load(t, withInputs)
	for _, c := range []struct {
		name, text string
		want       any
	}{
		{"package", "12", "12"}, {"package", "", ""},
		{"n", "12", 12}, {"ratio", "1.5", 1.5}, {"ratio", "2", 2},
		{"flag", "yes", true}, {"flag", "0", false},
		{"list", `[1,"x"]`, []any{1, "x"}},
		{"any", `{"a":1}`, map[string]any{"a": 1}}, {"any", "plain words", "plain words"},
		{"undeclared", "1", "1"},
	} {
		got, err := p.Coerce(c.name, c.text)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s=%s: %v %s", c.name, c.text, err, diff)
		}
	}
	for _, c := range [][2]string{{"n", "1.5"}, {"n", "x"}, {"n", "99999999999999999999"}, {"ratio", "x"}, {"flag", "maybe"}, {"list", "{}"}, {"list", "[1"}} {
		if got, err := p.Coerce(c[0], c[1]); !errors.Is(err, protocol.ErrInputs) {
			t.Errorf("%s=%s: %v, %v", c[0], c[1], got, err)
		}
	}
}
