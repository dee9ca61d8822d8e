// Package trace tells what a run did as spans of OpenTelemetry, from its journal alone and after the fact.
//
//	journal ─► fold ─► spans ─► OTLP/JSON, a line for each batch
//
// # Words
//
//	trace    a run that is no sub-workflow, with the runs of its sub-workflows
//	stretch  a time in which a visit, or the run, was at work: from its start, or from what woke it, to the wait, the
//	         failure or the stop that ended it. Each is a span; the time between two is in none.
//
//	invoke_workflow NAME             the run: its first stretch, and below it those behind a wait
//	└─ invoke_agent ROLE, run ROLE   a stretch of a visit
//	   ├─ chat MODEL                 a call of a model
//	   │  └─ execute_tool NAME       a call of a tool that the model asked for
//	   └─ invoke_workflow NAME       the run of a sub-workflow
//
// Names and attributes are those of the semantic conventions of SchemaURL; what these have no word for begins with
// "wf.".
//
// # Promised
//
// The same journal gives the same spans, with the same ids, on every machine; so a trace that is sent twice is one.
// What was said, by users, models and tools, is in none of them unless Options.Prompts asks for it.
package trace
