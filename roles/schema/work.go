package schema

import (
	"fmt"
	"regexp"
	"regexp/syntax"
)

// A schema that is small can look at a small value for hours: subschemas that refer twice to others which do the same, patterns with
// a thousand states, values in values that are compared. So the looks at a value are counted, and have a bound. It follows from the
// schema and the value alone: the same value is refused each time.

const (
	looksMax      = 10_000_000 // a second or two
	violationsMax = 1_000
	failLooks     = 8 // what a violation counts for besides its depth, also one that another branch makes up for
)

// work is what checking one value has taken so far.
type work struct{ looks int }

// excess is what is wrong with a value that takes more; it ends the check.
type excess string

// take counts n looks.
func (w *work) take(n int) {
	if w.looks += n; w.looks > looksMax {
		panic(excess(fmt.Sprintf("checking it takes more than %d looks: simplify the schema, or give a smaller value", looksMax)))
	}
}

// bounded gives violations, or one in the place of more than violationsMax.
func bounded(found []Violation) []Violation {
	if len(found) > violationsMax {
		return []Violation{{Reason: fmt.Sprintf("more than %d things are wrong with it", violationsMax)}}
	}
	return found
}

// ended gives what an excess says in the place of all that was found.
func ended(found *[]Violation) {
	switch e := recover().(type) {
	case nil:
	case excess:
		*found = []Violation{{Reason: string(e)}}
	default:
		panic(e)
	}
}

// expression is a regular expression, with how many states it has: so many of them a character can lead to.
type expression struct {
	*regexp.Regexp
	states int
}

func newExpression(text string) (*expression, error) {
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	return &expression{re, len(prog.Inst)}, nil
}

// matches reports whether it matches a text, and counts that.
func (e *expression) matches(w *work, s string) bool {
	w.take((len(s)/16 + 1) * e.states / 4)
	return e.MatchString(s)
}

// identity is that of a value, and counts it.
func (v *visit) identity(value any) string {
	key := identity(value)
	v.work.take(1 + len(key)/64)
	return key
}
