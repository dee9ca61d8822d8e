package protocol

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCanonicalizeJSON(t *testing.T) {
	for in, want := range map[string]string{
		`null`:                                   `null`,
		" { \"b\" : 1 , \"a\" : [ true , {} ] }": `{"a":[true,{}],"b":1}`,
		`[]`:                                     `[]`,
		`[1.0,-0,0.0,1e3,1.50,0.000001,0.0000001,1e-10,9007199254740991,-9007199254740991,333333333.33333329]`: `[1,0,0,1000,1.5,0.000001,1e-7,1e-10,9007199254740991,-9007199254740991,333333333.3333333]`,
		`"\u20ac$\u000f\nA'\u0042\u0022\u005c\\\"\/\u007f\ud83d\ude00\u2028"`:                                  "\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\x7f😀\u2028\"",
		// RFC 8785, section 3.2.3
		"{\"\u20ac\":1,\"\\r\":2,\"\ufb33\":3,\"1\":4,\"\U0001f600\":5,\"\u0080\":6,\"\u00f6\":7}": "{\"\\r\":2,\"1\":4,\"\u0080\":6,\"\u00f6\":7,\"\u20ac\":1,\"\U0001f600\":5,\"\ufb33\":3}",
		`"<&>"`: `"<&>"`,
	} {
		got, err := CanonicalizeJSON([]byte(in))
		if err != nil || string(got) != want {
			t.Errorf("%s\n gives %s, %v\n want  %s", in, got, err, want)
		}
	}
}

func TestCanonicalizeJSONRefuses(t *testing.T) {
	for in, want := range map[string]string{
		``:                       "ends where a value",
		`{"a":1,"b":2,"a":3}`:    `"a" appears twice`,
		`9007199254740992`:       "2^53",
		`-9007199254740992`:      "2^53",
		`1e400`:                  "2^53",
		`01`:                     "malformed",
		`1.`:                     "malformed",
		`-`:                      "malformed",
		`.5`:                     "begins no value",
		`"\ud800"`:               "lone surrogate",
		`"\ud800\u0041"`:         "lone surrogate",
		`"\udc00"`:               "lone surrogate",
		"\"\xff\"":               "UTF-8",
		"\"a\nb\"":               "control character",
		`"\x"`:                   "unknown escape",
		`"abc`:                   "does not end",
		`[1,]`:                   "begins no value",
		`[1 2]`:                  "want , or ]",
		`{"a":1,}`:               "want a key",
		`{"a" 1}`:                "want :",
		`1 2`:                    "more than one",
		`nul`:                    "begins no value",
		strings.Repeat("[", 300): "nested deeper",
		`{"\u0061":1,"a":2}`:     "appears twice",
	} {
		if got, err := CanonicalizeJSON([]byte(in)); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "byte ") {
			t.Errorf("%s gives %s, %v; want an error about %q", in, got, err, want)
		}
	}
}

func TestCanonicalJSONKeepsTheValueAndIsStable(t *testing.T) {
	var value *rapid.Generator[any]
	value = rapid.Deferred(func() *rapid.Generator[any] {
		return rapid.OneOf(
			rapid.Just[any](nil), rapid.Just[any](true), rapid.String().AsAny(),
			rapid.Float64Range(-math.Pow(2, 52), math.Pow(2, 52)).AsAny(),
			rapid.Custom(func(t *rapid.T) any { return float64(rapid.Int64Range(-MaxSafeInt, MaxSafeInt).Draw(t, "int")) }),
			rapid.Custom(func(t *rapid.T) any { return rapid.SliceOfN(value, 0, 4).Draw(t, "list") }),
			rapid.Custom(func(t *rapid.T) any { return rapid.MapOfN(rapid.String(), value, 0, 4).Draw(t, "map") }),
		)
	})
	rapid.Check(t, func(t *rapid.T) {
		v := value.Draw(t, "value")
		once, err := CanonicalJSON(v)
		if err != nil {
			t.Fatal(err)
		}
		twice, err := CanonicalizeJSON(once)
		if err != nil || string(twice) != string(once) {
			t.Fatalf("%s again gives %s, %v", once, twice, err)
		}
		var back any
		if err := json.Unmarshal(once, &back); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(v, back) {
			t.Fatalf("%#v became %#v by %s", v, back, once)
		}
	})
}
