package yaml

import (
	"fmt"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v4"

	"wf/protocol/lazy"
)

// How a scalar without quotes is read: by the core schema of YAML 1.2 (section 10.3.2), except that no number
// begins with a needless zero. unclear are the others that some reader of YAML takes for a number: with such a zero,
// which is octal to YAML 1.1; with underscores, colons, 0b or a sign before 0x, which are text to YAML 1.2; and with
// capitals, 0X1F, which are numbers in neither.
var (
	integer = lazy.Regexp(`^([-+]?(0|[1-9][0-9]*)|0x[0-9a-fA-F]+|0o[0-7]+)$`)
	float   = lazy.Regexp(`^([-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
	unclear = lazy.Regexp(`^[-+]?(0[xX][0-9a-fA-F_]+|0[oO]_*[0-7][0-7_]*|0[bB][01_]+|[1-9][0-9_]*(:[0-5]?[0-9])+|[0-9][0-9_]*(:[0-5]?[0-9])+\.[0-9_]*|` +
		`([0-9][0-9_]*(\.[0-9_]*)?|\._*[0-9][0-9_]*)([eE][-+]?_*[0-9][0-9_]*)?)$`)
)

// types are the scalars that are no text, by their tags; words are those of them that are no numbers.
var (
	types = map[string]Type{"!!null": Null, "!!bool": Bool, "!!int": Int, "!!float": Float}
	words = map[string]Type{"": Null, "~": Null, "null": Null, "Null": Null, "NULL": Null,
		"true": Bool, "True": Bool, "TRUE": Bool, "false": Bool, "False": Bool, "FALSE": Bool}
)

func tagged(y *yaml.Node) bool { return y.Style&yaml.TaggedStyle != 0 || y.Tag == "!" }

func scalarType(y *yaml.Node) Type {
	if t, ok := types[y.ShortTag()]; tagged(y) && ok {
		return t
	}
	if tagged(y) || scalarStyle(y) != Plain {
		return String
	}
	return plainType(y.Value)
}

func plainType(text string) Type {
	if t, ok := words[text]; ok {
		return t
	}
	switch {
	case integer().MatchString(text):
		return Int
	case float().MatchString(text):
		return Float
	}
	return String
}

// number refuses a plain scalar of which it is not clear whether it is a number, and which.
func (c *converter) number(n *Node) {
	if n.Style != Plain || n.Type != String || !unclear().MatchString(n.Value) {
		return
	}
	c.refuse(n, fmt.Sprintf("readers of YAML do not agree on %s: %s", n.Value, oddity(n.Value)),
		fmt.Sprintf("for the text write %s, in quotes; a number is written as in JSON, 1000 or 0.5", strconv.Quote(n.Value)))
}

func oddity(number string) string {
	digits := strings.TrimLeft(number, "+-")
	switch {
	case strings.Contains(number, ":"):
		return "colons make a number of base 60 in YAML 1.1 and text in YAML 1.2"
	case strings.Contains(number, "_"):
		return "underscores are left out of numbers by YAML 1.1 and make text in YAML 1.2"
	case len(digits) > 1 && strings.ContainsAny(digits[1:2], "xXoObB"):
		return "YAML 1.2 knows 0x1f and 0o17, without a sign and in small letters, and YAML 1.1 others"
	}
	return "a zero in front makes an octal number in YAML 1.1 and is left out by YAML 1.2"
}

// tag refuses a tag that is unknown, and one that the value does not fit: it would be lost, and what it was to say.
func (c *converter) tag(n *Node, y *yaml.Node) {
	if !tagged(y) {
		return
	}
	tag := y.ShortTag()
	want, typed := types[tag]
	switch {
	case n.Kind == Mapping && tag == "!!map", n.Kind == Sequence && tag == "!!seq", n.Kind == Scalar && tag == "!!str" && y.Tag != "!":
	case n.Kind == Scalar && typed:
		bare := plainType(y.Value)
		if bare != want && (want != Float || bare != Int) {
			c.refuse(n, fmt.Sprintf("%q is no %s", y.Value, tag), "write the value that is meant, without a tag")
		}
	case n.Kind == Scalar:
		c.refuse(n, unknownTag(y), fmt.Sprintf("for the text write %s, in quotes", strconv.Quote(strings.TrimSpace(y.Tag+" "+y.Value))))
	default:
		c.refuse(n, unknownTag(y), "remove it")
	}
}

func unknownTag(y *yaml.Node) string {
	return fmt.Sprintf("%s is read as a tag of YAML, which wf does not know here", y.Tag)
}
