package schema

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// doubled is a schema of n steps, each of which refers twice to the next.
func doubled(n int) string {
	var b strings.Builder
	b.WriteString(`{"$ref": "#/$defs/d0", "$defs": {`)
	for i := range n {
		fmt.Fprintf(&b, `"d%d": {"anyOf": [{"$ref": "#/$defs/d%d"}, {"$ref": "#/$defs/d%d"}]}, `, i, i+1, i+1)
	}
	fmt.Fprintf(&b, `"d%d": {"type": "string"}}}`, n)
	return b.String()
}

// F-414: checking a value ends, whatever the schema and the value are: it is refused with words.
func TestF414NoCheckTakesWithoutBound(t *testing.T) {
	list := func(n int, item string) string { return "[" + strings.Repeat(item+",", n) + item + "]" }
	long := `"` + strings.Repeat("a", 8<<20) + `"`
	for _, c := range []struct{ name, schema, value, want string }{
		{"references twice", doubled(40), `1`, "more than 10000000 looks"},
		{"a pattern with many states", `{"pattern": "(?:a?){1000}b"}`, long, "looks"},
		{"names by a pattern with many states", `{"patternProperties": {"(?:a?){1000}b": false}}`, `{` + long + `: 1}`, "looks"},
		{"wrong items", `{"items": {"type": "string"}}`, list(2_000_000, "1"), "looks"},
		{"many wrong items", `{"items": {"type": "string"}}`, list(500_000, "1"), "more than 1000 things are wrong with it"},
		{"items of which each fits a second branch", `{"items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}`, list(200_000, "1"), ""},
		{"numbers of a million digits", `{"items": {"type": "integer"}}`, list(200_000, "1e999999"), ""},
		{"different numbers of a million digits", `{"uniqueItems": true}`, list(200_000, "1e999999"), "are equal"},
		{"deep values that are compared", `{"$ref": "#/$defs/d", "$defs": {"d": {"not": {"const": 1}, "items": {"$ref": "#/$defs/d"}}}}`,
			strings.Repeat("[", 5_000) + list(200_000, `"aaaaaaaaaaaaaaaaaaaaaaaaaaaaa"`) + strings.Repeat("]", 5_000), "looks"},
		{"deep wrong values", `{"$ref": "#/$defs/d", "$defs": {"d": {"maxItems": 0, "items": {"$ref": "#/$defs/d"}}}}`,
			strings.Repeat("[", 5_000) + "1" + strings.Repeat("]", 5_000), "looks"},
	} {
		s, err := Compile(c.schema, false)
		if err != nil {
			t.Fatal(c.name, err)
		}
		began := time.Now()
		found := s.Validate([]byte(c.value))
		took := time.Since(began)
		t.Logf("%8s %s", took.Round(time.Millisecond), c.name)
		if got := fmt.Sprint(found); c.want == "" && len(found) > 0 || !strings.Contains(strings.ReplaceAll(got, ",", ""), c.want) {
			t.Errorf("%s: %.300s", c.name, got)
		}
		if took > 20*time.Second { // a tenth of that on a quiet machine
			t.Errorf("%s took %s", c.name, took)
		}
	}
}

// Just below the bounds everything is told, at them too, and beyond them the bound.
func TestF414TheBoundsOfAChecking(t *testing.T) {
	s, err := Compile(`{"items": {"type": "string"}}`, false)
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]int{violationsMax - 1: violationsMax - 1, violationsMax: violationsMax, violationsMax + 1: 1} {
		for range 3 {
			if found := s.Validate([]byte("[" + strings.Repeat("1,", n-1) + "1]")); len(found) != want {
				t.Errorf("%d wrong items: %d violations", n, len(found))
			}
		}
	}
	for n, ok := range map[int]bool{looksMax - 1: true, looksMax: true, looksMax + 1: false} {
		func() {
			var found []Violation
			defer func() {
				if (len(found) == 0) != ok {
					t.Errorf("%d looks: %v", n, found)
				}
			}()
			defer ended(&found)
			(&work{}).take(n)
		}()
	}
}
