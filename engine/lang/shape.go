package lang

import (
	"cmp"
	"regexp"
	"strings"
	"time"

	"wf/protocol/lazy"
)

// shape is one entry of the grammar: what a value of the language looks like. The parser
// checks nodes against it and JSONSchema is written from it.
type shape struct {
	kind     shapeKind
	doc      string
	enum     []string // of text
	free     bool     // text for people: anything, also nothing
	min      int      // of an integer
	max      int      // of an integer, or of entries; 0 is none
	only     int      // of an integer, if not 0
	pattern  func() *regexp.Regexp
	like     string // what pattern means, for messages
	keys     []key  // of an object
	elem     *shape // of a list or a map
	alts     []*shape
	nonEmpty bool // list or map
	null     bool // null is as good as an empty object
	zero     bool // a duration may be 0
}

// key is a key of an object, with its description. One that is neither required nor an
// action has def or unset.
type key struct {
	name     string
	shape    *shape
	required bool
	action   bool   // one of those of which a role has exactly one
	doc      string // what it is for, in sentences
	def      string // what holds where it is left out, as it would be written
	more     string // a further default, and where it holds
	unset    string // the same as def in words, where it cannot be written
	example  string // YAML of what has the key: the file, a role, an edge, an input, a server
	field    string // what it becomes in the canonical definition; further ones after a space
	effect   string // instead of field, where it becomes none
}

type shapeKind int

const (
	aString   shapeKind = iota
	aText               // a template: any scalar
	anExpr              // a bare expression: any scalar
	anInt               // min … max
	aDecimal            // kept as text
	aBool               //
	aDuration           // 90s, 10m, 1h30m
	aMoney              // dollars, at most six decimals
	aList               // of elem
	aMap                // names → elem
	anObject            // keys
	aSchema             // JSON Schema with an object at the top level
	anyJSON             // every value
	oneOf               // the first of alts that fits the kind of the node
)

// kinds are the words for shapes: in messages, and on the page of the language.
var kinds = [...]struct{ want, page string }{
	aString:   {"a string", "text"},
	aText:     {"a string", "text, with expressions"},
	anExpr:    {"an expression", "expression"},
	anInt:     {"an integer", "whole number"},
	aDecimal:  {"a number", "number above 0"},
	aBool:     {"true or false", "`true` or `false`"},
	aDuration: {"a duration such as 90s, 10m or 1h30m", "duration, such as `90s`, `10m` or `1h30m`"},
	aMoney:    {"an amount in dollars such as 1.50", "US dollars, with at most six decimals"},
	aList:     {"a list", "list of: "},
	aMap:      {"a mapping", "mapping of names to: "},
	anObject:  {"a mapping", "mapping"},
	aSchema:   {"a mapping", "JSON Schema with `type: object`"},
	anyJSON:   {"a value", "any value"},
	oneOf:     {},
}

// want names the shape for messages.
func (s *shape) want() string {
	if s.enum != nil {
		return "one of " + strings.Join(s.enum, ", ")
	}
	if s.zero {
		return kinds[s.kind].want + ", or 0"
	}
	return kinds[s.kind].want + s.choice(" or ", (*shape).want)
}

// choice joins the words for the alternatives.
func (s *shape) choice(or string, word func(*shape) string) string {
	words := make([]string, len(s.alts))
	for i, a := range s.alts {
		words[i] = word(a)
	}
	return strings.Join(words, or)
}

// key finds a key of an object.
func (s *shape) key(name string) (*key, bool) {
	for i := range s.keys {
		if s.keys[i].name == name {
			return &s.keys[i], true
		}
	}
	return nil, false
}

func (s *shape) names() []string {
	out := make([]string, len(s.keys))
	for i := range s.keys {
		out[i] = s.keys[i].name
	}
	return out
}

// maxDuration is 200 years: what begins now ends at a time that a record can hold, until 2255.
const maxDuration = 200 * 365 * 24 * time.Hour

// parseDuration reads 90s, 10m, 1h30m as microseconds.
func parseDuration(s string) (int64, bool) {
	d, err := time.ParseDuration(s)
	if err != nil || d < time.Microsecond || d%time.Microsecond != 0 || d > maxDuration {
		return 0, false
	}
	return d.Microseconds(), true
}

// tooLong is what to say of a duration that is one, and longer than maxDuration; "" of all others.
func tooLong(s string) string {
	if d, err := time.ParseDuration(s); err == nil && d > maxDuration {
		return "at most 1752000h, which are 200 years"
	}
	return ""
}

// isZero reports whether a duration is written as none, which parseDuration does not take.
func isZero(s string) bool { return s == "0" || s == "0s" }

var decimal = lazy.Regexp(`^\+?([0-9]*)(?:\.([0-9]*))?$`)

// parseMoney reads dollars as micro-dollars, digit by digit: no float comes near.
func parseMoney(s string) (int64, bool) {
	m := decimal().FindStringSubmatch(s)
	if m == nil || m[1]+m[2] == "" || len(m[2]) > 6 || len(m[1]) > 9 {
		return 0, false
	}
	var micros int64
	for _, c := range m[1] + m[2] + strings.Repeat("0", 6-len(m[2])) {
		micros = micros*10 + int64(c-'0')
	}
	return micros, true
}

// parseDecimal brings a positive decimal to its shortest form: 2.0 is 2, .50 is 0.5.
func parseDecimal(s string) (string, bool) {
	m := decimal().FindStringSubmatch(s)
	if m == nil || m[1]+m[2] == "" || len(s) > 18 {
		return "", false
	}
	whole, part := strings.TrimLeft(m[1], "0"), strings.TrimRight(m[2], "0")
	return strings.TrimSuffix(cmp.Or(whole, "0")+"."+part, "."), true
}
