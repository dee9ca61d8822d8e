package lang

import (
	"sync"

	"wf/protocol/lazy"
)

// suitePath names a whole suite in messages.
const suitePath = "the suite"

// Bounds of a suite.
const (
	mostRepeats  = 1_000
	mostParallel = 64
)

var caseName = lazy.Regexp(`^[^\s\pC]([^\pC]{0,198}[^\s\pC])?$`)

// suiteGrammar is what a suite of wf eval is made of; docs/eval.md describes its keys.
var suiteGrammar = sync.OnceValue(func() *shape {
	local := &shape{kind: aString}
	name := matching(caseName, "a name in one line without spaces at its ends, of at most 200 characters")
	models := either(str, listOf(str), namedBy(mapOf(oneOrMany(str)), roleName, "letters, digits, _ and -"))
	answer := object([]key{
		{name: "choice", shape: people, doc: "The value or label of a choice."},
		{name: "text", shape: people, doc: "A text."},
		{name: "fields", shape: anything, doc: "The fields of a form."},
	}, "An answer.")
	scalar := &shape{kind: aText}
	answers := namedBy(mapOf(either(scalar, answer, &shape{kind: aList, elem: either(scalar, answer), nonEmpty: true})), roleName, "letters, digits, _ and -")
	thing := object([]key{
		{name: "value", shape: condExpr, required: true, doc: "An expression."},
		{name: "equals", shape: anything},
		{name: "contains", shape: oneOrMany(scalar)},
		{name: "excludes", shape: oneOrMany(scalar)},
		{name: "matches", shape: oneOrMany(scalar)},
		{name: "schema", shape: anything},
	}, "What a value has to be.")
	expect := object([]key{
		{name: "status", shape: oneOrMany(enum("done", "failed", "cancelled", "suspended"))},
		{name: "that", shape: &shape{kind: aList, elem: either(condExpr, thing), nonEmpty: true}},
		{name: "schema", shape: anything},
	}, "What has to hold of a run that has ended.")
	common := []key{
		{name: "inputs", shape: mapOf(anything)},
		{name: "files", shape: local},
		{name: "answers", shape: answers},
		{name: "expect", shape: expect},
		{name: "check", shape: people},
		{name: "n", shape: atLeast(1, mostRepeats)},
		{name: "pass", shape: decimals},
		{name: "max_tokens", shape: posInt},
		{name: "tags", shape: oneOrMany(name)},
	}
	one := object(append([]key{{name: "name", shape: name, required: true}, {name: "tape", shape: local}}, common...), "A case.")
	cases := listOf(one)
	cases.max = maxEntries
	return object([]key{
		{name: "workflow", shape: local, required: true},
		{name: "cases", shape: cases, required: true},
		{name: "defaults", shape: object(common, "Values for all cases.")},
		{name: "models", shape: models},
		{name: "max_cost", shape: &shape{kind: aMoney}},
		{name: "parallel", shape: atLeast(1, mostParallel)},
		{name: "pass", shape: decimals},
	}, "A suite.")
})
