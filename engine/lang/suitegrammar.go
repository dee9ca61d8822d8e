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

var caseName = lazy.Regexp(`^[^\s\p{C}]([^\p{C}]{0,198}[^\s\p{C}])?$`)

// suiteGrammar is what a suite of wf eval is made of, for its reader and for SuiteSchema; docs/eval.md describes its keys.
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
		{name: "equals", shape: anything, doc: "Any value: it is exactly this one."},
		{name: "contains", shape: oneOrMany(scalar), doc: "Texts that are in it; a value that is no text is looked at as JSON."},
		{name: "excludes", shape: oneOrMany(scalar), doc: "Texts that are not in it."},
		{name: "matches", shape: oneOrMany(scalar), doc: "Regular expressions (RE2) that fit it."},
		{name: "schema", shape: anything, doc: "A JSON Schema that it fits."},
	}, "What a value has to be.")
	expect := object([]key{
		{name: "status", shape: oneOrMany(enum("done", "failed", "cancelled", "suspended")), doc: "How the run ends, or a list of these; done where it is left out."},
		{name: "that", shape: &shape{kind: aList, elem: either(condExpr, thing), nonEmpty: true}, doc: "Expressions that have to be true, and values with what they have to be."},
		{name: "schema", shape: anything, doc: "A JSON Schema of the outputs."},
	}, "What has to hold of a run that has ended.")
	common := []key{
		{name: "inputs", shape: mapOf(anything), doc: "Inputs of the workflow; those of the defaults are added, key by key."},
		{name: "files", shape: local, doc: "A directory within that of the suite, which is copied as the workspace of each run; an empty one where it is left out."},
		{name: "answers", shape: answers, doc: "Answers for ask roles, by role: a choice or text, an object, or a list of these for one visit after the other."},
		{name: "expect", shape: expect, doc: "What has to hold of a run that has ended."},
		{name: "check", shape: people, doc: "A command that ends with 0 where the run is good; it runs in the workspace of a run that is otherwise as expected."},
		{name: "n", shape: atLeast(1, mostRepeats), doc: "Runs of the case; 1 where it is left out."},
		{name: "pass", shape: decimals, doc: "The share of the runs of a case that has to pass, above 0 and at most 1; all of them where it is left out."},
		{name: "max_tokens", shape: posInt, doc: "Limit of the tokens of each run."},
		{name: "tags", shape: oneOrMany(name), doc: "Words by which --tag chooses cases; those of the defaults are added."},
	}
	one := object(append([]key{{name: "name", shape: name, required: true, doc: "A name of its own, by which --case chooses it."}, {name: "tape", shape: local, doc: "A recording that answers for the models; wf eval --record writes it."}}, common...), "A case.")
	cases := listOf(one)
	cases.max = maxEntries
	return object([]key{
		{name: "workflow", shape: local, required: true, doc: "The file of the workflow, relative to the suite."},
		{name: "cases", shape: cases, required: true, doc: "What the workflow is tried with."},
		{name: "defaults", shape: object(common, "Values for all cases."), doc: "Values for all cases."},
		{name: "models", shape: models, doc: "A model, a list to try in order, or a mapping of roles to these; --model takes its place."},
		{name: "max_cost", shape: &shape{kind: aMoney}, doc: "Dollars that all runs may cost together."},
		{name: "parallel", shape: atLeast(1, mostParallel), doc: "Runs at the same time; 1 where it is left out."},
		{name: "pass", shape: decimals, doc: "The share of the runs of a case that has to pass, above 0 and at most 1; all of them where it is left out."},
	}, "A suite.")
})
