package yaml_test

import (
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"wf/engine/yaml"
)

// The two versions of YAML, each written from its text and by hand: what number a plain scalar is, if it is one.

// number12 follows section 10.3.2 of YAML 1.2.2.
func number12(s string) (float64, bool) {
	switch {
	case strings.HasPrefix(s, "0x"):
		n, ok := whole(s[2:], 16)
		return n, ok && s != "0x"
	case strings.HasPrefix(s, "0o"):
		n, ok := whole(s[2:], 8)
		return n, ok && s != "0o"
	}
	mantissa, exponent, scaled := strings.Cut(strings.ToLower(unsigned(s)), "e")
	before, after, _ := strings.Cut(mantissa, ".")
	if before+after == "" || !digits(before) || !digits(after) || scaled && (unsigned(exponent) == "" || !digits(unsigned(exponent))) {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil
}

// number11 follows yaml.org/type/int and yaml.org/type/float; the dots that its expression of a float allows within the
// digits behind a point are a slip of the pen, of which no reader knows.
func number11(s string) (float64, bool) {
	sign := 1.0
	if strings.HasPrefix(s, "-") {
		sign = -1
	}
	s = unsigned(s)
	clean := strings.ReplaceAll(s, "_", "")
	switch {
	case strings.HasPrefix(s, "0b") && s != "0b":
		return signed(sign)(whole(clean[2:], 2))
	case strings.HasPrefix(s, "0x") && s != "0x":
		return signed(sign)(whole(clean[2:], 16))
	case s == "" || s[0] == '_' || clean == "":
		return 0, false
	case strings.Contains(s, ":"):
		if s[0] == '0' && !strings.Contains(s, ".") || s[0] == '.' {
			return 0, false
		}
		mantissa, point, _ := strings.Cut(clean, ".")
		if !digits(point) {
			return 0, false
		}
		var sum float64
		for i, part := range strings.Split(mantissa, ":") {
			written := strings.Split(strings.SplitN(s, ".", 2)[0], ":")[i]
			n, ok := whole(part, 10)
			if !ok || i > 0 && (n > 59 || len(written) > 2 || written != part) {
				return 0, false
			}
			sum = sum*60 + n
		}
		return sign * (sum + must(strconv.ParseFloat("0."+point+"0", 64))), true
	case strings.Contains(s, "."):
		mantissa, exponent, scaled := strings.Cut(strings.ToLower(clean), "e")
		if scaled && (exponent == "" || !strings.ContainsAny(exponent[:1], "+-") || exponent[1:] == "" || !digits(exponent[1:]) || strings.Contains(strings.SplitN(strings.ToLower(s), "e", 2)[1], "_")) {
			return 0, false
		}
		before, after, _ := strings.Cut(mantissa, ".")
		if before+after == "" || !digits(before) || !digits(after) {
			return 0, false
		}
		return sign * must(strconv.ParseFloat(clean, 64)), true
	case s[0] == '0' && len(s) > 1:
		return signed(sign)(whole(clean, 8))
	}
	return signed(sign)(whole(clean, 10))
}

func unsigned(s string) string {
	if s != "" && (s[0] == '+' || s[0] == '-') {
		return s[1:]
	}
	return s
}

func signed(sign float64) func(float64, bool) (float64, bool) {
	return func(f float64, ok bool) (float64, bool) { return sign * f, ok }
}

func digits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// whole reads digits of a base; underscores alone are 0.
func whole(s string, base int) (float64, bool) {
	var sum float64
	for _, c := range strings.ToLower(s) {
		d := strings.IndexRune("0123456789abcdef"[:base], c)
		if d < 0 {
			return 0, false
		}
		sum = sum*float64(base) + float64(d)
	}
	return sum, s != "" || base != 10
}

func must(f float64, err error) float64 {
	if err != nil {
		panic(err)
	}
	return f
}

// ruled is the rule of the package, in other words: a number is what YAML 1.2 takes for one, without needless zeros.
// Of what is left, that is refused which is a number to YAML 1.1, or would be one without a sign, capitals,
// underscores and zeros. All else is text.
func ruled(s string) (number float64, what string) {
	bare := strings.ToLower(unsigned(s))
	needless := len(bare) > 1 && bare[0] == '0' && strings.Contains("0123456789", bare[1:2])
	n, is := number12(s)
	_, old := number11(s)
	_, small := number11(bare)
	prefix := ""
	if strings.HasPrefix(bare, "0x") || strings.HasPrefix(bare, "0o") {
		prefix = bare[:2]
	}
	_, clean := number12(prefix + strings.ReplaceAll(bare[len(prefix):], "_", ""))
	clean = clean && (prefix != "" || !strings.ContainsAny(bare, "xo")) // 0_x1 is no number to anyone
	switch {
	case is && !needless:
		return n, "number"
	case bare != "" && strings.Contains(".0123456789", bare[:1]) && (old || small || clean):
		return 0, "refused"
	}
	return 0, "text"
}

// TestEveryShortScalarIsReadByTheRule reads all texts of up to four of the characters that numbers are written with.
func TestEveryShortScalarIsReadByTheRule(t *testing.T) {
	var texts []string
	longest := []string{""}
	for range 4 {
		var longer []string
		for _, s := range longest {
			for _, c := range "0189_:.+-xobeEXO" {
				longer = append(longer, s+string(c))
			}
		}
		longest = longer
		texts = append(texts, longest...)
	}
	var src strings.Builder
	read := texts[:0]
	for _, s := range texts {
		if s != "-" && !strings.HasSuffix(s, ":") { // which begin a list and a mapping
			read = append(read, s)
			fmt.Fprintf(&src, "- %s\n", s)
		}
	}
	n, errs := yaml.Parse([]byte(src.String()), yaml.Limits{})
	if n == nil || len(n.Items) != len(read) {
		t.Fatal("the list is not read", errs)
	}
	refused := map[*yaml.Node]bool{}
	for _, e := range errs {
		refused[e.Node] = true
	}
	count := map[string]int{}
	for i, item := range n.Items {
		number, want := ruled(read[i])
		count[want]++
		got := "text"
		v, err := item.JSON()
		switch {
		case refused[item]:
			got = "refused"
		case err != nil:
			got = err.Error()
		case item.Type == yaml.Int || item.Type == yaml.Float:
			got = "number"
			if f, err := strconv.ParseFloat(fmt.Sprint(v), 64); err != nil || f != number {
				t.Errorf("%s is %v, want %v", read[i], v, number)
			}
			if old, is := number11(read[i]); is && old != number && math.Abs(old) < 1e300 {
				t.Errorf("%s is taken for %v, and is %v to YAML 1.1", read[i], v, old)
			}
		case v != read[i]:
			t.Errorf("the text %s became %v", read[i], v)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", read[i], got, want)
		}
	}
	if count["number"] < 1000 || count["refused"] < 1000 || count["text"] < 1000 {
		t.Errorf("the texts test little: %v", count)
	}
}

// TestAScalarIsWhatWasWritten is the table: what a value becomes, or how it is refused.
func TestAScalarIsWhatWasWritten(t *testing.T) {
	for _, c := range []struct {
		src  string
		want any // a value; or of a refusal, what it says
	}{
		{"text", "text"}, {"it's", "it's"}, {"a b", "a b"}, {"yes", "yes"}, {"NO", "NO"}, {"on", "on"}, {"y", "y"}, {"=", "="},
		{"true", true}, {"False", false}, {"null", nil}, {"~", nil}, {"", nil}, {`""`, ""}, {`"true"`, "true"}, {`'12'`, "12"},
		{"7", 7}, {"+7", 7}, {"-7", -7}, {"0", 0}, {"-0", 0}, {"0x1F", 31}, {"0o17", 15}, {"1.50", 1.5}, {".5", 0.5}, {"5.", 5.0}, {"1e3", 1000.0},
		{"1.2.3", "1.2.3"}, {"v1.10", "v1.10"}, {"10.0.0.1", "10.0.0.1"}, {"8080:80", "8080:80"}, {"09:30", "09:30"}, {"127.0.0.1:80", "127.0.0.1:80"},
		{"2026-01-31", "2026-01-31"}, {"2026-01-31T10:00:00Z", "2026-01-31T10:00:00Z"}, {"0xbeefs", "0xbeefs"}, {"0beef", "0beef"}, {"1-800", "1-800"},
		{"_1", "_1"}, {"1_a", "1_a"}, {"1e", "1e"}, {"01-02", "01-02"}, {"00:0a", "00:0a"},
		{"01234", refusal("a zero in front")}, {"0644", refusal(`write "0644"`)}, {"0089", refusal("a zero in front")}, {"-01", refusal("a zero in front")}, {"00.5", refusal("a zero in front")},
		{"1_000", refusal("underscores")}, {"1_000.5", refusal("underscores")}, {"1_e5", refusal("underscores")}, {"0x_1F", refusal("underscores")},
		{"1:30", refusal("colons")}, {"12:30:45", refusal("colons")}, {"190:20:30.15", refusal("colons")}, {"22:22", refusal("colons")},
		{"0b101", refusal("0x1f")}, {"0X1F", refusal("0x1f")}, {"-0x1F", refusal("0x1f")},
		{"9007199254740993", refusal("not an integer within")}, {"123456789012345678901", refusal("not an integer within")}, {"1e400", refusal("no JSON number")},
		{".inf", refusal("no JSON number")}, {".nan", refusal("no JSON number")},
		{"!Pa55word", refusal(`!Pa55word is read as a tag of YAML, which wf does not know here (for the text write "!Pa55word", in quotes)`)},
		{"!important do it", refusal(`write "!important do it"`)}, {"! do it", refusal(`write "! do it"`)}, {"!vault |\n  x\n", refusal("!vault is read as a tag")},
		{"!env {a: b}", refusal("(remove it)")}, {"!list [a]", refusal("(remove it)")}, {"!!set {a}", refusal("!!set")}, {"!!binary aGk=", refusal("!!binary")},
		{"!!str 7", "7"}, {"!!str 0644", "0644"}, {`!!int "7"`, 7}, {"!!float 7", 7.0}, {"!!bool true", true}, {"!!null ~", nil}, {"!!map {}", map[string]any{}},
		{"!!int 0644", refusal(`"0644" is no !!int`)}, {"!!bool yes", refusal(`"yes" is no !!bool`)}, {"!!null x", refusal(`"x" is no !!null`)}, {"!!str [a]", refusal("!!str")},
		{"{01: x}", map[string]any{"01": "x"}}, // a key is text
		{"{!a b: x}", refusal("!a is read as a tag")},
		{"[&a 7, *a]", []any{7, 7}}, {"[&a 01, *a]", refusal("a zero in front")},
	} {
		n, errs := yaml.Parse([]byte("v: "+c.src+"\n"), yaml.Limits{})
		v, err := n.Get("v").JSON()
		said := ""
		switch {
		case len(errs) > 0:
			said = fmt.Sprintf("%v (%s)", errs[0], errs[0].Hint)
		case err != nil:
			said = err.Error()
		}
		want, refused := c.want.(refusal)
		if refused && (!strings.Contains(said, string(want)) || !strings.HasPrefix(said, "1:") || len(errs) > 1) || !refused && (said != "" || fmt.Sprintf("%#v", v) != fmt.Sprintf("%#v", c.want)) {
			t.Errorf("%s: %#v %s; want %#v", c.src, v, said, c.want)
		}
	}
}

type refusal string

// TestALongLineCostsWhatItHolds makes lines of n values and of eight times as many: the memory that is taken must not grow with the
// square.
func TestALongLineCostsWhatItHolds(t *testing.T) {
	for _, item := range []string{"a,", "01,", "!a b,", "!!str a,", `"a",`, "{a: b},"} {
		taken := func(n int) uint64 {
			src := []byte("v: [" + strings.Repeat(item, n) + "]\n")
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if n, _ := yaml.Parse(src, yaml.Limits{}); n == nil {
				t.Fatal(item)
			}
			runtime.ReadMemStats(&after)
			return after.TotalAlloc - before.TotalAlloc
		}
		if few, many := taken(1000), taken(8000); many > 16*few {
			t.Errorf("%s: 1000 take %d bytes, and 8000 of them %d", item, few, many)
		}
	}
}
