package lang

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// drawnJSON is JSON, now and then damaged.
func drawnJSON(t *rapid.T) string {
	var value func(depth int) any
	value = func(depth int) any {
		switch k := rapid.IntRange(0, 9).Draw(t, "kind"); {
		case k == 0 && depth < 4:
			return rapid.MapOfN(rapid.String(), rapid.Custom(func(*rapid.T) any { return value(depth + 1) }), 0, 4).Draw(t, "object")
		case k == 1 && depth < 4:
			l := make([]any, rapid.IntRange(0, 4).Draw(t, "length"))
			for i := range l {
				l[i] = value(depth + 1)
			}
			return l
		case k < 5:
			return rapid.Int64().Draw(t, "integer")
		case k == 5:
			return rapid.Float64Range(-1e18, 1e18).Draw(t, "number")
		case k == 6:
			return rapid.SampledFrom([]any{true, false, nil}).Draw(t, "word")
		}
		return rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z ]*`)).Draw(t, "text")
	}
	b, err := json.Marshal(value(0))
	if err != nil {
		t.Fatal(err)
	}
	s := string(b)
	if rapid.IntRange(0, 3).Draw(t, "damage") == 0 {
		at := rapid.IntRange(0, len(s)).Draw(t, "at")
		s = s[:at] + rapid.SampledFrom([]string{"", " ", "}", "]", ",", `"`, "0", "-", "\x00", "\xff", "1e3", "nul"}).Draw(t, "with") + s[min(len(s), at+rapid.IntRange(0, 2).Draw(t, "cut")):]
	}
	return s
}

func TestPlainJSONIsReadAsAnyOther(t *testing.T) {
	same := func(t interface{ Errorf(string, ...any) }, s string) {
		got, ok := plainJSON([]byte(s))
		if !ok {
			return
		}
		want, err := generalJSON([]byte(s))
		if err != nil {
			t.Errorf("%q reads as %v, it is no JSON: %v", s, got, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", s, diff)
		}
	}
	rapid.Check(t, func(t *rapid.T) { same(t, drawnJSON(t)) })
	for _, s := range []string{"", " ", "-", "-0", "00", "01", "1.", "1e2", "{", "[", "[1,]", `{"a":1,}`, `{"a":1 "b":2}`, `{"a" 1}`, `{1:2}`, `"a`, "\"\xff\"", "\"\n\"",
		`{"a":1,"a":2}`, "999999999999999", "9999999999999999", "1 2", "truefalse", "nullx", strings.Repeat("[", 300) + strings.Repeat("]", 300)} {
		same(t, s)
	}
	for s, want := range map[string]any{`{"n": 12, "l": [true, null, -3], "t": "größer"}`: map[string]any{"n": 12, "l": []any{true, nil, -3}, "t": "größer"}, " [] ": []any{}, "{}": map[string]any{}} {
		if got, ok := plainJSON([]byte(s)); !ok || !cmp.Equal(got, want) {
			t.Errorf("%s is not read as plain: %v, %v", s, got, ok)
		}
	}
}
