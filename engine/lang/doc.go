// Package lang reads a workflow: YAML with positions in, a canonical definition and compiled
// expressions out.
//
//	YAML ─yaml.Parse─► nodes ─grammar─► protocol.Workflow ─typed─► Program
//	                     └──────── Diagnostic (every error, with its place) ◄──┘
//	stored block ───────────Compile────────────────────────────► Program
//
// # Promise
//
// Load reports every error of a file in one run. Two files that differ in comments, key
// order, quoting or sugar give the same definition and so the same CID. A Program made from
// the stored block behaves as the one made from the file.
//
// # Words
//
// A template is text with ${{ expressions }}; one that is a single expression keeps the type
// of its value. A Scope is what expressions see. A shape is one entry of the grammar, the
// table that the parser, the editors' JSON Schema and docs/language.md are made from. A guide is a
// part of that page that a person wrote.
//
// # Expressions
//
// They are checked at Load against the types that follow from inputs and output schemas, and
// evaluated without types, so that an absent optional field is null and nothing else.
// A text template renders null as nothing and objects as canonical JSON.
//
// Secrets may stand in env alone, as ${{ secrets.NAME }}, and render to protocol.SecretRef.
// A role's prompt may refer to inputs, which are constant in a run, and to nothing else.
//
// # Limits
//
// No clock, no environment, no randomness, no files but the sub-workflows that Options.Read
// hands over. An expression has at most 1,000 nodes and a memory budget.
package lang
