package schema

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// sentence is a reason, with numbers as they are written in English, whatever the machine's locale: 1,234.5 and
// 1.2×10⁰⁶. Models read reasons, so their bytes do not change.
func sentence(format string, args ...any) string {
	for i, arg := range args {
		switch n := arg.(type) {
		case int:
			args[i] = figure(grouped(strconv.Itoa(n)))
		case float64:
			args[i] = figure(english(n))
		}
	}
	return fmt.Sprintf(format, args...)
}

// figure is a number as it is shown, by any verb.
type figure string

func (n figure) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, string(n)) } // a State keeps its own errors

// english writes a number with as many digits as tell it from others.
func english(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "∞"
	case math.IsInf(f, -1):
		return "-∞"
	case f == 0: // -0 too
		return "0"
	}
	digits, exponent, scientific := strings.Cut(strconv.FormatFloat(f, 'g', -1, 64), "e")
	if scientific {
		return digits + "×10" + raised().Replace(exponent)
	}
	return grouped(digits)
}

// raised writes an exponent.
var raised = sync.OnceValue(func() *strings.Replacer {
	return strings.NewReplacer("+", "", "-", "⁻", "0", "⁰", "1", "¹", "2", "²", "3", "³", "4", "⁴", "5", "⁵", "6", "⁶", "7", "⁷", "8", "⁸", "9", "⁹")
})

// grouped sets a comma behind each thousand of a decimal number.
func grouped(digits string) string {
	whole, fraction, _ := strings.Cut(digits, ".")
	sign := ""
	if rest, negative := strings.CutPrefix(whole, "-"); negative {
		sign, whole = "-", rest
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return sign + whole
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

func wrongType(got any, want ...string) string {
	return fmt.Sprintf("got %s, want %s", typeOf(got), strings.Join(want, " or "))
}

// mustBe is what a value must be of some, of a keyword.
func mustBe(key string, want ...any) string {
	shown := make([]string, len(want))
	for i, w := range want {
		switch w := w.(type) {
		case []any, map[string]any:
			return "'" + key + "' failed"
		case string:
			shown[i] = quote(w)
		case nil:
			shown[i] = "null"
		default:
			shown[i] = fmt.Sprint(w)
		}
	}
	if len(shown) == 1 {
		return "value must be " + shown[0]
	}
	return "value must be one of " + strings.Join(shown, ", ")
}

func quote(s string) string {
	q := fmt.Sprintf("%q", s)
	return "'" + strings.NewReplacer(`\"`, `"`, `'`, `\'`).Replace(q[1:len(q)-1]) + "'"
}

func quoted(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = quote(name)
	}
	return out
}

// lacks gives the names that an object has not, quoted.
func lacks(m map[string]any, names []string) []string {
	var missing []string
	for _, name := range names {
		if _, has := m[name]; !has {
			missing = append(missing, quote(name))
		}
	}
	return missing
}

// stringsOf is an array of strings, nil for anything else.
func stringsOf(v any) []string {
	list, ok := v.([]any)
	if !ok {
		return nil
	}
	out := make([]string, 0, len(list))
	for _, item := range list {
		if s, ok := item.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// exponentMax is the exponent up to which a number is taken as it is: no double has one of more than 308, and a number of a few
// characters has a million digits otherwise.
const exponentMax = 1_000

// rational is the exact value of a number of JSON; of one beyond exponentMax it is 0.
func rational(n json.Number) *big.Rat {
	text := n.String()
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		if e, err := strconv.Atoi(text[i+1:]); err != nil || e > exponentMax || e < -exponentMax {
			return new(big.Rat) // it has more digits than are worth their time
		}
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return new(big.Rat)
	}
	return r
}

func float(r *big.Rat) float64 {
	f, _ := r.Float64()
	return f
}

// identity is a text that equal values share: 1 and 1.0 are equal, as are objects with the same members
// in another order.
func identity(v any) string {
	var b strings.Builder
	identify(&b, v)
	return b.String()
}

func identify(b *strings.Builder, v any) {
	switch v := v.(type) {
	case json.Number:
		b.WriteString(rational(v).RatString())
	case string:
		fmt.Fprintf(b, "%q", v)
	case []any:
		b.WriteByte('[')
		for _, item := range v {
			identify(b, item)
			b.WriteByte(',')
		}
		b.WriteByte(']')
	case map[string]any:
		b.WriteByte('{')
		for _, name := range slices.Sorted(maps.Keys(v)) {
			fmt.Fprintf(b, "%q:", name)
			identify(b, v[name])
			b.WriteByte(',')
		}
		b.WriteByte('}')
	default:
		fmt.Fprint(b, v)
	}
}
